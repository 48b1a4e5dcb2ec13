/**
 * The door for clients over HTTP: a `fetch` that records what passes by another one. Bodies are shown chunk by chunk as their
 * reader takes them, so that nothing is read ahead, held back or kept open. Heads are as `fetch` tells them: in lower case, and
 * without what it adds to a request on its own.
 */

import { now } from '../capture/clock.ts';
import { EVENTS_TYPE, mediaTypeOf } from '../protocol/http/headers.ts';
import type { HttpEvent } from '../protocol/wire/http-event.ts';
import { type HttpRecorder, openHttpRecorder } from '../store/record/http-recorder.ts';
import type { Door, RecordingOptions } from './door.ts';
import { type FetchCall, readRequest } from './fetch-request.ts';
import { showing, withBody } from './fetch-response.ts';
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
  let count = 0;

  function tapeOf(url: URL): DoorTape<HttpRecorder> {
    const known = tapes.get(url.origin);
    if (known !== undefined) return known;
    const begin = () => httpStart(url.href, process.pid);
    const tape = createTape(settings, openHttpRecorder, begin, () => endOf('stopped'));
    tapes.set(url.origin, tape);
    return tape;
  }

  async function recorded(input: unknown, init?: unknown): Promise<Response> {
    if (isTurnedOff()) return plain(input, init);
    const at = now();
    const asked = readRequest(input, init, (bytes) => exchange.show({ type: 'request-body', bytes }));
    count += 1;
    if (asked === null) return plain(input, init);
    const exchange = new FetchExchange(tapeOf(asked.url), count, asked, at);
    let answer: Promise<Response>;
    try {
      answer = plain(...asked.args);
    } catch (error) {
      exchange.begin();
      exchange.fail(error);
      throw error;
    }
    exchange.begin();
    return answer.then(
      (response) => exchange.answered(response),
      (error) => {
        exchange.fail(error);
        throw error;
      },
    );
  }

  const all = (work: (tape: DoorTape<HttpRecorder>) => Promise<void>) => async () => {
    await Promise.all([...tapes.values()].map(work));
  };
  const close = all((tape) => tape.close());
  const door: Door = { flush: all((tape) => tape.flush()), close, [Symbol.asyncDispose]: close };
  return Object.assign(recorded, door) as unknown as RecordedFetch<F>;
}

/** An event without what is the same for all of an exchange. */
type Told = HttpEvent extends infer Event
  ? Event extends HttpEvent
    ? Omit<Event, 'exchange' | 'at'>
    : never
  : never;

class FetchExchange {
  readonly #tape: DoorTape<HttpRecorder>;
  readonly #number: number;
  readonly #asked: FetchCall;
  readonly #at: number;
  #isOver = false;
  #isRequestOver = false;

  constructor(tape: DoorTape<HttpRecorder>, number: number, asked: FetchCall, at: number) {
    this.#tape = tape;
    this.#number = number;
    this.#asked = asked;
    this.#at = at;
  }

  show(event: Told, at = now()): void {
    const exchange = this.#number;
    this.#tape.use(at, (recorder) => void recorder.append({ ...event, exchange, at } as HttpEvent));
  }

  /** A body that is a stream comes later. */
  begin(): void {
    const { method, url, rawHeaders, body } = this.#asked;
    const path = `${url.pathname}${url.search}`;
    // The connection is for `fetch` to choose: all calls of a client come from one place.
    const head = { method, path, httpVersion: '1.1', clientAddress: `pid ${process.pid}` };
    this.show({ type: 'request', ...head, rawHeaders, edits: [] }, this.#at);
    if (body.type === 'bytes') this.show({ type: 'request-body', bytes: body.bytes });
    if (body.type === 'unseen')
      this.#tape.use(this.#at, (recorder) => recorder.lose(this.#number, now(), 'request', body.size));
    if (body.type !== 'stream') this.#endRequest(true);
  }

  answered(response: Response): Response {
    this.#endRequest(true);
    const { status, statusText, headers, body } = response;
    const rawHeaders = [...headers].flat();
    const isDecoded = headers.has('content-encoding') ? ({ isDecoded: true } as const) : {};
    this.show({ type: 'response', status, statusMessage: statusText, rawHeaders, edits: [], ...isDecoded });
    if (body === null || headers.get('content-length') === '0') {
      this.#end('server', null);
      return response;
    }
    try {
      return withBody(response, this.#shown(body, mediaTypeOf(rawHeaders) === EVENTS_TYPE));
    } catch (error) {
      this.#tape.use(now(), (recorder) => recorder.lose(this.#number, now(), 'response', 0));
      this.fail(error);
      return response;
    }
  }

  #shown(body: ReadableStream, isStream: boolean): ReadableStream {
    let isRead = false;
    return showing(body, {
      onBytes: (bytes) => {
        isRead = true;
        this.show({ type: 'response-body', bytes });
      },
      onEnd: () => this.#end('server', null),
      onFailure: (error) => this.fail(error),
      // Clients do not look at what is said beside a status.
      onCancel: () => (isRead || isStream ? this.#end('client', LEFT) : this.#end('server', null)),
    });
  }

  fail(error: unknown): void {
    const { signal } = this.#asked;
    if (signal?.aborted) this.#end('client', LEFT);
    else this.#end('server', reasonOf(error));
  }

  #endRequest(isComplete: boolean): void {
    if (this.#isRequestOver) return;
    this.#isRequestOver = true;
    this.show({ type: 'request-end', rawTrailers: [], isComplete });
  }

  #end(closedBy: 'client' | 'server', error: string | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#endRequest(false);
    this.show({ type: 'end', closedBy, error, isComplete: error === null, rawTrailers: [] });
  }
}

const LEFT = 'the client gave the call up';

/** One line. `fetch` hides what went wrong behind `fetch failed`. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  const inner = cause instanceof AggregateError ? cause.errors[0] : cause;
  const { message: why, code } = (inner ?? {}) as NodeJS.ErrnoException;
  return (why || code || message || String(error)).replaceAll(/\s+/g, ' ');
}
