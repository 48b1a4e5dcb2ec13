import { TapedeckError } from '../../errors.ts';
import { FORMATS, type FormatName } from '../../export/formats.ts';
import { readOtlpHeaders, sendOtlp } from '../../export/otlp/send.ts';
import { formatCount } from '../../inspect/view/text.ts';
import { type RedactionProfile, readProfile, ruleIds } from '../../protocol/redact/profile.ts';
import type { Store } from '../../store/file/open.ts';
import { replaceFile, replaceFileSlowly } from '../../store/file/replace-file.ts';
import { countSecrets } from '../../store/keep/redact.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import { findSession, type SessionRow } from '../../store/read/sessions.ts';
import { type Command, type Io, pathOf } from '../io.ts';
import { FILTER_OPTION, READ_OPTIONS, readFilter, selectionOf } from '../options.ts';
import { createProgress, writeOutput } from '../output.ts';
import { PATH_OPTION, REDACTION_OPTIONS } from '../redaction-options.ts';
import { withStore } from '../store.ts';

type Options = {
  session: string;
  db: string | undefined;
  filter: string | undefined;
  format: FormatName | typeof REPORT;
  force: boolean;
  output: string | undefined;
  to: string | undefined;
  'with-arguments': boolean;
  'redact-rule': string[];
  redact: string[];
};

const NAMES = Object.keys(FORMATS) as FormatName[];

/** No format of text alone: the page of the viewer is in it. */
const REPORT = 'html';

const REPORT_DESCRIBE = `${REPORT}: a report, one file that a browser opens and \`import\` takes back`;

const FORMAT_OPTION = {
  choices: [...NAMES, REPORT] as const,
  default: 'ndjson' as const,
  describe: [...NAMES.map((name) => `${name}: ${FORMATS[name].describe}`), REPORT_DESCRIBE].join('; '),
  requiresArg: true,
} as const;

export const exportCommand: Command<Options> = {
  command: 'export [session]',
  describe: 'Write one session as a file, for git or for another program',
  builder: (args) =>
    args
      .positional('session', {
        type: 'string',
        default: 'latest',
        describe: 'An id, the beginning of one, a name, or latest',
      })
      .options({
        ...READ_OPTIONS,
        filter: FILTER_OPTION,
        format: FORMAT_OPTION,
        output: {
          type: 'string',
          alias: 'o',
          describe: 'The file to write, in place of one that is there (default: stdout)',
          requiresArg: true,
        },
        to: {
          type: 'string',
          describe: 'The OpenTelemetry collector to send to, in place of a file: http://127.0.0.1:4318',
          requiresArg: true,
          conflicts: 'output',
        },
        force: {
          type: 'boolean',
          default: false,
          describe: 'html: also where the report becomes larger than 50 MB',
        },
        'with-arguments': {
          type: 'boolean',
          default: false,
          describe: 'otlp: with the arguments and results of tool calls, which may be personal',
        },
        'redact-rule': {
          ...REDACTION_OPTIONS['redact-rule'],
          describe: 'Refuse a session in which this rule finds something: id=/pattern/flags; may be repeated',
        },
        redact: {
          ...PATH_OPTION,
          describe: 'Refuse a session that has a value at this JSON path of a message; may be repeated',
        },
      })
      .example('$0 export > session.ndjson', 'The newest session')
      .example('$0 export staging --output test/staging.ndjson', 'A session by name, as a fixture')
      .example('$0 export --format mermaid', 'A sequence diagram')
      .example(
        "$0 export --format har --filter 'status!=ok' -o failed.har",
        'What failed, for the developer tools of browsers',
      )
      .example(
        '$0 export --format html -o report.html',
        'A session for a bug report, as one file to double-click',
      )
      .example('$0 export --format otlp --to http://127.0.0.1:4318', 'Spans and metrics, to a collector')
      .example('$0 export 4f | diff - before.ndjson', 'What has changed since'),
  async run(
    {
      session: reference,
      db,
      filter: written,
      format,
      output,
      to,
      'with-arguments': withArguments,
      force: isForced,
      ...given
    },
    io,
  ) {
    const profile = readProfile(ruleIds(), given['redact-rule'], given.redact);
    checkFormat(format, to, withArguments);
    const collector = to === undefined ? undefined : collectorOf(to);
    const filter = await readFilter(written);
    await withStore(io, db, { of: 'sessions', references: [reference] }, async (store) => {
      // One view of the store from the first line to the last, whatever recorders add meanwhile.
      store.exec('BEGIN');
      const only = await selectionOf(store, filter);
      const session = findSession(store, reference);
      refuseUnredacted(store, session, profile);
      const how = { format, output, collector, only, withArguments, isForced, filter: written ?? null };
      await writeSession(io, store, session, how);
      store.exec('COMMIT');
    });
  },
};

