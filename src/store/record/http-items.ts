/**
 * Events of the HTTP proxy as items of a batch, and back. On the proxy's thread every microsecond counts, so bodies travel
 * as they are and plain heads as lines of text; what is rare (trailers, errors, edits of answers) travels as JSON.
 */
import { memoize } from '../../protocol/bounded.ts';
import type {
  HeaderEdit,
  HttpEvent,
  HttpRequestEvent,
  HttpResponseEvent,
} from '../../protocol/wire/http-event.ts';
import type { Batcher, Item } from './batch.ts';
import { faultItem, readFaultItem } from './batch.ts';

/**
 * Bytes of an exchange that were dropped on their way here, one after another in so many pieces. `exchange`: of whole
 * exchanges, this one the last of them, that had so many frames.
 */
export type HttpLoss = {
  type: 'lost';
  exchange: number;
  at: number;
  side: 'request' | 'response' | 'exchange';
  pieces: number;
  bytes: number;
};

export type HttpItem = HttpEvent | HttpLoss;

/** What an item's kind says: how to read it. */
const KIND = {
  json: 0,
  requestBody: 1,
  responseBody: 2,
  /** The length of the original (u32), the original, what went on. */
  editedBody: 3,
  requestHead: 4,
  requestEnd: 5,
  responseHead: 6,
  end: 7,
  /** The edits as a line of JSON, then the head. `Host` is edited in every request to a server on another port. */
  editedRequestHead: 8,
  fault: 9,
} as const;

const LENGTH_BYTES = 4;

const NOTHING = Buffer.alloc(0);

const NONE: readonly string[] = [];

const NO_EDITS: readonly HeaderEdit[] = [];

const LF = 0x0a;

type Append = Batcher['append'];

export function appendHttpItem(append: Append, item: HttpItem): void {
  const { exchange, at } = item;
  switch (item.type) {
    case 'request-body':
      append(KIND.requestBody, exchange, at, item.bytes);
      return;
    case 'response-body':
      if (item.original === undefined) append(KIND.responseBody, exchange, at, item.bytes);
      else append(KIND.editedBody, exchange, at, editedBody(item.original, item.bytes));
      return;
    case 'fault':
      append(KIND.fault, exchange, at, faultItem({ ...item, payload: item.bytes as Buffer, lineEnd: '' }));
      return;
    case 'request':
      if (item.edits.length === 0) append(KIND.requestHead, exchange, at, requestHead(item));
      else
        append(KIND.editedRequestHead, exchange, at, `${JSON.stringify(item.edits)}\n${requestHead(item)}`);
      return;
    case 'request-end':
      if (!item.isComplete || item.rawTrailers.length > 0) break;
      append(KIND.requestEnd, exchange, at, NOTHING);
      return;
    case 'response':
      if (item.edits.length > 0 || item.isDecoded) break;
      append(KIND.responseHead, exchange, at, responseHead(item));
      return;
    case 'end':
      if (item.closedBy !== 'server' || item.error !== null || item.rawTrailers.length > 0) break;
      append(KIND.end, exchange, at, NOTHING);
      return;
  }
  append(KIND.json, exchange, at, Buffer.from(JSON.stringify(item)));
}

/** Roughly what the news takes on its way. */
export function sizeOf(item: HttpItem): number {
  return 'bytes' in item && typeof item.bytes === 'object' ? item.bytes.length : 1024;
}

/** Bytes are views of the item's. Equal lists of headers are one and the same list, and equal edits. */
type HttpItemReader = (item: Item) => HttpItem;

export function createHttpItemReader(): HttpItemReader {
  const editsOf = memoize((text): readonly HeaderEdit[] => JSON.parse(text), INTERNED);
  const requestOf = createHeadReader(4, ([method = '', path = '', httpVersion = '', clientAddress = '']) => ({
    method,
    path,
    httpVersion,
    clientAddress,
  }));
  const responseOf = createHeadReader(2, ([status, statusMessage = '']) => ({
    status: Number(status),
    statusMessage,
  }));
  return ({ kind, owner: exchange, at, bytes }) => {
    switch (kind) {
      case KIND.requestBody:
        return { type: 'request-body', exchange, at, bytes };
      case KIND.responseBody:
        return { type: 'response-body', exchange, at, bytes };
      case KIND.editedBody: {
        const end = LENGTH_BYTES + bytes.readUInt32BE(0);
        const original = bytes.subarray(LENGTH_BYTES, end);
        return { type: 'response-body', exchange, at, original, bytes: bytes.subarray(end) };
      }
      case KIND.fault: {
        const { channel, payload, fault } = readFaultItem(bytes, at);
        return {
          type: 'fault',
          exchange,
          at,
          channel: channel === 'sse' || channel === 'request' ? channel : 'response',
          bytes: payload,
          fault,
        };
      }
      case KIND.requestHead:
      case KIND.editedRequestHead: {
        const from = kind === KIND.requestHead ? 0 : bytes.indexOf(LF) + 1;
        const edits = from === 0 ? NO_EDITS : editsOf(bytes.toString('latin1', 0, from - 1));
        const { start, rawHeaders } = requestOf(bytes, from);
        const { method, path, httpVersion, clientAddress } = start;
        return { type: 'request', exchange, at, method, path, httpVersion, clientAddress, rawHeaders, edits };
      }
      case KIND.requestEnd:
        return { type: 'request-end', exchange, at, rawTrailers: NONE, isComplete: true };
      case KIND.responseHead: {
        const { start, rawHeaders } = responseOf(bytes, 0);
        const { status, statusMessage } = start;
        return { type: 'response', exchange, at, status, statusMessage, rawHeaders, edits: NO_EDITS };
      }
      case KIND.end:
        return {
          type: 'end',
          exchange,
          at,
          closedBy: 'server',
          error: null,
          isComplete: true,
          rawTrailers: NONE,
        };
      default:
        return JSON.parse(bytes.toString()) as HttpItem;
    }
  };
}

/** A head as lines; no part of one can hold a line end. Node gives its parts as Latin-1. */
function requestHead({ method, path, httpVersion, clientAddress, rawHeaders }: HttpRequestEvent): string {
  return `${method}\n${path}\n${httpVersion}\n${clientAddress}\n${rawHeaders.join('\n')}`;
}

function responseHead({ status, statusMessage, rawHeaders }: HttpResponseEvent): string {
  return `${status}\n${statusMessage}\n${rawHeaders.join('\n')}`;
}

/** Longer ones are rare, and a thousand of them would be much memory. */
const INTERNED = { maxEntries: 1000, maxLength: 4096 };

/**
 * Reads heads that have so many lines before their headers, from this byte on. Clients and servers say mostly the same over and
 * over: what was read before is not made anew.
 */
function createHeadReader<T>(
  lines: number,
  read: (lines: readonly string[]) => T,
): (bytes: Buffer, from: number) => { start: T; rawHeaders: readonly string[] } {
  const startOf = memoize((text) => read(text.split('\n')), INTERNED);
  const headersOf = memoize((text): readonly string[] => (text === '' ? NONE : text.split('\n')), INTERNED);
  return (bytes, from) => {
    let end = from - 1;
    for (let left = lines; left > 0; left -= 1) end = bytes.indexOf(LF, end + 1);
    // Two texts made of bytes: V8 takes long to compare what was cut out of a longer one.
    const start = startOf(bytes.toString('latin1', from, end));
    return { start, rawHeaders: headersOf(bytes.toString('latin1', end + 1)) };
  };
}

function editedBody(original: Uint8Array, bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(original.length);
  return Buffer.concat([length, original, bytes]);
}
