import { TapedeckError } from '../../errors.ts';
import { type RedactionProfile, readProfile } from '../../protocol/redact/profile.ts';
import { escapeText } from '../../protocol/text.ts';
import { type LiveRecorderEnd, MODES, type Mode, planMode } from '../../replay/live/recorder.ts';
import { COMMAND_LINE_WORDS, TEST_KIT_WORDS } from '../../replay/match/hints.ts';
import { createMatching, type Matching } from '../../replay/match/matching.ts';
import type { Repeat } from '../../replay/match/repeat.ts';
import { createMock, needsNoReading } from '../../replay/mock.ts';
import { createReadyAnswers } from '../../replay/play/ready.ts';
import type { ReplayEvents } from '../../replay/play/request.ts';
import type { Speed } from '../../replay/play/timetable.ts';
import { joinRecordings } from '../../replay/recording/joined.ts';
import { type Recording, readRecording } from '../../replay/recording/recording.ts';
import { redactedSkillFiles } from '../../replay/recording/skills.ts';
import { type LiveTarget, openPlayback, type Playback } from '../../sources/playback.ts';
import { isTextRecording, type Source } from '../../sources/source.ts';
import { FAULT_OPTIONS } from '../fault-options.ts';
import { type Command, type Io, pathOf, say, storeOf } from '../io.ts';
import { READ_OPTIONS } from '../options.ts';
import { isHttpUrl } from '../record/http-options.ts';
import { PATH_OPTION, REDACTION_OPTIONS } from '../redaction-options.ts';
import { commandOf, HEADER_OPTION, readLiveServer, readTimeout } from './live-server.ts';
import { type CallsFile, createReplayLog, openCallsFile, type ReplayLog } from './log.ts';
import { checkServing, createStop, loadFaults, type ServingOptions, type Stop, serve } from './serving.ts';
import { openSource, RECORDING, sayMetaOnly, sayReserialised } from './source.ts';
import { checkSuggestOptions, SUGGEST_OPTIONS, suggestIgnore } from './suggest.ts';

type Options = ModeOptions &
  ServingOptions & {
    repeat: Repeat;
    ignore: string[];
    'ignore-tool': string[];
    'any-value': string[];
    'any-order': string[];
    speed: string;
    report: string | undefined;
    calls: string | undefined;
    'fail-on-miss': boolean;
    'prune-unused': boolean;
    stub: boolean;
    save: string | undefined;
    'suggest-ignore': string | undefined;
    json: boolean;
    hints: 'cli' | 'kit';
  };

const FOUND_SOMETHING = 1;

const NO_SERVER = 2;

const REPLAY_OPTIONS = {
  ...READ_OPTIONS,
  mode: {
    choices: MODES,
    default: 'none',
    describe: 'When a live server is asked, and its answers are added to the recording',
    requiresArg: true,
  },
  'record-failures': {
    type: 'boolean',
    default: false,
    describe: 'Also add calls that the live server failed to answer: it died, was slow, or was not there',
  },
  timeout: {
    type: 'number',
    default: 300,
    describe: 'How many seconds a live call may take without a sign of life',
    requiresArg: true,
  },
  header: HEADER_OPTION,
  stub: {
    type: 'boolean',
    default: false,
    describe:
      'Ask a live server once what it offers, and answer in its place with invented results that fit its schemas',
  },
  save: {
    type: 'string',
    describe:
      'With --stub: write what the live server offers into this file, for stubs without it; serve nobody',
    requiresArg: true,
  },
  ...REDACTION_OPTIONS,
  redact: PATH_OPTION,
  repeat: {
    choices: ['error', 'last', 'cycle'],
    default: 'error' as Repeat,
    describe: 'How to answer a call that comes more often than it was recorded',
  },
  ignore: {
    type: 'string',
    array: true,
    default: [] as string[],
    requiresArg: true,
    describe: 'A JSON path in params to leave out, such as $.arguments.now; may be repeated',
  },
  'ignore-tool': {
    type: 'string',
    array: true,
    default: [] as string[],
    requiresArg: true,
    describe: 'The same in the arguments of one tool, as name:$.path; may be repeated',
  },
  'any-value': {
    type: 'string',
    array: true,
    default: [] as string[],
    requiresArg: true,
    describe:
      'A JSON path in params, or tool:$.path in arguments, that must be there, with any value; may be repeated',
  },
  'any-order': {
    type: 'string',
    array: true,
    default: [] as string[],
    requiresArg: true,
    describe: 'The same for an array whose elements may come in any order; may be repeated',
  },
  speed: {
    type: 'string',
    default: 'fast',
    describe: 'fast, recorded, or a factor: 2 is twice as fast as recorded',
    requiresArg: true,
  },
  listen: {
    type: 'string',
    describe: 'Answer over HTTP at host:port (port 0 takes a free one), not over stdio',
    requiresArg: true,
  },
  'allow-host': {
    type: 'string',
    array: true,
    default: [] as string[],
    requiresArg: true,
    describe: 'With --listen: a Host header to accept, besides loopback; may be repeated',
  },
  'allow-origin': {
    type: 'string',
    array: true,
    default: [] as string[],
    requiresArg: true,
    describe: 'With --listen: an Origin to accept requests from; may be repeated',
  },
  report: {
    type: 'string',
    describe:
      'Write every miss, other answer and malformed input into this file, in full; in other modes than none as JSON lines, with what was added',
    requiresArg: true,
  },
  calls: {
    type: 'string',
    describe: 'Append every call and its outcome to this file, one JSON object per line',
    requiresArg: true,
  },
  'fail-on-miss': {
    type: 'boolean',
    default: false,
    describe: 'Exit with 1 after any miss, other answer or malformed input, answered live or not',
  },
  hints: {
    choices: ['cli', 'kit'],
    default: 'cli',
    hidden: true,
    describe: 'Whose words misses use for options',
  },
  'prune-unused': {
    type: 'boolean',
    default: false,
    describe: 'At the end, remove from the text recording the calls that nobody has asked for',
  },
  ...SUGGEST_OPTIONS,
  fault: { ...FAULT_OPTIONS.fault, array: true, default: [] as string[], requiresArg: true },
  seed: { ...FAULT_OPTIONS.seed, requiresArg: true },
  'max-faults': { ...FAULT_OPTIONS['max-faults'], requiresArg: true },
  'fault-plan': FAULT_OPTIONS['fault-plan'],
} as const;

