/** What `replay` plays, by its mode. */
import { TapedeckError } from '../errors.ts';
import { type LiveTarget, openPlayback, type Playback } from '../kit/playback.ts';
import type { Source } from '../kit/source.ts';
import { joinRecordings } from '../replay/joined.ts';
import { type Mode, planMode } from '../replay/mode.ts';
import { openRecording } from '../replay/recording.ts';
import { commandOf, readLiveServer, readTimeout } from './live-server.ts';
import type { ReplayLog } from './replay-log.ts';
import { openSource } from './source.ts';

export type ModeOptions = {
  /** Several only where nothing is added. */
  recording: string[];
  db: string | undefined;
  mode: Mode;
  url: string | undefined;
  header: string[];
  timeout: number;
  'record-failures': boolean;
};

const EXAMPLE = 'tapedeck replay demo --mode new_episodes';

/** Throws `TapedeckError` for a recording or a server that cannot be used so. */
export async function openDeck(argv: ModeOptions, log: ReplayLog): Promise<Playback> {
  const { recording: recordings, db, mode } = argv;
  const [recording, ...others] = recordings;
  if (recording === undefined)
    throw new TapedeckError('usage', 'Expected a recording, got none. See: tapedeck replay --help');
  if (others.length > 0) return openJoined(argv);
  return openPlayback({
    ...{ recording, db, mode },
    openSource: () => openSource(recording, db),
    server: readTarget(argv),
    timeoutMs: readTimeout(argv.timeout),
    keepsFailures: argv['record-failures'],
    onCall: log.call,
    onRefusal: log.miss,
  });
}

/** Several recordings are one that nothing can be added to. */
async function openJoined(argv: ModeOptions): Promise<Playback> {
  readTarget(argv);
  if (argv.mode !== 'none')
    throw new TapedeckError('usage', `Expected one recording with \`--mode ${argv.mode}\`, got several.`);
  const sources: Source[] = [];
  for (const name of argv.recording) sources.push(await openSource(name, argv.db));
  const recording = joinRecordings(
    sources.map(({ store, session, keyStores }) => openRecording(store, session, keyStores)),
  );
  const close = () => {
    for (const source of sources) source.close();
  };
  return { recording, plan: planMode('none', true), live: undefined, finish: null, close };
}

/** Null in a mode that reaches no server. Throws `TapedeckError` `usage` where one is given all the same. */
export function readTarget(argv: ModeOptions): LiveTarget | null {
  if (argv.mode !== 'none') return readLiveServer(argv, EXAMPLE);
  const isGiven = argv.url !== undefined || commandOf(argv).length > 0 || argv.header.length > 0;
  if (!isGiven) return null;
  throw new TapedeckError(
    'usage',
    'Expected no live server, because `--mode none` never reaches one. Leave it out, or choose what it is for: --mode new_episodes, once or all.',
  );
}
