/**
 * What correlation needs from inside `params` and `result`, and nothing more: everything else is still in the frame.
 */
import { eachMember, membersOf, nameText, type Span, sourceText, stringText } from '../json/read.ts';
import { targetParam } from './methods.ts';

/** Name and version of a client or server, as it calls itself. */
export type Peer = { name: string; version: string | null };

/** One round of a request that takes several (MRTR, specification 2026-07-28, basic/patterns/mrtr). */
type Round = {
  /** Fingerprint of the params without `_meta`, `inputResponses` and `requestState`: equal in every round. */
  params: number;
  /** Fingerprint of `requestState`, 0 where there is none. */
  state: number;
  /** Keys of `inputRequests` or `inputResponses`. */
  keys: readonly string[];
};

/** Keys ("s…" or "n…") are those of `Id`. A null says that the message has no such thing. */
export type Details = {
  target: string | null;
  protocolVersion: string | null;
  peer: Peer | null;
  /** On a request: the token it wants progress for. On a progress notification: the token it is about. */
  progressToken: string | null;
  /** On `notifications/cancelled`: the request it takes back. */
  cancels: string | null;
  /** The `subscriptions/listen` request that a notification came for. */
  subscription: string | null;
  taskId: string | null;
  /** True on a result that says its request goes on as the task `taskId`. */
  beginsTask: boolean;
  /** On a retry and on an `input_required` result; on other 2026-07-28 requests with the params' fingerprint alone. */
  round: Round | null;
  resultType: string | null;
  isToolError: boolean;
  /** True where a request carries the 2026-07-28 era's `_meta` protocol version. */
  isModern: boolean;
  /** `_meta.traceparent` as it was written (specification 2026-07-28, SEP-414). */
  traceparent: string | null;
};

export const NO_DETAILS: Details = {
  target: null,
  protocolVersion: null,
  peer: null,
  progressToken: null,
  cancels: null,
  subscription: null,
  taskId: null,
  beginsTask: false,
  round: null,
  resultType: null,
  isToolError: false,
  isModern: false,
  traceparent: null,
};

const META_PREFIX = 'io.modelcontextprotocol/';

/** The methods that may take several rounds. */
const MRTR_METHODS = new Set(['tools/call', 'prompts/get', 'resources/read']);

const NOT_FINGERPRINTED = new Set(['_meta', 'inputResponses', 'requestState']);

export function readParams(bytes: Buffer, canonical: string, params: Span | undefined): Details {
  if (params?.type !== 'object') return NO_DETAILS;
  const details = { ...NO_DETAILS };
  const target = targetParam(canonical);
  eachMember(bytes, params.start, (key, value) => {
    if (key === '_meta') readRequestMeta(bytes, value, details);
    else if (key === target) details.target = textOf(bytes, value);
    readParam(bytes, canonical, key, value, details);
  });
  if (details.isModern && MRTR_METHODS.has(canonical))
    details.round = readRound(bytes, params, 'inputResponses');
  return details;
}

function readParam(bytes: Buffer, canonical: string, key: string, value: Span, details: Details): void {
  switch (canonical) {
    case 'initialize':
      if (key === 'protocolVersion') details.protocolVersion = textOf(bytes, value);
      if (key === 'clientInfo') details.peer = peerOf(bytes, value);
      break;
    case 'notifications/progress':
      if (key === 'progressToken' || (key === 'token' && details.progressToken === null))
        details.progressToken = keyOf(bytes, value);
      break;
    case 'notifications/cancelled':
      if (key === 'requestId' || (key === 'id' && details.cancels === null))
        details.cancels = keyOf(bytes, value);
      break;
    default:
      if (key === 'taskId') details.taskId = textOf(bytes, value);
  }
}

function readRequestMeta(bytes: Buffer, meta: Span, details: Details): void {
  if (meta.type !== 'object') return;
  eachMember(bytes, meta.start, (key, value) => {
    if (key === 'progressToken') details.progressToken = keyOf(bytes, value);
    else if (key === 'traceparent') details.traceparent = textOf(bytes, value);
    else if (key.startsWith(META_PREFIX))
      readReservedMeta(bytes, key.slice(META_PREFIX.length), value, details);
  });
}

function readReservedMeta(bytes: Buffer, name: string, value: Span, details: Details): void {
  switch (name) {
    case 'protocolVersion':
      details.protocolVersion = textOf(bytes, value);
      details.isModern = details.protocolVersion !== null;
      break;
    case 'clientInfo':
    case 'serverInfo':
      details.peer = peerOf(bytes, value);
      break;
    case 'subscriptionId':
      details.subscription = keyOf(bytes, value);
      break;
    case 'related-task':
      details.taskId = memberText(bytes, value, 'taskId');
      break;
  }
}

