import { createReadStream } from 'node:fs';
import { TapedeckError } from '../../errors.ts';
import { frameLines } from '../../export/text/lines.ts';
import { checkSession, isWhole } from '../../inspect/check/check.ts';
import { type Finding, RULE_IDS, type RuleId, SEVERITIES, type Severity } from '../../inspect/check/rules.ts';
import type { Filter } from '../../inspect/filter/filter.ts';
import { createSchemas, type Schemas } from '../../inspect/schema/schemas.ts';
import { terminalStyle } from '../../inspect/view/text.ts';
import { escapeText } from '../../protocol/text.ts';
import type { Source } from '../../sources/source.ts';
import type { Store } from '../../store/file/open.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { VERSION } from '../../version.ts';
import { type Command, type Io, pathOf, say } from '../io.ts';
import { DB_OPTION, FILTER_OPTION, JSON_OPTION, readFilter, selectionOf } from '../options.ts';
import { createProgress, withLineEnds, writeOutput, writeReport } from '../output.ts';
import { RECORDING, withSources } from '../play/source.ts';
import {
  findingLine,
  isAtLeast,
  junitOfChecks,
  reportLines,
  ruleLines,
  type SessionReport,
  sarifText,
  type Tally,
  tally,
} from './check-report.ts';

type Options = {
  recordings: string[];
  db: string | undefined;
  filter: string | undefined;
  json: boolean;
  severity: Severity;
  skip: string[];
  sarif: string | undefined;
  junit: string | undefined;
  rules: boolean;
};

type CheckOptions = Omit<Options, 'filter'> & { filter: Filter | undefined };

/** A report lists at most this many findings per rule and session. Its counts are complete. */
const MAX_IN_FILE = 1000;

const NO_SCHEMAS =
  'the thread that checks JSON Schema did not start, so arguments, results and answers were not held to their schemas. ' +
  'The machine may be too busy, or out of memory. Run the check again.';

export const checkCommand: Command<Options> = {
  command: 'check [recordings..]',
  describe: 'Check sessions against the rules of the protocol',
  builder: (args) =>
    args
      .positional('recordings', { ...RECORDING, demandOption: false, array: true, default: ['latest'] })
      .options({
        db: DB_OPTION,
        filter: FILTER_OPTION,
        json: JSON_OPTION,
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
        sarif: { type: 'string', describe: 'Write the findings as SARIF 2.1.0', requiresArg: true },
        junit: {
          type: 'string',
          describe: 'Write the findings as JUnit XML, one case per rule',
          requiresArg: true,
        },
        rules: { type: 'boolean', default: false, describe: 'List the rules, and check nothing' },
      })
      .check(({ skip }) => {
        const unknown = skip.find((id) => !RULE_IDS.includes(id as RuleId));
        if (unknown === undefined) return true;
        throw new TapedeckError(
          'usage',
          `Expected the id of a rule after \`--skip\`, got \`${unknown}\`. See: tapedeck check --rules`,
        );
      })
      .epilog('Exits with 0 if nothing was found, 1 if something was, 2 if not everything could be checked.')
      .example('$0 check', 'The newest session')
      .example('$0 check staging --severity error', 'A session by name, errors only')
      .example(
        '$0 check recordings/a.ndjson recordings/b.ndjson --sarif check.sarif',
        'Text recordings, in CI',
      )
      .example('$0 check --rules', 'All rules, a sentence each'),
  async run(options, io) {
    if (options.rules) return writeOutput(io, withLineEnds(ruleLines()));
    const filter = await readFilter(options.filter);
    const schemas = createSchemas();
    const checked: SessionReport[] = [];
    try {
      for (const recording of options.recordings)
        checked.push(await checkOne(io, recording, { ...options, filter }, schemas));
    } finally {
      await schemas.close();
    }
    if (options.sarif !== undefined) writeReport(io, options.sarif, sarifText(checked, VERSION));
    if (options.junit !== undefined) writeReport(io, options.junit, junitOfChecks(checked, VERSION));
    if (checked.some(({ tallies }) => tallies.length > 0)) io.exitCode = 1;
    if (schemas.hasFailed()) {
      say(io, NO_SCHEMAS);
      io.exitCode = 2;
    }
  },
};

async function checkOne(
  io: Io,
  recording: string,
  options: CheckOptions,
  schemas: Schemas,
): Promise<SessionReport> {
  const at = Date.now();
  const file = recording.endsWith('.ndjson') ? recording : null;
  const { name, sessionId, tallies } = await withSources(io, [recording], options.db, async ([source]) => {
    const { session, store } = source as Source;
    const only = await selectionOf(store, options.filter);
    const isSelected = only === undefined ? () => true : selectedFrames(store, session, only);
    const findings = wanted(io, source as Source, options, schemas, isSelected);
    const shown = file ?? session.name ?? session.id;
    return {
      ...{ name: shown, sessionId: session.id },
      tallies: await printFindings(io, session, shown, findings, options),
    };
  });
  const hasPlaces = file !== null && options.sarif !== undefined && tallies.length > 0;
  const lines = hasPlaces ? await frameLines(createReadStream(pathOf(io, file))) : [];
  return { name, sessionId, file, at, seconds: (Date.now() - at) / 1000, tallies, lines };
}

async function printFindings(
  io: Io,
  session: SessionRow,
  name: string,
  findings: Iterable<Finding>,
  { json, sarif, junit }: CheckOptions,
): Promise<Tally[]> {
  let tallies: Tally[] = [];
  if (json) await writeOutput(io, withLineEnds(jsonLines(session, name, findings, (all) => (tallies = all))));
  else {
    const isForFile = sarif !== undefined || junit !== undefined;
    tallies = tally(findings, isForFile ? MAX_IN_FILE : undefined);
    await writeOutput(io, withLineEnds(humanLines(io, session, name, tallies)));
  }
  return tallies;
}

function* wanted(
  io: Io,
  { store, session }: Source,
  { severity, skip }: CheckOptions,
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

/** Findings as they come; `done` gets the tallies at the end. */
function* jsonLines(
  session: SessionRow,
  name: string,
  findings: Iterable<Finding>,
  done: (tallies: Tally[]) => void,
): Generator<string> {
  const kept: Finding[] = [];
  const counts = new Map<RuleId, number>();
  for (const finding of findings) {
    yield findingLine(name, session.id, finding);
    const count = (counts.get(finding.rule) ?? 0) + 1;
    counts.set(finding.rule, count);
    if (count <= MAX_IN_FILE) kept.push(finding);
  }
  done(tally(kept, MAX_IN_FILE).map((one) => ({ ...one, count: counts.get(one.rule) ?? one.count })));
}

const MAX_SHOWN = 5;

function* humanLines(
  io: Io,
  session: SessionRow,
  name: string,
  tallies: readonly Tally[],
): Generator<string> {
  const { colors, width } = terminalStyle(io.stdout, io.env);
  const what = `${session.frames} frames, ${RULE_IDS.length} rules`;
  yield `${colors.bold(escapeText(name))} ${colors.dim(what)}`;
  if (!isWhole(session))
    yield colors.dim(
      'It is open, was cut off, lost frames or is from another tool: what is missing at its end is not counted.',
    );
  yield '';
  yield* reportLines(
    tallies.map((one) => ({ ...one, first: one.first.slice(0, MAX_SHOWN) })),
    { colors, width },
  );
}
