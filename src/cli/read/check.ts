import { createReadStream } from 'node:fs';
import { TapedeckError } from '../../errors.ts';
import { frameLines } from '../../export/text/lines.ts';
import {
  type Assertion,
  type Breach,
  type BrokenAssertion,
  breachJson,
  countBreaches,
  createBreachCounts,
  eachBreach,
  isAbout,
  readAssertions,
} from '../../inspect/assertions.ts';
import { checkSession } from '../../inspect/check/check.ts';
import {
  type Finding,
  isOfProvider,
  RULE_IDS,
  type RuleId,
  SEVERITIES,
  type Severity,
} from '../../inspect/check/rules.ts';
import type { Filter } from '../../inspect/filter/filter.ts';
import {
  findingJson,
  isAtLeast,
  MAX_FINDINGS_OF_RULE,
  NO_SCHEMAS,
  remarksOf,
  type Tally,
  tally,
  unjudgedOf,
} from '../../inspect/findings.ts';
import { createSchemas, type Schemas } from '../../inspect/schema/schemas.ts';
import { terminalStyle } from '../../inspect/view/text.ts';
import { escapeText } from '../../protocol/text.ts';
import type { Source } from '../../sources/source.ts';
import type { Store } from '../../store/file/open.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { VERSION } from '../../version.ts';
import { type Command, type Io, pathOf, say } from '../io.ts';
import {
  ASSERTION_OPTIONS,
  FILTER_OPTION,
  JSON_OPTION,
  READ_OPTIONS,
  readFilter,
  selectionOf,
} from '../options.ts';
import { createProgress, withLineEnds, writeOutput, writeReport } from '../output.ts';
import { RECORDING, withSources } from '../play/source.ts';
import { junitOfChecks, reportLines, ruleLines, type SessionReport, sarifOfChecks } from './check-report.ts';

type Options = {
  recordings: string[];
  db: string | undefined;
  filter: string | undefined;
  json: boolean;
  severity: Severity;
  skip: string[];
  expect: string[];
  forbid: string[];
  max: string[];
  sarif: string | undefined;
  junit: string | undefined;
  rules: boolean;
};

type CheckOptions = Omit<Options, 'filter'> & {
  filter: Filter | undefined;
  assertions: readonly Assertion[];
};

/** Which findings count. */
export const RULE_OPTIONS = {
  severity: {
    choices: SEVERITIES,
    default: 'warning' as const,
    describe: 'Report findings of at least this severity, and exit with 1 if there are any',
    requiresArg: true,
  },
  skip: {
    type: 'string',
    array: true,
    default: [] as string[],
    describe: 'Leave this rule out; may be repeated',
    requiresArg: true,
  },
} as const;

/** Throws `TapedeckError` `usage`. */
export function refuseUnknownRules(skip: readonly string[]): true {
  const unknown = skip.find((id) => !RULE_IDS.includes(id as RuleId));
  if (unknown === undefined) return true;
  throw new TapedeckError(
    'usage',
    `Expected the id of a rule after \`--skip\`, got \`${unknown}\`. See: tapedeck check --rules`,
  );
}

