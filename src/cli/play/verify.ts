import { TapedeckError } from '../../errors.ts';
import type { RawFaults } from '../../fault/faults.ts';
import { escapeText } from '../../protocol/text.ts';
import { readResultRules } from '../../replay/match/compare.ts';
import { readIgnoreRules } from '../../replay/match/ignore.ts';
import { isReadOnly, type Recording, readRecording } from '../../replay/recording/recording.ts';
import type { CallTopic } from '../../replay/recording/topics.ts';
import { SilentServer, type Verification, type VerifyOptions, verify } from '../../replay/verify/run.ts';
import type { Connect, LiveServer } from '../../talk/server.ts';
import { asksForFaults, FAULT_OPTIONS } from '../fault-options.ts';
import { type Command, type Io, ignoreErrors, onStopSignals } from '../io.ts';
import { JSON_OPTION, READ_OPTIONS } from '../options.ts';
import { writeReport } from '../output.ts';
import { HEADER_OPTION, readLiveServer, readTimeout } from './live-server.ts';
import { openSource, RECORDING, sayMetaOnly, sayReserialised } from './source.ts';
import {
  checkedJson,
  checkedLines,
  junitReport,
  listJson,
  listLines,
  markdownText,
  summaryJson,
  summaryLine,
  summaryOf,
} from './verify-report.ts';

type Options = RawFaults & {
  recording: string;
  url: string | undefined;
  db: string | undefined;
  only: string[];
  skip: string[];
  'read-only': boolean;
  ignore: string[];
  'ignore-tool': string[];
  'ignore-result': string[];
  timeout: number;
  header: string[];
  json: boolean;
  junit: string | undefined;
  markdown: string | undefined;
};

const LIST = { type: 'string', array: true, default: [] as string[] } as const;

/** Hidden, so that whoever tries them is told why not. */
const REFUSED_OPTIONS = Object.fromEntries(
  Object.entries(FAULT_OPTIONS).map(([name, { type }]) => [name, { type, hidden: true } as const]),
);

export const verifyCommand: Command<Options> = {
  command: 'verify <recording> [url]',
  describe: 'Play the client’s part against a live server, and compare its answers with the recorded ones',
  builder: (args) =>
    args
      .usage(
        '$0 verify <recording> [options] -- <command> [args…]\n$0 verify <recording> [options] <url>\n\nAsks a live server what the recorded client asked, in the same order, and compares what it answers.\nTool calls can have side effects: what the recorded client did is done again. --read-only,\n--only and --skip limit what is asked.',
      )
      .positional('recording', RECORDING)
      .positional('url', {
        type: 'string',
        describe: 'A server’s URL (Streamable HTTP, or the older HTTP+SSE), instead of a command',
      })
      .options({
        ...READ_OPTIONS,
        'read-only': {
          type: 'boolean',
          default: false,
          describe: 'Call only tools whose annotations say readOnlyHint',
        },
        only: {
          ...LIST,
          describe: 'Send only requests of this method or tool, besides initialize; may be repeated',
        },
        skip: {
          ...LIST,
          describe: 'Leave out this method or tool, or do not compare this notification; may be repeated',
        },
        'ignore-result': {
          ...LIST,
          describe: 'A JSON path in results to leave out, or for one tool: name:$.path; may be repeated',
        },
        ignore: {
          ...LIST,
          describe:
            'A JSON path to leave out in the params of the server’s requests and notifications; may be repeated',
        },
        'ignore-tool': {
          ...LIST,
          describe:
            'An argument of a tool to leave out where tools are compared: name:$.path; may be repeated',
        },
        timeout: {
          type: 'number',
          default: 60,
          describe: 'How many seconds to wait for each answer',
          requiresArg: true,
        },
        ...REFUSED_OPTIONS,
        header: HEADER_OPTION,
        json: JSON_OPTION,
        junit: { type: 'string', describe: 'Write a JUnit report into this file', requiresArg: true },
        markdown: { type: 'string', describe: 'Write a Markdown report into this file', requiresArg: true },
      })
      .example('$0 verify demo -- npx -y my-mcp-server', 'Does the new version answer like the recorded one?')
      .example(
        '$0 verify recordings/search.ndjson https://api.example.com/mcp --read-only',
        'Call only tools that change nothing',
      )
      .example('$0 verify demo --ignore-result now:$.content --junit out.xml -- ./server', 'In CI')
      .epilog('Exits with 0 if everything is equal, 1 if not, 2 if it could not run.') as never,
  async run(argv, io) {
    refuseFaults(argv);
    const target = readLiveServer(io, argv, 'tapedeck verify demo');
    const options = readVerifyOptions(argv, (checked) =>
      printLines(io, argv.json ? [checkedJson(checked)] : checkedLines(checked)),
    );
    // The exit code counts even where the reader of stdout has left.
    ignoreErrors(io.stdout);
    const { store, session, keyStores, close } = await openSource(io, argv.recording, argv.db);
    const { connect, stopped, ignoreSignals } = endedBySignals(io, target.connect);
    try {
      const recording = readRecording(store, session, keyStores);
      checkNames(recording, [...argv.only, ...argv.skip.filter((name) => !isNews(name))]);
      sayReserialised(io, session);
      sayMetaOnly(io, { store, session });
      const at = Date.now();
      const verification = await Promise.race([verify(recording, connect, options), stopped]);
      if (verification !== null) report(io, verification, argv, at);
      io.exitCode = verification === null ? STOPPED : summaryOf(verification).isEqual ? 0 : 1;
    } catch (error) {
      if (!(error instanceof SilentServer)) throw error;
      throw new TapedeckError('io', escapeText(error.message), { cause: error });
    } finally {
      ignoreSignals();
      close();
    }
  },
};