export const replayCommand: Command<Options> = {
  command: 'replay [recording...]',
  describe: 'Answer a client as the recorded server did',
  builder: (args) =>
    args
      .usage(
        '$0 replay <recording…> [options]\n$0 replay <recording> --mode <mode> [options] -- <command> [args…]\n$0 replay <recording> --mode <mode> [options] <url>\n$0 replay --stub [options] -- <command> [args…]\n$0 replay --stub [options] <url>\n$0 replay --stub [options] <offer.json>\n\nAnswers a client as the recorded server did. Depending on the mode, it asks a live server what the recording does not have, and adds the answers:\n  none          never reach a server; what was not recorded is an error\n  once          record all if there is no such recording yet; else like none\n  new_episodes  play what is recorded, ask live for the rest, and add that\n  all           record everything anew, in place of what is there\n\nWith --stub nothing needs to be recorded: a live server is asked once for its handshake and its lists, and for nothing else. Every call then gets an invented answer that fits the schemas, and says so.',
      )
      .positional('recording', {
        ...RECORDING,
        array: true,
        // A stub has none.
        demandOption: false,
        describe: `${RECORDING.describe}; several are replayed as one; behind it the live server’s URL`,
      })
      .options(REPLAY_OPTIONS)
      .example('$0 replay demo', 'In a client’s config, in place of the server’s command')
      .example('$0 replay recordings/search.ndjson', 'A text recording, as it stands in a repository')
      .example('$0 replay monday tuesday', 'Two sessions, as one recording')
      .example('$0 replay demo --listen 127.0.0.1:0', 'Over HTTP, even if it was recorded over stdio')
      .example(
        "$0 replay demo --fault 'tool=search tool-error p=0.2' --seed 7",
        'One search in five fails, the same ones in each run',
      )
      .example('$0 replay demo --ignore-tool search:$.now --fail-on-miss', 'In a test')
      .example(
        '$0 replay monday --suggest-ignore tuesday',
        'The arguments that differ from run to run, as options to paste',
      )
      .example(
        '$0 replay test/search.ndjson --mode once -- ./server',
        'Record in the first run, replay in all others',
      )
      .example(
        '$0 replay demo --mode new_episodes https://api.example.com/mcp',
        'Add what the recording lacks',
      )
      .example(
        '$0 replay --stub -- ./server',
        'Answer with what fits the schemas, where nothing was recorded',
      )
      .example(
        '$0 replay --stub --save offer.json -- ./server',
        'Keep what a stub needs of the server, so that tests can do without: $0 replay --stub offer.json',
      )
      .epilog(
        'Without --mode and --stub no server is started or reached. Exits with 1 after a miss with --fail-on-miss, or where --mode all could not replace the recording; with 2 where the live server never answered, or the recording cannot be written.',
      ) as never,
  async run(words, io) {
    const argv = withTarget(words);
    // Loaded where it is asked for, because recordings are replayed more often.
    if (argv.stub) return (await import('./stub.ts')).replayStub(io, argv, readRedaction(argv));
    checkOptions(argv);
    if (argv['suggest-ignore'] === undefined) return replay(io, argv);
    readTarget(io, argv);
    return suggestIgnore(io, argv, argv['suggest-ignore']);
  },
};