export const checkCommand: Command<Options> = {
  command: 'check [recordings..]',
  describe: 'Check sessions against the rules of the protocol',
  builder: (args) =>
    args
      .positional('recordings', { ...RECORDING, demandOption: false, array: true, default: ['latest'] })
      .options({
        ...READ_OPTIONS,
        filter: FILTER_OPTION,
        json: JSON_OPTION,
        ...RULE_OPTIONS,
        ...ASSERTION_OPTIONS,
        sarif: { type: 'string', describe: 'Write the findings as SARIF 2.1.0', requiresArg: true },
        junit: {
          type: 'string',
          describe: 'Write the findings as JUnit XML, one case per rule',
          requiresArg: true,
        },
        rules: { type: 'boolean', default: false, describe: 'List the rules, and check nothing' },
      })
      .check(({ skip }) => refuseUnknownRules(skip))
      .epilog('Exits with 0 if nothing was found, 1 if something was, 2 if not everything could be checked.')
      .example('$0 check', 'The newest session')
      .example('$0 check staging --severity error', 'A session by name, errors only')
      .example(
        '$0 check recordings/a.ndjson recordings/b.ndjson --sarif check.sarif',
        'Text recordings, in CI',
      )
      .example(
        "$0 check latest --expect 'tool=echo status=ok' --forbid 'tool=delete' --max 'dur<2s'",
        'What must pass in the newest session, what must not, and within which bounds',
      )
      .example('$0 check --rules', 'All rules, a sentence each'),
  async run(options, io) {
    if (options.rules) return writeOutput(io, withLineEnds(ruleLines()));
    const filter = await readFilter(options.filter);
    const assertions = readAssertions(options, Date.now() * 1000);
    const schemas = createSchemas();
    const checked: SessionReport[] = [];
    const asked = new Set<string>();
    try {
      for (const recording of options.recordings)
        checked.push(await checkOne(io, recording, { ...options, filter, assertions }, schemas, asked));
    } finally {
      await schemas.close();
    }
    if (options.sarif !== undefined) writeReport(io, options.sarif, sarifOfChecks(checked, VERSION));
    if (options.junit !== undefined)
      writeReport(io, options.junit, junitOfChecks(checked, assertions, VERSION));
    if (checked.some(hasFaults)) io.exitCode = 1;
    for (const { kind, filter: text } of assertions) {
      if (kind !== 'expect' || asked.has(text)) continue;
      say(io, escapeText(`nobody was asked: --expect '${text}' is about none of these sessions.`));
      io.exitCode = 2;
    }
    if (schemas.hasFailed()) {
      say(io, `${NO_SCHEMAS} Run the check again.`);
      io.exitCode = 2;
    }
  },
};

function hasFaults({ tallies, broken }: SessionReport): boolean {
  return broken.length > 0 || tallies.some(({ rule }) => !isOfProvider(rule));
}

async function checkOne(
  io: Io,
  recording: string,
  options: CheckOptions,
  schemas: Schemas,
  asked: Set<string>,
): Promise<SessionReport> {
  const at = Date.now();
  const file = recording.endsWith('.ndjson') ? recording : null;
  const { name, sessionId, unjudged, tallies, broken } = await withSources(
    io,
    [recording],
    options.db,
    async ([source]) => {
      const { session, store } = source as Source;
      const only = await selectionOf(store, options.filter);
      const isSelected = only === undefined ? () => true : selectedFrames(store, session, only);
      const findings = wantedFindings(io, source as Source, options, schemas, isSelected);
      const held = options.assertions.filter((one) => isAbout(store, session, one));
      for (const { filter } of held) asked.add(filter);
      const breaches = breachesOf(store, session, held, options.filter);
      const shown = file ?? session.name ?? session.id;
      return {
        ...{ name: shown, sessionId: session.id, unjudged: unjudgedOf(store, session) },
        ...(await printFindings(io, source as Source, shown, findings, breaches, options)),
      };
    },
  );
  const hasFindings = tallies.length > 0 || broken.length > 0;
  const hasPlaces = file !== null && options.sarif !== undefined && hasFindings;
  const lines = hasPlaces ? await frameLines(createReadStream(pathOf(io, file))) : [];
  const seconds = (Date.now() - at) / 1000;
  return { name, sessionId, file, unjudged, at, seconds, tallies, broken, lines };
}

type Found = { tallies: Tally[]; broken: BrokenAssertion[] };

