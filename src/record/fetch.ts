/**
 * The door for clients over HTTP: a `fetch` that records what passes by another one. Bodies are shown chunk by chunk as their
 * reader takes them, so that nothing is read ahead, held back or kept open. Heads are as `fetch` tells them: in lower case, and
 * without what it adds to a request on its own.
 */

import { now } from '../capture/clock.ts';
import { EVENTS_TYPE, headerOf, mediaTypeOf } from '../protocol/http/headers.ts';
import type { HttpEvent } from '../protocol/wire/http-event.ts';
import { type HttpRecorder, openHttpRecorder } from '../store/record/http-recorder.ts';
import type { Door, RecordingOptions } from './door.ts';
import { type FetchCall, pairsOf, readRequest } from './fetch-request.ts';
import { type StreamWatcher, watchBody } from './fetch-response.ts';
import { createOneListener } from './one-listener.ts';
import { readRecordingOptions } from './options.ts';
import { createTape, type DoorTape, endOf, httpStart, isTurnedOff } from './tape.ts';

/** What clients take as their `fetch`. */
type AnyFetch = (input: string | URL, init?: RequestInit) => Promise<Response>;

type PlainFetch = (input: unknown, init?: unknown) => Promise<Response>;

/** What `recordedFetch` returns. */
export type RecordedFetch<F> = F & Door;

/**
 * Records the HTTP exchanges that go by a `fetch`: give what it returns to a client's transport as its option `fetch`. Each origin
 * is recorded as a server of its own. Throws `TapedeckError` for a wrong option; calls fail as those of `fetch` fail.
 */
export function recordedFetch<F extends AnyFetch>(
  fetch: F,
  options: RecordingOptions = {},
): RecordedFetch<F> {
  const settings = readRecordingOptions(options);
  const tapes = new Map<string, DoorTape<HttpRecorder>>();
  const plain = fetch as unknown as PlainFetch;
  const isOff = isTurnedOff();
  let count = 0;

  function tapeOf({ origin, href }: FetchCall['url']): DoorTape<HttpRecorder> {
    const known = tapes.get(origin);
    if (known !== undefined) return known;
    const begin = () => httpStart(href, process.pid);
    const tape = createTape(settings, openHttpRecorder, begin, () => endOf('stopped'));
    tapes.set(origin, tape);
    return tape;
  }

  async function recorded(input: unknown, init?: unknown): Promise<Response> {
    if (isOff) return plain(input, init);
    const at = now();
    const asked = requestOf(input, init, (bytes) => exchange.showRequestBody(bytes));
    count += 1;
    if (asked === null) return plain(input, init);
    const exchange = new FetchExchange(tapeOf(asked.url), count, asked, at);
    const answer = call(plain, asked);
    exchange.begin();
    let response: Response;
    try {
      response = await answer;
    } catch (error) {
      exchange.fail(error);
      throw error;
    }
    exchange.answered(response);
    return response;
  }

  const all = (work: (tape: DoorTape<HttpRecorder>) => Promise<void>) => async () => {
    await Promise.all([...tapes.values()].map(work));
  };
  const close = all((tape) => tape.close());
  const door: Door = { flush: all((tape) => tape.flush()), close, [Symbol.asyncDispose]: close };
  return Object.assign(recorded, door) as unknown as RecordedFetch<F>;
}

/** What it throws, it rejects with: the call has a place in the recording then. */
async function call(plain: PlainFetch, { args }: FetchCall): Promise<Response> {
  return plain(...args);
}

/** What a host gives that cannot be read is for `fetch` to refuse. */
function requestOf(...given: Parameters<typeof readRequest>): FetchCall | null {
  try {
    return readRequest(...given);
  } catch {
    return null;
  }
}

class FetchExchange {
  readonly #tape: DoorTape<HttpRecorder>;
  readonly #number: number;
  readonly #asked: FetchCall;
  readonly #at: number;
  #isOver = false;
  #forgetSignal = () => {};
  #isRequestOver = false;

  constructor(tape: DoorTape<HttpRecorder>, number: number, asked: FetchCall, at: number) {
    this.#tape = tape;
    this.#number = number;
    this.#asked = asked;
    this.#at = at;
  }

