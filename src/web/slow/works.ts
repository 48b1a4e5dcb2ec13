/** What may take long. Each has a thread to itself, which is ended where it does not find out that its client has left. */

import { httpExchangesWork } from '../fast/http.ts';
import { sessionsWork } from '../fast/sessions.ts';
import type { Work } from '../work.ts';
import { checkWork, sessionWithFindingsWork } from './check.ts';
import { completeWork } from './complete.ts';
import { diffWork } from './diff.ts';
import { exportWork } from './export.ts';
import { runsWork, runWork } from './runs.ts';
import { searchWork } from './search.ts';
import { selectWork } from './select.ts';
import { httpSnippetWork, snippetWork } from './snippet.ts';
import { statsWork } from './stats.ts';

export const SLOW_WORKS = {
  sessions: sessionsWork,
  session: sessionWithFindingsWork,
  'http-exchanges': httpExchangesWork,
  select: selectWork,
  search: searchWork,
  check: checkWork,
  stats: statsWork,
  diff: diffWork,
  complete: completeWork,
  snippet: snippetWork,
  'http-snippet': httpSnippetWork,
  export: exportWork,
  runs: runsWork,
  run: runWork,
} as const satisfies Record<string, Work>;
