/** Questions to whoever sits at the terminal. */

import { createInterface } from 'node:readline';
import type { Io } from './io.ts';

/** Anything but a yes is a no: an empty line, the end of input, Ctrl+C. */
export async function isYes({ stdin, stdout }: Io, question: string): Promise<boolean> {
  const asking = createInterface({ input: stdin, output: stdout });
  const answer = await new Promise<string>((resolve) => {
    asking.once('close', () => resolve(''));
    asking.question(question, resolve);
  });
  asking.close();
  return /^\s*y(?:es)?\s*$/i.test(answer);
}
