/** What faults a recorded session would get: the plan of `--fault-plan`, without a client. */

import { type Channel, directionOf, type Frame } from '../protocol/wire/frame.ts';
import type { Recording } from '../replay/recording/recording.ts';
import type { ScriptLine } from '../replay/recording/script.ts';
import { createFaults, type FaultSettings } from './faults.ts';

/** One line for each recorded message that would get a fault, and one with how many there are. */
export function faultPlan(recording: Recording, settings: FaultSettings): string[] {
  const faults = createFaults({ ...settings, showsPlan: true });
  for (const line of recording.lines()) faults.choose(frameOf(line, recording.load(line.place)));
  const lines = faults.planTexts();
  faults.close();
  return lines;
}

function frameOf({ direction, at, httpExchange }: ScriptLine, payload: Buffer): Frame {
  const [heard, said]: [Channel, Channel] =
    httpExchange === null ? ['stdin', 'stdout'] : ['request', 'response'];
  const channel = direction === directionOf(heard) ? heard : said;
  const isLine = httpExchange === null;
  const http = isLine ? null : { exchange: httpExchange, marks: [], original: null, sha256: null };
  const [part, lineEnd] = isLine ? (['line', '\n'] as const) : (['body', ''] as const);
  return { channel, at, payload, lineEnd, size: payload.length, truncated: false, part, http };
}
