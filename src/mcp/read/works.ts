/** What the reader threads of `tapedeck mcp` do, by name: its tools, and what else is read for a client. */

import { askedWork } from './asked.ts';
import { getCall, listCalls } from './calls.ts';
import { getFrame } from './frames.ts';
import { check, countCalls, diff } from './judge.ts';
import { completeNames, sessionResources, sessionVersions } from './names.ts';
import { searchSessions } from './search.ts';
import { getSession, listSessions } from './sessions.ts';
import { keepCopying, keepUp } from './upkeep.ts';

export const ASK_WORKS = {
  list_sessions: askedWork(listSessions),
  get_session: askedWork(getSession),
  search: askedWork(searchSessions),
  list_calls: askedWork(listCalls),
  get_call: askedWork(getCall),
  get_frame: askedWork(getFrame),
  stats: askedWork(countCalls),
  check: askedWork(check),
  diff: askedWork(diff),
  names: askedWork(completeNames),
  resources: askedWork(sessionResources),
  copying: askedWork(keepCopying),
  upkeep: askedWork(keepUp),
  versions: askedWork(sessionVersions),
};