async function replay(io: Io, argv: Options): Promise<void> {
  const calls = openCallsFile(io, argv.calls);
  try {
    const log = createReplayLog(io, argv.report, argv.mode !== 'none');
    try {
      await play(io, argv, log, calls);
    } finally {
      log.close();
    }
  } finally {
    calls.close();
  }
}

/**
 * A fixture is read before the first client comes, so that most calls take no time to speak of: 6,000 in 150 to 250 ms. Measured
 * with those, 64 in flight: 31,000 instead of 16,000 answers a second. Of a longer recording the beginning is read.
 */
const READ_AHEAD = { calls: 8_000, ms: 400 };

/** Answers clients until they have left or a signal has come. Sets the exit code. */
async function play(io: Io, argv: Options, log: ReplayLog, calls: CallsFile): Promise<void> {
  const faults = await loadFaults(argv);
  const playback = await openDeck(io, argv, log);
  const { recording, live, plan, finish } = playback;
  let stop: Stop | undefined;
  let leave: (() => void) | null = null;
  try {
    if (faults?.settings.showsPlan) return await faults.printPlan(io, recording, faults.settings);
    const matching = createMatching(recording, {
      repeat: argv.repeat,
      ignore: argv.ignore,
      ignoreTool: argv['ignore-tool'],
      anyValue: argv['any-value'],
      anyOrder: argv['any-order'],
      words: argv.hints === 'kit' ? TEST_KIT_WORDS : COMMAND_LINE_WORDS,
      sharesClients: !plan.asks,
    });
    const speed = readSpeed(argv.speed);
    const events: ReplayEvents = {
      ...calls,
      onRefusal(refusal, request) {
        log.miss(refusal);
        calls.onRefusal?.(refusal, request);
      },
      onNotice: log.notice,
    };
    const options = { recording, matching, speed, events, live };
    const ready = needsNoReading(options) ? createReadyAnswers(recording) : null;
    if (plan.plays) matching.readAhead(READ_AHEAD, ready?.add);
    const mock = createMock({ ...options, ready });
    sayReserialised(io, recording.session);
    sayRedactedSkills(io, recording);
    // Until here a signal ends the process at once, however large the recording is.
    stop = createStop(io);
    leave = await serve(io, recording, mock, argv, faults, stop.asked);
    if (plan.plays) sayUnasked(io, matching);
    if (argv['prune-unused']) pruneUnused(io, playback, matching);
    for (const remark of matching.idlePaths()) say(io, escapeText(remark));
    const finished = finish?.();
    // A user who has sent a signal may not wait for a server that does not end by itself.
    void stop.asked.then(() => live?.close());
    const end = (await finished) ?? null;
    if (end !== null) log.list(argv.recording.join(' '), end);
    log.end();
    calls.end();
    // What was played and did not have it is a miss, even if it was answered live in the end.
    const misses = log.misses() + (plan.plays && end !== null ? end.added + end.withheld : 0);
    io.exitCode = codeOf(end) || (argv['fail-on-miss'] && misses > 0 ? FOUND_SOMETHING : 0);
  } finally {
    stop?.ignoreSignals();
    playback.close();
    leave?.();
  }
}

function codeOf(end: LiveRecorderEnd | null): number {
  if (end === null) return 0;
  if (!end.hasServer) return NO_SERVER;
  return end.isLeft && end.failed > 0 ? FOUND_SOMETHING : 0;
}

function checkOptions(argv: Options): void {
  checkSuggestOptions(argv);
  checkPrune(argv);
  checkServing(argv);
  if (argv.save !== undefined) throw new TapedeckError('usage', 'Expected `--stub` with `--save`.');
}

function checkPrune({ 'prune-unused': isPruned, mode, recording }: Options): void {
  if (!isPruned) return;
  if (mode !== 'none' && mode !== 'once')
    throw new TapedeckError(
      'usage',
      `Expected no \`--prune-unused\` with \`--mode ${mode}\`, which adds calls.`,
    );
  if (recording.length !== 1 || !isTextRecording(recording[0] ?? ''))
    throw new TapedeckError('usage', 'Expected one text recording (.ndjson) with `--prune-unused`.');
}

