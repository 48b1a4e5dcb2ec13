/** What a call of `fetch` asks for, as far as it can be seen without taking anything from it. */

import { headerOf } from '../protocol/http/headers.ts';
import { showing } from './fetch-response.ts';
import { bytesOf } from './stdio.ts';

export type FetchCall = {
  method: string;
  url: FetchUrl;
  /** Name, value, name, value… */
  rawHeaders: readonly string[];
  body: FetchBody;
  signal: AbortSignal | null;
  /** What to call `fetch` with. */
  args: [input: unknown, init?: unknown];
};

/** Where a call goes; `path` with its query. */
type FetchUrl = { href: string; origin: string; path: string };

/** `unseen`: a form or a file, which `fetch` writes out by itself; `size` where it is known. */
type FetchBody =
  | { type: 'none' }
  | { type: 'bytes'; bytes: Buffer }
  | { type: 'stream' }
  | { type: 'unseen'; size: number };

/** `onBytes` is called with the chunks of a body that is a stream, as they are sent. Null: `fetch` will refuse it. */
export function readRequest(
  input: unknown,
  init: unknown,
  onBytes: (bytes: Buffer) => void,
): FetchCall | null {
  const options = (init ?? {}) as RequestInit;
  // By its form: adapters put a class of their own in the place of the global one.
  const request = isRequest(input) ? input : null;
  const url = readUrl(request?.url ?? String(input));
  const given = options.body ?? null;
  const rawHeaders = pairsOf(options.headers ?? request?.headers);
  if (url === null || rawHeaders.some((text) => UNSENDABLE.test(text))) return null;
  const type = typeOf(given);
  if (type !== null && headerOf(rawHeaders, 'content-type') === '') rawHeaders.push('content-type', type);
  const body = readBody(given ?? request?.body ?? null);
  return {
    method: methodOf(options.method ?? request?.method ?? 'GET'),
    url,
    rawHeaders,
    body,
    signal: options.signal ?? request?.signal ?? null,
    args: body.type === 'stream' ? withShown(input, init, request, onBytes) : [input, init],
  };
}

/** A client calls one address most of the time. */
let last: FetchUrl | null = null;

function readUrl(text: string): FetchUrl | null {
  if (last?.href === text) return last;
  if (!URL.canParse(text)) return null;
  const { href, origin, pathname, search } = new URL(text);
  last = { href, origin, path: `${pathname}${search}` };
  return last;
}

/** What no header can have within: `fetch` refuses it. */
const UNSENDABLE = /[^\t\x20-\xff]/;

const METHODS = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT']);

/** In upper case only those that `fetch` writes so (fetch.spec.whatwg.org, "normalize a method"). */
function methodOf(given: string): string {
  const upper = given.toUpperCase();
  return METHODS.has(upper) ? upper : given;
}

function withShown(
  input: unknown,
  init: unknown,
  request: Request | null,
  onBytes: (bytes: Buffer) => void,
): [input: unknown, init?: unknown] {
  const given = (init as RequestInit | undefined)?.body as ReadableStream | undefined;
  const stream = given ?? (request?.body as ReadableStream);
  const { stream: body } = showing(stream, { onBytes, onEnd() {}, onFailure() {}, onCancel() {} });
  const shown = { body, duplex: 'half' };
  return given === undefined
    ? [new Request(request as Request, shown as RequestInit), init]
    : [input, { ...(init as object), ...shown }];
}

function readBody(body: unknown): FetchBody {
  if (body === null) return { type: 'none' };
  if (body instanceof URLSearchParams) return { type: 'bytes', bytes: Buffer.from(String(body)) };
  if (body instanceof ArrayBuffer) return { type: 'bytes', bytes: Buffer.from(body) };
  if (ArrayBuffer.isView(body))
    return {
      type: 'bytes',
      bytes: Buffer.from(body.buffer as ArrayBuffer, body.byteOffset, body.byteLength),
    };
  const bytes = bytesOf(body, 'utf8');
  if (bytes !== null) return { type: 'bytes', bytes };
  if (body instanceof ReadableStream) return { type: 'stream' };
  return { type: 'unseen', size: body instanceof Blob ? body.size : 0 };
}

function isRequest(input: unknown): input is Request {
  return typeof input === 'object' && input !== null && 'url' in input && 'headers' in input;
}

/** What `fetch` takes a body for that comes without a type (fetch.spec.whatwg.org, "extract a body"). */
function typeOf(body: unknown): string | null {
  if (body instanceof URLSearchParams) return 'application/x-www-form-urlencoded;charset=UTF-8';
  return typeof body === 'string' ? 'text/plain;charset=UTF-8' : null;
}

/** Name, value, name, value… as `fetch` takes headers. */
export function pairsOf(headers: unknown): string[] {
  if (headers === undefined || headers === null) return [];
  const isList = typeof (headers as Iterable<unknown>)[Symbol.iterator] === 'function';
  const pairs = isList ? (headers as Iterable<[string, string]>) : Object.entries(headers);
  const raw: string[] = [];
  for (const [name, value] of pairs) raw.push(String(name), String(value).trim());
  return raw;
}
