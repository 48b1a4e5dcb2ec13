/** How output should look: colour and width are arguments of every formatter, decided once, by the command. */
import pc from 'picocolors';

export type Colors = ReturnType<typeof pc.createColors>;

export type Look = { colors: Colors; width: number };

const WIDTH_WITHOUT_TERMINAL = 120;
const LEAST_WIDTH = 40;

/** Colour only on a terminal, and never against NO_COLOR; width from the terminal, else COLUMNS, else 120. */
export function lookOf(stream: NodeJS.WriteStream): Look {
  const { NO_COLOR, TERM, COLUMNS } = process.env;
  const hasColor = stream.isTTY === true && !NO_COLOR && TERM !== 'dumb';
  const width = stream.columns || Number(COLUMNS) || WIDTH_WITHOUT_TERMINAL;
  return { colors: pc.createColors(hasColor), width: Math.max(LEAST_WIDTH, width) };
}