export function readResult(bytes: Buffer, result: Span): Details {
  if (result.type !== 'object') return NO_DETAILS;
  const details = { ...NO_DETAILS };
  eachMember(bytes, result.start, (key, value) => {
    switch (key) {
      case '_meta':
        readRequestMeta(bytes, value, details);
        break;
      case 'isError':
        details.isToolError = value.type === 'boolean' && bytes[value.start] === 0x74;
        break;
      case 'resultType':
        details.resultType = textOf(bytes, value);
        break;
      case 'protocolVersion':
        details.protocolVersion = textOf(bytes, value);
        break;
      case 'serverInfo':
        details.peer = peerOf(bytes, value);
        break;
      case 'taskId':
        details.taskId = textOf(bytes, value);
        break;
      case 'task':
        details.taskId = memberText(bytes, value, 'taskId');
        details.beginsTask = details.taskId !== null;
        break;
    }
  });
  if (details.resultType === 'task') details.beginsTask = details.taskId !== null;
  if (details.resultType === 'input_required') details.round = readRound(bytes, result, 'inputRequests');
  return details;
}

function readRound(bytes: Buffer, object: Span, keysMember: 'inputRequests' | 'inputResponses'): Round {
  let params = 0;
  let state = 0;
  const keys: string[] = [];
  eachMember(bytes, object.start, (key, value) => {
    if (!NOT_FINGERPRINTED.has(key)) params ^= fingerprint(bytes, value, key);
    if (key === 'requestState') state = fingerprint(bytes, value, '');
    if (key === keysMember && value.type === 'object')
      eachMember(bytes, value.start, (name) => keys.push(name));
  });
  return { params, state, keys };
}

/** FNV-1a over a member's key and source text. The order of members does not matter, as results are combined by xor. */
function fingerprint(bytes: Buffer, value: Span, key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  for (let i = value.start; i < value.end; i += 1) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  return hash;
}

function keyOf(bytes: Buffer, value: Span): string | null {
  const id = readId(bytes, value);
  return typeof id === 'string' ? null : id.key;
}

function textOf(bytes: Buffer, value: Span): string | null {
  return value.type === 'string' ? nameText(bytes, value.start, value.end) : null;
}

function memberText(bytes: Buffer, object: Span, key: string): string | null {
  if (object.type !== 'object') return null;
  const value = membersOf(bytes, object).get(key);
  return value === undefined ? null : textOf(bytes, value);
}

function peerOf(bytes: Buffer, object: Span): Peer | null {
  const name = memberText(bytes, object, 'name');
  return name === null ? null : { name, version: memberText(bytes, object, 'version') };
}

/**
 * JSON-RPC ids. MCP: a string or an integer, never null; unique per sender, not per session; `1` is not `"1"`
 * (specification, basic/index, "Requests"). The text is the id's own source text, for a string without its
 * quotes, so an integer above 2^53 stays exact.
 */

type IdType = 'string' | 'number';

/** `key` is equal for two ids exactly if they denote the same value of the same type. */
export type Id = { type: IdType; text: string; key: string };

export type IdProblem = 'id-null' | 'id-fractional' | 'id-not-scalar';

const PLAIN_INTEGER = /^(?:0|-?[1-9]\d*)$/;

const MAX_ZEROS = 1000;

/** Reads the value at `span` as an id, or says why it is none. */
export function readId(bytes: Buffer, span: Span): Id | IdProblem {
  if (span.type === 'null') return 'id-null';
  if (span.type === 'string') {
    const text = bytes.toString('utf8', span.start + 1, span.end - 1);
    return { type: 'string', text, key: `s${text.includes('\\') ? stringText(bytes, span) : text}` };
  }
  if (span.type !== 'number') return 'id-not-scalar';
  const text = sourceText(bytes, span);
  const integer = PLAIN_INTEGER.test(text) ? text : integerText(text);
  return integer === undefined ? 'id-fractional' : { type: 'number', text, key: `n${integer}` };
}

/** `1.0`, `1E3` and `-0` are integers too: their value in plain digits, or undefined for a true fraction. */
function integerText(text: string): string | undefined {
  const [mantissa = '', power = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = (whole + fraction).replace(/^-?0*/, '');
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  if (end === 0) return '0';

  const zeros = Number(power) - fraction.length + digits.length - end;
  if (zeros < 0) return undefined;
  const sign = text.startsWith('-') ? '-' : '';
  // The power of a hostile id is not written out: `1e999999999` would be a gigabyte.
  return sign + digits.slice(0, end) + (zeros > MAX_ZEROS ? `e${zeros}` : '0'.repeat(zeros));
}