/** A URL behind the recordings is the live server's. */
function withTarget(argv: Options): Options {
  const last = argv.recording.at(-1) ?? '';
  return isHttpUrl(last) ? { ...argv, recording: argv.recording.slice(0, -1), url: last } : argv;
}

function sayRedactedSkills(io: Io, recording: Recording): void {
  const [first, ...others] = redactedSkillFiles(recording);
  if (first === undefined) return;
  const files = others.length === 0 ? 'file' : 'files';
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  say(
    io,
    escapeText(
      `redaction changed the skill ${files} ${first}${more}: the digest cannot hold any more, so a host that verifies it refuses the skill; record it with \`--no-redact-rule\` or \`--no-redact\` if it holds no secret`,
    ),
  );
}

function sayUnasked(io: Io, { unasked, size }: Matching): void {
  const count = unasked().length;
  if (count > 0) say(io, `${count} of ${size} recorded calls were never asked for`);
}

/** A replay that nobody has asked anything leaves the recording alone. */
function pruneUnused(io: Io, { prune }: Playback, { unasked, size }: Matching): void {
  const calls = unasked();
  if (prune === null || calls.length === 0 || calls.length === size) return;
  prune(calls);
  say(io, `${calls.length} of them removed`);
}

function readSpeed(text: string): Speed {
  if (text === 'fast') return 'fast';
  const factor = text === 'recorded' ? 1 : Number(text);
  if (Number.isFinite(factor) && factor > 0) return factor;
  throw new TapedeckError(
    'usage',
    `Expected fast, recorded or a number above 0 after \`--speed\`, got \`${text}\`.`,
  );
}

type ModeOptions = RedactionOptions & {
  /** Several only where nothing is added. */
  recording: string[];
  db: string | undefined;
  mode: Mode;
  url: string | undefined;
  header: string[];
  timeout: number;
  'record-failures': boolean;
};

type RedactionOptions = { 'redact-rule': string[]; 'no-redact-rule': string[]; redact: string[] };

function readRedaction(argv: RedactionOptions): RedactionProfile {
  return readProfile(argv['no-redact-rule'], [...new Set(argv['redact-rule'])], [...new Set(argv.redact)]);
}

const EXAMPLE = 'tapedeck replay demo --mode new_episodes';

/** Throws `TapedeckError` for a recording or a server that cannot be used so. */
async function openDeck(io: Io, argv: ModeOptions, log: ReplayLog): Promise<Playback> {
  const { recording: recordings, db, mode } = argv;
  const [recording, ...others] = recordings;
  if (recording === undefined)
    throw new TapedeckError('usage', 'Expected a recording, got none. See: tapedeck replay --help');
  if (others.length > 0) return openJoined(io, argv);
  return openPlayback({
    ...{ recording: isTextRecording(recording) ? pathOf(io, recording) : recording, mode },
    db: storeOf(io, db),
    openSource: () => openToPlay(io, recording, db),
    redaction: readRedaction(argv),
    server: readTarget(io, argv),
    timeoutMs: readTimeout(argv.timeout),
    keepsFailures: argv['record-failures'],
    onCall: log.call,
  });
}

/** Several recordings are one that nothing can be added to. */
async function openJoined(io: Io, argv: ModeOptions): Promise<Playback> {
  readTarget(io, argv);
  if (argv.mode !== 'none')
    throw new TapedeckError('usage', `Expected one recording with \`--mode ${argv.mode}\`, got several.`);
  const sources: Source[] = [];
  const close = () => {
    for (const source of sources) source.close();
  };
  try {
    for (const name of argv.recording) sources.push(await openToPlay(io, name, argv.db));
    const recording = joinRecordings(
      sources.map(({ store, session, keyStores }) =>
        readRecording(store, session, keyStores, readRedaction(argv)),
      ),
    );
    const plan = planMode('none', true);
    return { recording, plan, live: undefined, finish: null, discard: null, prune: null, close };
  } catch (error) {
    close();
    throw error;
  }
}

async function openToPlay(io: Io, recording: string, db: string | undefined): Promise<Source> {
  const source = await openSource(io, recording, db);
  sayMetaOnly(io, source);
  return source;
}

/** Null in a mode that reaches no server. Throws `TapedeckError` `usage` if one is given nevertheless. */
function readTarget(io: Io, argv: ModeOptions): LiveTarget | null {
  if (argv.mode !== 'none') return readLiveServer(io, argv, EXAMPLE);
  const isGiven = argv.url !== undefined || commandOf(argv).length > 0 || argv.header.length > 0;
  if (!isGiven) return null;
  throw new TapedeckError(
    'usage',
    'Expected no live server, because `--mode none` never reaches one. Leave it out, or choose what it is for: --mode new_episodes, once or all.',
  );
}
