/**
 * Reads the messages of a payload. Input: the verbatim bytes of one frame. Output: its JSON-RPC messages as a tagged union,
 * none for a blank line, several for a batch. A message is classified by its shape first (method with
 * id = request, method alone = notification, result, error) and by its name second; what fits no shape is
 * `invalid` and says why. JSON-RPC 2.0, sections 4 to 6; MCP specification, basic/index.
 */

import { isUtf8 } from 'node:buffer';
import { eachElement, eachMember, nameText, type Span, skipSpace, skipValue, typeAt } from '../json/read.ts';
import { byteOrderMarkLength } from '../text.ts';
import {
  type Details,
  type Id,
  type IdProblem,
  NO_DETAILS,
  readId,
  readParams,
  readResult,
} from './details.ts';
import { canonicalMethod } from './methods.ts';
import { payloadStart } from './payload.ts';

type Common = {
  details: Details;
  remarks: readonly Remark[];
};

/** `params`: where they stand, counted from the message's own first byte. */
export type RequestMessage = Common & {
  kind: 'request';
  id: Id;
  method: string;
  canonical: string;
  params: Span | null;
};

export type NotificationMessage = Common & { kind: 'notification'; method: string; canonical: string };

type ResultMessage = Common & { kind: 'result'; id: Id };

/** `code` is null where the error object has no integer code. An error may lack an id (it then names no request). */
export type ErrorMessage = Common & { kind: 'error'; id: Id | null; code: number | null };

/** `id` and `method` are what could still be read. `isAnswer`: there is a `result` or an `error`. */
export type InvalidMessage = Common & {
  kind: 'invalid';
  reason: InvalidReason;
  id: Id | null;
  method: string | null;
  canonical: string | null;
  isAnswer: boolean;
};

export type Message = RequestMessage | NotificationMessage | ResultMessage | ErrorMessage | InvalidMessage;

/** Reads every message of one payload. Never throws: what cannot be read is a message of kind `invalid`. */
export function parseMessages(payload: Buffer): Message[] {
  const start = payloadStart(payload);
  if (start === payload.length) return [];
  const remarks: Remark[] = byteOrderMarkLength(payload) > 0 ? ['bom'] : [];
  if (!isUtf8(payload)) remarks.push('invalid-utf8');

  const messages: Message[] = [];
  const type = typeAt(payload, start);
  let end: number;
  if (type === 'object') end = readObject(payload, start, remarks, messages);
  else if (type === 'array') end = readBatch(payload, start, remarks, messages);
  else end = skipValue(payload, start);

  if (end < 0 || skipSpace(payload, end) !== payload.length) return [invalid('not-json', remarks)];
  return messages.length > 0 ? messages : [invalid('not-object', remarks)];
}

function readBatch(payload: Buffer, start: number, remarks: readonly Remark[], messages: Message[]): number {
  const end = eachElement(payload, start, (element) => {
    if (element.type === 'object') readObject(payload, element.start, remarks, messages);
    else messages.push(invalid('not-object', remarks));
  });
  if (end > 0 && messages.length === 0) messages.push(invalid('empty-batch', remarks));
  return end;
}

/** The members of an envelope, each where it stands. */
type Envelope = {
  jsonrpc: Span | undefined;
  id: Span | undefined;
  method: Span | undefined;
  params: Span | undefined;
  result: Span | undefined;
  error: Span | undefined;
};

function readObject(payload: Buffer, start: number, remarks: readonly Remark[], messages: Message[]): number {
  const envelope: Envelope = {
    jsonrpc: undefined,
    id: undefined,
    method: undefined,
    params: undefined,
    result: undefined,
    error: undefined,
  };
  let own = remarks;
  const end = eachMember(payload, start, (key, value) => {
    if (!Object.hasOwn(envelope, key)) own = withRemark(own, 'extra-member');
    else {
      if (envelope[key as keyof Envelope] !== undefined) own = withRemark(own, 'duplicate-key');
      envelope[key as keyof Envelope] = value;
    }
  });
  if (end > 0) messages.push(classify(payload, start, envelope, own));
  return end;
}

function withRemark(remarks: readonly Remark[], remark: Remark): readonly Remark[] {
  return remarks.includes(remark) ? remarks : [...remarks, remark];
}

function classify(payload: Buffer, start: number, envelope: Envelope, remarks: readonly Remark[]): Message {
  const { id: idSpan, method: methodSpan, params, result, error } = envelope;
  const method = methodSpan?.type === 'string' ? nameText(payload, methodSpan.start, methodSpan.end) : null;
  const canonical = method === null ? null : canonicalMethod(method);
  const id = idSpan === undefined ? undefined : readId(payload, idSpan);
  const details = canonical === null ? NO_DETAILS : readParams(payload, canonical, params);

  const reason = whyInvalid(payload, envelope, id);
  if (reason !== undefined) {
    const known = typeof id === 'object' ? id : null;
    const isAnswer = result !== undefined || error !== undefined;
    return { kind: 'invalid', reason, id: known, method, canonical, isAnswer, details, remarks };
  }
  if (method !== null && canonical !== null) {
    const own = spanFrom(start, params);
    if (typeof id === 'object')
      return { kind: 'request', id, method, canonical, params: own, details, remarks };
    return { kind: 'notification', method, canonical, details, remarks };
  }
  if (result !== undefined && typeof id === 'object') {
    return { kind: 'result', id, details: readResult(payload, result), remarks };
  }
  return readError(payload, error, typeof id === 'object' ? id : null, remarks);
}

