/** What is against the rules of the protocol in a session. */

import { checkingSession, isWhole } from '../../inspect/check/check.ts';
import { RULES, type RuleId } from '../../inspect/check/rules.ts';
import {
  createTallies,
  findingJson,
  findingsSummary,
  MAX_FINDINGS_OF_RULE,
  NO_SCHEMAS,
  NOT_WHOLE,
  sentenceOf,
} from '../../inspect/findings.ts';
import { createSchemas } from '../../inspect/schema/schemas.ts';
import type { CheckAnswer, FindingView } from '../api.ts';
import { emitJson, inSlices, type Job, sessionOf, workOf } from './job.ts';

export const checkWork = workOf(check);

async function check(job: Job): Promise<void> {
  const session = sessionOf(job);
  const schemas = createSchemas();
  const found = createTallies(MAX_FINDINGS_OF_RULE);
  try {
    for await (const step of inSlices(checkingSession(job.store, session, schemas), job)) {
      if (typeof step !== 'number') found.add(step);
    }
  } finally {
    await schemas.close();
  }
  const tallies = found.all();
  const name = session.name ?? session.id;
  await emitJson(job, {
    rules: tallies.map(({ rule, count }) => ({ rule, count, ...aboutOf(rule) })),
    findings: tallies.flatMap(({ first }) =>
      first.map((one): FindingView => ({ ...findingJson(name, session.id, one), text: sentenceOf(one) })),
    ),
    summary: findingsSummary(tallies),
    remarks: [...(isWhole(session) ? [] : [NOT_WHOLE]), ...(schemas.hasFailed() ? [NO_SCHEMAS] : [])],
  } satisfies CheckAnswer);
}

function aboutOf(rule: RuleId) {
  const { severity, text: about, url } = RULES[rule];
  return { severity, about, url };
}