const STOPPED = 2;

type Stoppable = { connect: Connect; stopped: Promise<null>; ignoreSignals: () => void };

/** Servers that are not left behind when we are stopped. Until there is one, signals are left alone. */
export function endedBySignals(io: Io, connect: Connect): Stoppable {
  const ends: (() => void)[] = [];
  let onStopped = (_: null) => {};
  const stopped = new Promise<null>((resolve) => {
    onStopped = resolve;
  });
  async function stop(server: LiveServer): Promise<void> {
    await server.close();
    io.exit(STOPPED);
    onStopped(null);
  }
  return {
    stopped,
    connect(events) {
      const server = connect(events);
      ends.push(onStopSignals(io, () => void stop(server)));
      return server;
    },
    ignoreSignals() {
      for (const end of ends) end();
    },
  };
}

type Asking = Pick<
  Options,
  'only' | 'skip' | 'read-only' | 'ignore' | 'ignore-tool' | 'ignore-result' | 'timeout'
>;

/** Throws `TapedeckError` `usage`. */
export function readVerifyOptions(argv: Asking, onChecked: VerifyOptions['onChecked']): VerifyOptions {
  const { only, skip } = argv;
  const isNamed = (names: readonly string[], { method, target }: CallTopic) =>
    names.includes(method) || (method === 'tools/call' && target !== null && names.includes(target));
  return {
    ignore: readIgnoreRules(argv.ignore, argv['ignore-tool']),
    resultRules: readResultRules(argv['ignore-result']),
    timeoutMs: readTimeout(argv.timeout),
    whySkipped(asked, recordedTools, liveTools) {
      if (asked.method === 'initialize') return null;
      if (only.length > 0 && !isNamed(only, asked)) return 'not in --only';
      if (isNamed(skip, asked)) return 'in --skip';
      if (!argv['read-only'] || asked.method !== 'tools/call') return null;
      // The live server's annotations count before the recorded ones.
      const tool = liveTools.get(asked.target ?? '') ?? recordedTools.get(asked.target ?? '');
      return isReadOnly(tool) ? null : 'not said to be read-only';
    },
    isNewsSkipped: (method) => skip.includes(method),
    onChecked,
  };
}

function isNews(method: string): boolean {
  return method.startsWith('notifications/');
}

/** A misspelt name would leave out everything or nothing. */
function checkNames({ script, load, read }: Recording, names: readonly string[]): void {
  const known = new Set<string>();
  for (let call = 0; call < script.size; call += 1) {
    const message = read(load(script.placeOf(call)));
    if (message?.kind !== 'request') continue;
    known.add(message.canonical);
    if (message.canonical === 'tools/call') known.add(message.details.target ?? '');
  }
  if (known.size === 0) throw new TapedeckError('refused', 'The recording has no request of a client in it.');
  const unknown = names.find((name) => !known.has(name));
  if (unknown === undefined) return;
  const all = [...known].map((name) => escapeText(name)).join(', ');
  throw new TapedeckError('not-found', `The recording has no method or tool \`${unknown}\`. It has: ${all}.`);
}

function report(
  io: Io,
  verification: Verification,
  { recording, json, junit, markdown }: Options,
  at: number,
): void {
  printLines(
    io,
    verification.lists.flatMap((change) => (json ? [listJson(change)] : listLines(change))),
  );
  printLines(io, [json ? summaryJson(summaryOf(verification)) : summaryLine(verification)]);
  if (junit !== undefined) writeReport(io, junit, junitReport(recording, verification, at));
  if (markdown !== undefined) writeReport(io, markdown, markdownText(recording, verification));
}

function printLines(io: Io, lines: readonly string[]): void {
  if (lines.length > 0) io.stdout.write(`${lines.join('\n')}\n`);
}

/** Throws `TapedeckError` `usage`. */
function refuseFaults(argv: Options): void {
  if (asksForFaults(argv))
    throw new TapedeckError(
      'usage',
      '`--fault` does not go with `verify`, which compares what the server itself answers: every fault would be a difference. To put faults in, use `record` or `replay`.',
    );
}
