/** What is against the rules of the protocol in a session. */

import { checkingSession } from '../../inspect/check/check.ts';
import { RULES, type RuleId } from '../../inspect/check/rules.ts';
import {
  createTallies,
  findingJson,
  findingsSummary,
  MAX_FINDINGS_OF_RULE,
  NO_SCHEMAS,
  remarksOf,
  sentenceOf,
} from '../../inspect/findings.ts';
import { createSchemas } from '../../inspect/schema/schemas.ts';
import { prepareFates } from '../../inspect/verdict/fate.ts';
import { fateText } from '../../inspect/view/fate.ts';
import { lastSeqOf, prepareMessagesBetween } from '../../store/read/frames.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import type { CheckAnswer, FateView, FindingView } from '../api.ts';
import { emitSession, sessionWork } from '../fast/session.ts';
import { emitFreshness } from '../params.ts';
import type { Work } from '../work.ts';
import { emitJson, inSlices, type Job, sessionOf, workOf } from './job.ts';

export const checkWork = workOf(check);

async function check(job: Job): Promise<void> {
  const session = sessionOf(job);
  const { tallies, hasSchemas } = await tally(job, session);
  const name = session.name ?? session.id;
  await emitJson(job, {
    rules: tallies.map(({ rule, count }) => ({ rule, count, ...aboutOf(rule) })),
    findings: tallies.flatMap(({ first }) =>
      first.map((one): FindingView => ({ ...findingJson(name, session.id, one), text: sentenceOf(one) })),
    ),
    summary: findingsSummary(tallies),
    remarks: [...remarksOf(job.store, session), ...(hasSchemas ? [] : [NO_SCHEMAS])],
    fates: await fatesOf(job, session),
  } satisfies CheckAnswer);
}

async function tally(job: Job, session: SessionRow) {
  const schemas = createSchemas();
  const found = createTallies(MAX_FINDINGS_OF_RULE);
  try {
    for await (const step of inSlices(checkingSession(job.store, session, schemas), job)) {
      if (typeof step !== 'number') found.add(step);
    }
  } finally {
    await schemas.close();
  }
  return { tallies: found.all(), hasSchemas: !schemas.hasFailed() };
}

/** A session as the fast reader answers it, with the number of its findings. */
export const sessionWithFindingsWork: Work = async (store, params, emit, isLeft) => {
  if (params['findings'] === undefined) return sessionWork(store, params, emit, isLeft);
  const job = { store, params, emit, isLeft };
  const session = sessionOf(job);
  if (await emitFreshness(store, session, params, emit)) return;
  const { tallies } = await tally(job, session);
  const count = tallies.reduce((sum, one) => sum + one.count, 0);
  await emitSession(store, session, count, emit);
};

const MOST_FATES = 1000;

const FRAMES_A_STEP = 200;

async function fatesOf(job: Job, session: SessionRow): Promise<FateView[]> {
  const fates: FateView[] = [];
  for await (const fate of inSlices(eachFate(job, session), job)) {
    if (fate !== null) fates.push(fate);
    if (fates.length === MOST_FATES) break;
  }
  return fates;
}

/** Null: so far nothing more was found. */
function* eachFate({ store }: Job, session: SessionRow): Generator<FateView | null> {
  const fateOf = prepareFates(store, session);
  const messagesBetween = prepareMessagesBetween(store, session.number);
  const last = lastSeqOf(store, session.number);
  for (let after = 0; after < last; after += FRAMES_A_STEP) {
    for (const row of messagesBetween(after, after + FRAMES_A_STEP)) {
      const fate = fateOf(row);
      if (fate === null || fate.verdict === 'open' || fate.verdict === 'unknown') continue;
      yield { seq: row.seq, n: row.n, verdict: fate.verdict, text: fateText(fate) };
    }
    yield null;
  }
}

function aboutOf(rule: RuleId) {
  const { severity, text: about, url } = RULES[rule];
  return { severity, about, url };
}
