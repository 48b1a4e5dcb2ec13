/** Takes the steps of `tapedeck ci` on one recording after another. What cannot be checked keeps nothing else from being checked. */

import { createReadStream } from 'node:fs';
import type { CiFinding, CiOutcome, CiRecording, CiStep, CiTrouble } from '../../ci/findings.ts';
import { TapedeckError } from '../../errors.ts';
import { frameLines } from '../../export/text/lines.ts';
import { type Assertion, readAssertions } from '../../inspect/assertions.ts';
import type { Severity } from '../../inspect/check/rules.ts';
import { NO_SCHEMAS, unjudgedOf } from '../../inspect/findings.ts';
import { createSchemas, type Schemas } from '../../inspect/schema/schemas.ts';
import { readProfile } from '../../protocol/redact/profile.ts';
import { createRedactor, type Redactor } from '../../protocol/redact/redactor.ts';
import { escapeText } from '../../protocol/text.ts';
import { type ResultRules, readResultRules } from '../../replay/match/compare.ts';
import { type IgnoreRules, readIgnoreRules } from '../../replay/match/ignore.ts';
import { SilentServer, type VerifyOptions } from '../../replay/verify/run.ts';
import type { Connect } from '../../talk/server.ts';
import { type Io, pathOf } from '../io.ts';
import { commandOf, readLiveServer } from '../play/live-server.ts';
import { withSources } from '../play/source.ts';
import { endedBySignals, readVerifyOptions } from '../play/verify.ts';
import { areEqual, type CiBase, findRecordings, openBase } from './recordings.ts';
import { type CiSource, checkStep, diffStep, verifyStep } from './steps.ts';

export type CiOptions = {
  paths: string[];
  url: string | undefined;
  header: string[];
  'read-only': boolean;
  base: string | undefined;
  severity: Severity;
  skip: string[];
  expect: string[];
  forbid: string[];
  max: string[];
  ignore: string[];
  'ignore-tool': string[];
  'ignore-result': string[];
  'redact-rule': string[];
  'no-redact-rule': string[];
};

type Plan = {
  given: readonly string[];
  base: string | undefined;
  severity: Severity;
  skip: string[];
  assertions: readonly Assertion[];
  ignore: IgnoreRules;
  results: ResultRules;
  redactor: Redactor;
  /** Null without a server. */
  connect: Connect | null;
  verifying: VerifyOptions;
};

const TIMEOUT_SECONDS = 60;

/** Throws `TapedeckError` `usage`: what is wrong with a command line is no finding. */
export function readPlan(argv: CiOptions, io: Io): Plan {
  const hasServer = argv.url !== undefined || commandOf(argv).length > 0 || argv.header.length > 0;
  const asking = { ...argv, only: [], skip: [], timeout: TIMEOUT_SECONDS };
  const profile = readProfile(argv['no-redact-rule'], argv['redact-rule'], []);
  return {
    given: argv.paths,
    base: argv.base,
    severity: argv.severity,
    skip: argv.skip,
    assertions: readAssertions(argv, Date.now() * 1000),
    ignore: readIgnoreRules(argv.ignore, argv['ignore-tool']),
    results: readResultRules(argv['ignore-result']),
    redactor: createRedactor(profile, () => 'hidden'),
    connect: hasServer ? readLiveServer(withoutToken(io), argv, 'tapedeck ci recordings').connect : null,
    verifying: readVerifyOptions(asking, () => {}),
  };
}

/** What comments on a pull request is no business of the server's. */
function withoutToken(io: Io): Pick<Io, 'stderr' | 'env' | 'cwd'> {
  const { GITHUB_TOKEN: _, ...env } = io.env;
  return { stderr: io.stderr, env, cwd: () => io.cwd() };
}

type Run = {
  recordings: CiRecording[];
  findings: CiFinding[];
  troubles: CiTrouble[];
  asked: Set<string>;
  schemas: Schemas;
  base: CiBase | null;
};