/** What a project wants redacted leaves the store redacted, also of sessions that were recorded before it wanted that. */
function refuseUnredacted(store: Store, { id, number }: SessionRow, profile: RedactionProfile): void {
  if (profile.rules.length + profile.paths.length === 0) return;
  const { frames, heads, fields } = countSecrets(store, number, profile, () => {});
  if (frames.size + heads + fields === 0) return;
  const rules = [...frames].map(([rule, count]) => `${rule} in ${formatCount(count, 'frame')}`);
  const rest = heads + fields > 0 ? ['in its heads or its row'] : [];
  throw new TapedeckError(
    'refused',
    `Session ${id} has what is to be redacted: ${[...rules, ...rest].join(', ')}. Redact it first, by the same rules: tapedeck redact ${id}`,
  );
}

type Destination = Pick<Options, 'format' | 'output'> & {
  isForced: boolean;
  filter: string | null;
  withArguments: boolean;
  collector: URL | undefined;
  only: FrameSelection | undefined;
};

async function writeSession(
  io: Io,
  store: Store,
  session: SessionRow,
  destination: Destination,
): Promise<void> {
  const { output, collector, format, only, withArguments } = destination;
  const progress = createProgress(io, 'exported', session.frames);
  try {
    const onFrame = progress.advance;
    if (format === REPORT) return await writeReport(io, store, session, destination, onFrame);
    const pieces = FORMATS[format].write(store, session, { onFrame, only, withArguments });
    if (collector !== undefined)
      await sendOtlp(collector, readOtlpHeaders(io.env['OTEL_EXPORTER_OTLP_HEADERS']), pieces);
    else if (output === undefined || output === '-') await writeOutput(io, pieces);
    else replaceFile(pathOf(io, output), pieces);
  } finally {
    progress.end();
  }
}

/** It may be larger than memory. */
async function writeReport(
  io: Io,
  store: Store,
  session: SessionRow,
  { output, only, isForced, filter }: Destination,
  onFrame: (count: number) => void,
): Promise<void> {
  const { makeReport } = await import('../../web/report/report.ts');
  const { checkWork: check } = await import('../../web/slow/check.ts');
  const limit = isForced ? { mostBytes: Number.POSITIVE_INFINITY } : {};
  const pieces = makeReport(store, session, { onFrame, only, filter, check, ...limit });
  if (output === undefined || output === '-') await writeOutput(io, pieces);
  else await replaceFileSlowly(pathOf(io, output), pieces);
}

function collectorOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new TapedeckError(
      'usage',
      `Expected the URL of a collector after --to, like http://127.0.0.1:4318, got \`${text}\`.`,
    );
  return url;
}

function checkFormat(format: Options['format'], to: string | undefined, withArguments: boolean): void {
  if (format === 'otlp') return;
  if (to !== undefined)
    throw new TapedeckError('usage', '--to sends to an OpenTelemetry collector. It needs --format otlp.');
  if (withArguments)
    throw new TapedeckError('usage', '--with-arguments is for --format otlp. The others have them anyway.');
}