async function printFindings(
  io: Io,
  { store, session }: Source,
  name: string,
  findings: Iterable<Finding>,
  breaches: Iterable<Breach>,
  { json, sarif, junit }: CheckOptions,
): Promise<Found> {
  let found: Found = { tallies: [], broken: [] };
  if (json) {
    for (const remark of unjudgedOf(store, session)) {
      const line = { kind: 'remark', recording: name, session: session.id, remark };
      await writeOutput(io, withLineEnds([JSON.stringify(line)]));
    }
    const lines = jsonLines(session, name, findings, breaches, (all) => (found = all));
    await writeOutput(io, withLineEnds(lines));
  } else {
    const isForFile = sarif !== undefined || junit !== undefined;
    const broken = countBreaches(breaches, isForFile ? MAX_FINDINGS_OF_RULE : MAX_SHOWN);
    found = { broken, tallies: tally(findings, isForFile ? MAX_FINDINGS_OF_RULE : undefined) };
    await writeOutput(io, withLineEnds(humanLines(io, session, name, remarksOf(store, session), found)));
  }
  return found;
}

export function* wantedFindings(
  io: Io,
  { store, session }: Source,
  { severity, skip }: Pick<CheckOptions, 'severity' | 'skip'>,
  schemas: Schemas,
  isSelected: (finding: Finding) => boolean,
): Generator<Finding> {
  const progress = createProgress(io, 'checked', session.frames);
  try {
    for (const finding of checkSession(store, session, schemas, progress.advance))
      if (isAtLeast(finding.rule, severity) && !skip.includes(finding.rule) && isSelected(finding))
        yield finding;
  } finally {
    progress.end();
  }
}

export function* breachesOf(
  store: Store,
  session: SessionRow,
  assertions: readonly Assertion[],
  within: Filter | undefined,
): Generator<Breach> {
  for (const one of assertions) yield* eachBreach(store, session, one, within);
}

/** The whole session is checked. Reported is only what concerns a frame of the selection. */
function selectedFrames(
  store: Store,
  session: SessionRow,
  only: FrameSelection,
): (finding: Finding) => boolean {
  const seqs = store
    .prepare<[object], number>(only.sql)
    .pluck()
    .all({ ...only.values, session: session.number });
  const selected = new Set(seqs);
  return ({ place }) => place !== null && selected.has(place.seq);
}

/** Findings as they come; `done` gets what they come to at the end. */
function* jsonLines(
  session: SessionRow,
  name: string,
  findings: Iterable<Finding>,
  breaches: Iterable<Breach>,
  done: (found: Found) => void,
): Generator<string> {
  const broken = createBreachCounts(MAX_FINDINGS_OF_RULE);
  for (const breach of breaches) {
    broken.add(breach);
    yield JSON.stringify(breachJson(name, session.id, breach));
  }
  const kept: Finding[] = [];
  const counts = new Map<RuleId, number>();
  for (const finding of findings) {
    yield JSON.stringify(findingJson(name, session.id, finding));
    const count = (counts.get(finding.rule) ?? 0) + 1;
    counts.set(finding.rule, count);
    if (count <= MAX_FINDINGS_OF_RULE) kept.push(finding);
  }
  const tallies = tally(kept, MAX_FINDINGS_OF_RULE);
  done({
    broken: broken.all(),
    tallies: tallies.map((one) => ({ ...one, count: counts.get(one.rule) ?? one.count })),
  });
}

const MAX_SHOWN = 5;

function* humanLines(
  io: Io,
  session: SessionRow,
  name: string,
  remarks: readonly string[],
  { tallies, broken }: Found,
): Generator<string> {
  const { colors, width } = terminalStyle(io.stdout, io.env);
  const what = `${session.frames} frames, ${RULE_IDS.length} rules`;
  yield `${colors.bold(escapeText(name))} ${colors.dim(what)}`;
  for (const remark of remarks) yield colors.dim(escapeText(remark));
  yield '';
  yield* reportLines(
    tallies.map((one) => ({ ...one, first: one.first.slice(0, MAX_SHOWN) })),
    broken.map((one) => ({ ...one, first: one.first.slice(0, MAX_SHOWN) })),
    { colors, width },
  );
}