/** Null where a signal has ended it. */
export async function runPlan(plan: Plan, io: Io): Promise<CiOutcome | null> {
  const run: Run = {
    ...{ recordings: [], findings: [], troubles: [], asked: new Set(), schemas: createSchemas(), base: null },
  };
  const { connect, stopped, ignoreSignals } = endedBySignals(io, plan.connect ?? noServer);
  try {
    const done = await Promise.race([takeAll(plan, connect, run, io), stopped]);
    return done === null ? null : { ...run, severity: plan.severity };
  } finally {
    ignoreSignals();
    run.base?.close();
    await run.schemas.close();
  }
}

function noServer(): never {
  throw new TapedeckError('usage', 'There is no server.');
}

async function takeAll(plan: Plan, connect: Connect, run: Run, io: Io): Promise<true> {
  const { given, base, assertions } = plan;
  const files = (await attempt(run, 'find', null, () => findRecordings(io.cwd(), given))) ?? [];
  if (files.length === 0 && run.troubles.length === 0)
    run.troubles.push({
      step: 'find',
      file: null,
      message: `There is no text recording in ${given.join(', ')}.`,
    });
  if (base !== undefined)
    run.base = await attempt(run, 'diff', null, () => openBase(io.cwd(), base, given, io.env));
  for (const file of files) await takeOne(plan, connect, run, io, file);
  for (const file of run.base?.files ?? []) if (!files.includes(file)) run.findings.push(removed(file));
  for (const { kind, filter } of assertions)
    if (kind === 'expect' && files.length > 0 && !run.asked.has(filter))
      run.troubles.push({
        step: 'check',
        file: null,
        message: `\`expect ${filter}\` is about none of them.`,
      });
  if (run.schemas.hasFailed()) run.troubles.push({ step: 'check', file: null, message: NO_SCHEMAS });
  return true;
}

function removed(file: string): CiFinding {
  const what = 'the recording was removed';
  return {
    ...{ step: 'diff', rule: 'recording-changed', severity: 'note', file, session: '', seq: null, line: 1 },
    ...{ what, names: [], detail: what },
  };
}

async function takeOne(plan: Plan, connect: Connect, run: Run, io: Io, file: string): Promise<void> {
  const row: CiRecording = { file, session: null, unjudged: [], check: null, verify: null, diff: null };
  run.recordings.push(row);
  const take = async (step: CiStep, work: () => StepResult | Promise<StepResult>) => {
    const result = await attempt(run, step, file, work);
    row[step] = result?.words ?? 'failed';
    run.findings.push(...(result?.findings ?? []));
  };
  await attempt(run, 'check', file, () =>
    withSources(io, [file], undefined, async ([source]) => {
      if (source === undefined) return;
      row.session = source.session.id;
      row.unjudged = unjudgedOf(source.store, source.session);
      const lines = await frameLines(createReadStream(pathOf(io, file)));
      const ci: CiSource = { source, file, lines, redactor: plan.redactor };
      await take('check', () => checkStep(io, ci, plan, plan.assertions, run.schemas, run.asked));
      if (plan.connect !== null) await take('verify', () => verifyStep(ci, connect, plan.verifying));
      const { base } = run;
      if (base !== null) await take('diff', () => diffWithBase(plan, base, ci, io));
    }),
  );
}

type StepResult = Awaited<ReturnType<typeof verifyStep>>;

async function diffWithBase(plan: Plan, base: CiBase, ci: CiSource, io: Io): Promise<StepResult> {
  const copy = base.copyOf(ci.file);
  if (copy === null) return diffStep(ci, null, plan.ignore, plan.results);
  if (areEqual(copy, pathOf(io, ci.file))) return { words: 'the same', findings: [] };
  return withSources(io, [copy], undefined, ([before]) =>
    diffStep(ci, before ?? null, plan.ignore, plan.results),
  );
}

/** What people can mend is a trouble of this run, and told with the others; a fault of ours is not. */
async function attempt<T>(
  run: Run,
  step: CiTrouble['step'],
  file: string | null,
  work: () => T | Promise<T>,
): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    const isTold = error instanceof TapedeckError || error instanceof SilentServer;
    const isSystem = error instanceof Error && 'code' in error;
    if (!isTold && !isSystem) throw error;
    run.troubles.push({ step, file, message: escapeText((error as Error).message) });
    return null;
  }
}
