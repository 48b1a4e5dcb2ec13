/** Files of other tools that have one JSON object a line. */
import type { Store } from '../store/open.ts';
import { createForeignSessions, type ForeignSessions } from './foreign-sessions.ts';
import { BadLine, type Members } from './members.ts';
import type { ImportOptions } from './ndjson-read.ts';
import { eachLine, lineMembers, refusalAt } from './source-lines.ts';

export type LineReader = {
  /** Throws `BadLine`. */
  read(line: Members): void;
  /** After the last line. */
  finish(): void;
};

/** Gives the public ids of the new sessions. Throws `TapedeckError` `usage` for a broken file, of which then nothing is stored. */
export async function readForeignLines(
  store: Store,
  source: AsyncIterable<Buffer>,
  origin: string,
  options: ImportOptions,
  createReader: (sessions: ForeignSessions) => LineReader,
): Promise<string[]> {
  const sessions = createForeignSessions(store, origin, options);
  const reader = createReader(sessions);
  let number = 0;
  try {
    for await (const line of eachLine(source)) {
      number = line.number;
      options.signal.throwIfAborted();
      reader.read(lineMembers(line));
    }
    if (number === 0) throw new BadLine(`expected a recording of ${origin}, got an empty file`);
    reader.finish();
    return sessions.finish();
  } catch (error) {
    sessions.discard();
    throw refusalAt(options.file, Math.max(number, 1), error);
  }
}
