/** Two sessions side by side, as `diff` compares them. */

import { readResultRules } from '../../replay/match/compare.ts';
import { readIgnoreRules } from '../../replay/match/ignore.ts';
import { diffJson, diffSummary } from '../../replay/verify/diff-report.ts';
import { diffingSessions, type SessionDiff } from '../../replay/verify/sessions.ts';
import { emitJson, inSlices, type Job, listOf, progressOf, sessionOf, workOf } from './job.ts';

export const diffWork = workOf(diff);

async function diff(job: Job): Promise<void> {
  const { store } = job;
  const [a, b] = [sessionOf(job, 'a'), sessionOf(job, 'b')];
  const ignore = readIgnoreRules(listOf(job, 'ignore'), listOf(job, 'ignore-tool'));
  const results = readResultRules(listOf(job, 'ignore-result'));
  let found: SessionDiff | undefined;
  function* steps(): Generator<undefined> {
    found = yield* diffingSessions({ store, session: a }, { store, session: b }, ignore, results);
  }
  const tell = progressOf(job, a.exchanges + b.exchanges);
  let calls = 0;
  for await (const _ of inSlices(steps(), job)) {
    calls += 1;
    await tell(calls);
  }
  if (found === undefined) return;
  for await (const line of inSlices(diffJson(found), job))
    await emitJson(
      job,
      'type' in line && line.type === 'summary' ? { ...line, text: diffSummary(found) } : line,
    );
}