function spanFrom(start: number, span: Span | undefined): Span | null {
  if (span === undefined || start === 0) return span ?? null;
  return { start: span.start - start, end: span.end - start, type: span.type };
}

function whyInvalid(
  payload: Buffer,
  envelope: Envelope,
  id: Id | IdProblem | undefined,
): InvalidReason | undefined {
  const { jsonrpc, method, params, result, error } = envelope;
  if (jsonrpc === undefined) return 'no-jsonrpc';
  if (jsonrpc.type !== 'string' || nameText(payload, jsonrpc.start, jsonrpc.end) !== '2.0')
    return 'wrong-jsonrpc';
  if (method !== undefined && (result !== undefined || error !== undefined)) return 'method-and-answer';
  if (result !== undefined && error !== undefined) return 'result-and-error';
  if (method === undefined && result === undefined && error === undefined) return 'neither';
  if (method !== undefined && method.type !== 'string') return 'method-not-string';
  // An error about input that could not be read carries `id: null` by JSON-RPC, or no id by MCP: both are legal.
  if (typeof id === 'string' && !(id === 'id-null' && error !== undefined)) return id;
  if (result !== undefined && id === undefined) return 'result-without-id';
  if (params?.type === 'array') return 'params-array';
  if (params !== undefined && params.type !== 'object') return 'params-not-object';
  return undefined;
}

function readError(
  payload: Buffer,
  error: Span | undefined,
  id: Id | null,
  remarks: readonly Remark[],
): ErrorMessage {
  let code: number | null = null;
  let hasText = false;
  if (error?.type === 'object') {
    eachMember(payload, error.start, (key, value) => {
      if (key === 'code' && value.type === 'number') {
        const number = Number(payload.toString('latin1', value.start, value.end));
        code = Number.isSafeInteger(number) ? number : null;
      }
      if (key === 'message') hasText = value.type === 'string';
    });
  }
  let own = code === null || !hasText ? withRemark(remarks, 'error-shape') : remarks;
  if (id === null) own = withRemark(own, 'error-without-id');
  return { kind: 'error', id, code, details: NO_DETAILS, remarks: own };
}

/** A message that could not be read at all. */
export function invalid(reason: InvalidReason, remarks: readonly Remark[] = []): InvalidMessage {
  const unknown = { id: null, method: null, canonical: null, isAnswer: false, details: NO_DETAILS };
  return { kind: 'invalid', reason, ...unknown, remarks };
}

/**
 * What can be wrong with a message, as a table: code → sentence. Malformed traffic is data, never an exception.
 * The first group makes a message `invalid`; the second leaves its kind as it is.
 */

export const INVALID = {
  'not-json': 'is not JSON',
  'not-object': 'is JSON, but neither an object nor a batch of objects',
  'empty-batch': 'is a batch without messages',
  'no-jsonrpc': 'has no `jsonrpc` member',
  'wrong-jsonrpc': 'has a `jsonrpc` member other than "2.0"',
  'result-and-error': 'has both `result` and `error`',
  'method-and-answer': 'has a `method` beside a `result` or an `error`',
  neither: 'has neither `method` nor `result` nor `error`',
  'method-not-string': 'has a `method` that is not a string',
  'id-null': 'has the id null',
  'id-fractional': 'has a fractional number as its id',
  'id-not-scalar': 'has an id that is neither a string nor a number',
  'result-without-id': 'is a result without an id',
  'params-array': 'has an array as its `params`',
  'params-not-object': 'has `params` that are not an object',
  truncated: 'was not recorded whole, so it cannot be read',
} as const;

export const REMARK = {
  'invalid-utf8': 'holds bytes that are not valid UTF-8',
  bom: 'begins with a byte order mark',
  'lsp-framing': 'is framed by Content-Length, not by lines',
  'duplicate-key': 'repeats a member of its envelope; the last one counts',
  'extra-member': 'has a member that JSON-RPC does not know',
  'error-shape': 'has an `error` without an integer `code` and a string `message`',
  'error-without-id': 'is an error that names no request',
  'id-in-use': 'takes the id of a request that is still open',
  undecoded: 'could not be decoded: its coding is unknown or broken',
  'wrong-type': 'came under another content type than that of messages',
  incomplete: 'broke off before its end',
  replayed: 'came before: it was sent again to a client that resumed its stream',
  'no-open-request': 'answers no open request of the other side',
} as const;

export type InvalidReason = keyof typeof INVALID;

export type Remark = keyof typeof REMARK;

type Problem = InvalidReason | Remark;

/** The sentence of a problem code, to follow "this message". */
export function problemText(code: string): string {
  return { ...INVALID, ...REMARK }[code as Problem] ?? code;
}
