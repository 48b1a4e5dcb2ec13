/** `tapedeck record --wrapped`: serves the URL entries that were wrapped, all in one process. */
import type { Keeper } from '../clients/kept.ts';
import { type Listener, listenersOf } from '../clients/listeners.ts';
import { ALL, findTargets, type Target } from '../clients/targets.ts';
import { shownUrl } from '../clients/url.ts';
import { TapedeckError } from '../errors.ts';
import { escapeText } from '../protocol/escape.ts';
import type { ProxyOptions } from './http-options.ts';
import { createStop, type HttpRecording, recordUntil, startHttpRecording } from './http-recording.ts';
import { say } from './listening.ts';
import { thisKeeper, thisMachine } from './machine.ts';
import type { RecordOptions } from './record-options.ts';

const STRICT_REFUSED = 1;
const NOTHING_TO_SERVE = 2;

/** Exits as `recordHttp` does. Throws `TapedeckError` `usage` where there is nothing to serve. */
export async function recordWrapped(
  words: readonly string[],
  options: RecordOptions,
  http: ProxyOptions,
): Promise<void> {
  const listeners = findListeners(words);
  const stop = createStop();
  // Whoever read it may have left: that is no reason to end the traffic.
  process.stderr.on('error', () => {});
  if (http.isInsecure) say('WARNING: --insecure: the certificates of the servers are not verified');

  const recordings: HttpRecording[] = [];
  for (const listener of listeners) {
    const recording = await tryStart(listener, options, http, stop.fail);
    if (recording !== null) recordings.push(recording);
    else if (options.isStrict) stop.fail();
  }
  if (recordings.length === 0) process.exit(options.isStrict ? STRICT_REFUSED : NOTHING_TO_SERVE);
  await recordUntil(stop, recordings, http.graceMs);
  process.exit(stop.hasFailed() ? STRICT_REFUSED : 0);
}

function findListeners(words: readonly string[]): Listener[] {
  const keeper = thisKeeper();
  const known = keeper.all().map(({ file }) => file);
  const wanted = words.length === 0 ? [ALL] : words;
  const targets = wanted.flatMap((word) => findTargets(word, thisMachine(), known));
  const listeners = targets.flatMap((target) => tryListenersOf(target, keeper));
  if (listeners.length > 0) return [...new Map(listeners.map((one) => [one.port, one])).values()];
  throw new TapedeckError(
    'usage',
    `No URL server is wrapped${words.length === 0 ? '' : ` there: ${words.join(', ')}`}. See: tapedeck wrap --list`,
  );
}

/** None where the config cannot be read: the others can. */
function tryListenersOf(target: Target, keeper: Keeper): Listener[] {
  try {
    return listenersOf(target, keeper);
  } catch (error) {
    if (!(error instanceof TapedeckError)) throw error;
    say(escapeText(`${target.file} is not served: ${error.message}`));
    return [];
  }
}

/** Null where it cannot be served: the others can. */
async function tryStart(
  { port, url, name, db, file }: Listener,
  options: RecordOptions,
  http: ProxyOptions,
  onFailure: () => void,
): Promise<HttpRecording | null> {
  const upstream = new URL(url);
  const listen = { host: '127.0.0.1', port };
  const own = { ...options, name: name === '' ? null : name, file: options.file ?? db ?? undefined };
  try {
    const recording = await startHttpRecording(own, { ...http, upstream, listen, tls: null }, onFailure);
    if (recording !== null)
      say(
        escapeText(
          `listening on ${shownUrl(recording.capture.url.href)} for ${name} at ${shownUrl(url)} (${file})`,
        ),
      );
    return recording;
  } catch (error) {
    say(escapeText(`${name} is not served: ${whyNot(port, error as NodeJS.ErrnoException)}`));
    return null;
  }
}

function whyNot(port: number, { code, message }: NodeJS.ErrnoException): string {
  return code === 'EADDRINUSE'
    ? `something else listens on port ${port}. If that is not a tapedeck, unwrap it and wrap it again: it gets another port`
    : message;
}
