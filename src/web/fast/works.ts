/** What is answered at once. Whatever may take longer than a few dozen milliseconds belongs to the slow works. */

import type { Work } from '../work.ts';
import { bytesWork, originalWork } from './bytes.ts';
import { framesWork, frameWork } from './frames.ts';
import { httpExchangesWork, httpExchangeWork } from './http.ts';
import { outlineWork } from './outline.ts';
import { sessionWork } from './session.ts';
import { aboutWork, sessionsWork } from './sessions.ts';

export const FAST_WORKS: Readonly<Record<string, Work>> = {
  about: aboutWork,
  sessions: sessionsWork,
  session: sessionWork,
  outline: outlineWork,
  frames: framesWork,
  frame: frameWork,
  bytes: bytesWork,
  original: originalWork,
  'http-exchanges': httpExchangesWork,
  'http-exchange': httpExchangeWork,
};
