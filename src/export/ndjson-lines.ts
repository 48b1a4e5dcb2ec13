/** Where the frames of a text recording stand, for who points at them. */
import { readLine } from './members.ts';
import { eachLine } from './source-lines.ts';

/** The line of each frame, in the order of their numbers. The source is a text recording that could be read. */
export async function frameLines(source: AsyncIterable<Buffer>): Promise<number[]> {
  const lines: number[] = [];
  for await (const { number, bytes } of eachLine(source)) {
    const line = readLine(bytes);
    if (line.has('channel') && line.flag('unfinished') !== true) lines.push(number);
  }
  return lines;
}