  /** Written out, not spread: this is what most of a call's own cost goes into. */
  #show(event: HttpEvent): void {
    this.#tape.use(event.at, (recorder) => void recorder.append(event));
  }

  showRequestBody(bytes: Buffer): void {
    this.#show({ type: 'request-body', exchange: this.#number, at: now(), bytes });
  }

  /** A body that is a stream comes later. */
  begin(): void {
    const { method, url, rawHeaders, body } = this.#asked;
    // The connection is for `fetch` to choose: all calls of a client come from one place.
    const clientAddress = `pid ${process.pid}`;
    const [exchange, at, path] = [this.#number, this.#at, url.path];
    this.#show({
      type: 'request',
      exchange,
      at,
      method,
      path,
      httpVersion: '1.1',
      rawHeaders,
      edits: [],
      clientAddress,
    });
    if (body.type === 'bytes') this.showRequestBody(body.bytes);
    if (body.type === 'unseen')
      this.#tape.use(this.#at, (recorder) => recorder.lose(this.#number, now(), 'request', body.size));
    if (body.type !== 'stream') this.#endRequest(true);
  }

  /** Watches it. What a client takes for its `fetch` may give anything. */
  answered(response: Response): void {
    this.#endRequest(true);
    try {
      this.#watchAnswer(response);
    } catch (error) {
      this.#tape.use(now(), (recorder) => recorder.lose(this.#number, now(), 'response', 0));
      this.fail(error);
    }
  }

  #watchAnswer(response: Response): void {
    const { status, statusText, headers, body } = response;
    const rawHeaders = pairsOf(headers);
    const head = { status, statusMessage: statusText, rawHeaders, edits: [] };
    const isDecoded = headerOf(rawHeaders, 'content-encoding') !== '';
    const event: HttpEvent = { type: 'response', exchange: this.#number, at: now(), ...head };
    this.#show(isDecoded ? { ...event, isDecoded } : event);
    if (body === null || headerOf(rawHeaders, 'content-length') === '0') this.#end('server', null);
    else {
      watchBody(response, this.#watcher(mediaTypeOf(rawHeaders) === EVENTS_TYPE));
      // Whoever reads hears of it by that; and nobody has to read.
      const { signal } = this.#asked;
      if (signal !== null) this.#forgetSignal = onAbort(signal, () => this.fail(signal.reason));
    }
  }

  #watcher(isStream: boolean): StreamWatcher {
    let isRead = false;
    return {
      onBytes: (bytes) => {
        isRead = true;
        this.#show({ type: 'response-body', exchange: this.#number, at: now(), bytes });
      },
      onEnd: () => this.#end('server', null),
      onFailure: (error) => this.fail(error),
      // Clients do not look at what is said beside a status.
      onCancel: () => (isRead || isStream ? this.#end('client', LEFT) : this.#end('server', null)),
    };
  }

  fail(error: unknown): void {
    const { signal } = this.#asked;
    if (signal?.aborted) this.#end('client', LEFT);
    else this.#end('server', reasonOf(error));
  }

  #endRequest(isComplete: boolean): void {
    if (this.#isRequestOver) return;
    this.#isRequestOver = true;
    this.#show({ type: 'request-end', exchange: this.#number, at: now(), rawTrailers: [], isComplete });
  }

  #end(closedBy: 'client' | 'server', error: string | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#forgetSignal();
    this.#endRequest(false);
    const how = { closedBy, error, isComplete: error === null, rawTrailers: [] };
    this.#show({ type: 'end', exchange: this.#number, at: now(), ...how });
  }
}

const onAbort = createOneListener<AbortSignal>((signal, onEnd) => signal.addEventListener('abort', onEnd));

const LEFT = 'the client gave the call up';

/** One line. `fetch` hides what went wrong behind `fetch failed`. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  const inner = cause instanceof AggregateError ? cause.errors[0] : cause;
  const { message: why, code } = (inner ?? {}) as NodeJS.ErrnoException;
  return (why || code || message || String(error)).replaceAll(/\s+/g, ' ');
}
