/**
 * One line that says what a message is: `tools/call echo`, `result 3 lines of text`, `error -32601 Method not found`.
 * The text comes from the wire: callers escape it before they show it.
 */

import { isObject, type JsonObject, membersOf, type Span, sourceText, stringText } from '../json/read.ts';
import { type Message, problemText } from './message.ts';
import { messageSpan } from './payload.ts';

/** The label of a larger body leaves its content out: it is not worth building the value. */
const MAX_BODY_BYTES = 1024 * 1024;

/** What a label takes of a message. The rest is in its payload. */
export type Labelled =
  | {
      kind: 'request' | 'notification';
      method: string;
      canonical: string;
      details: Pick<Message['details'], 'target' | 'protocolVersion' | 'peer'>;
    }
  | { kind: 'result' }
  | { kind: 'error'; code: number | null }
  | Pick<Extract<Message, { kind: 'invalid' }>, 'kind' | 'reason' | 'method'>;

/** What the index of a store has of a message. */
type Indexed = {
  kind: string;
  /** As it was written. */
  method: string | null;
  canonical: string | null;
  target: string | null;
  errorCode: number | null;
};

/** What the index knows of a message, which spares parsing it; null where that is too little. */
export function labelledBy({ kind, method, canonical, target, errorCode }: Indexed): Labelled | null {
  switch (kind) {
    case 'request':
    case 'notification':
      if (method === null || canonical === null || canonical === 'initialize') return null;
      return { kind, method, canonical, details: { target, protocolVersion: null, peer: null } };
    case 'result':
      return { kind };
    case 'error':
      return { kind, code: errorCode };
    default:
      return null;
  }
}

/** `payload` is the frame's and `n` the message's number inside it. `asked` is the method that an answer answers. */
export function messageLabel(message: Labelled, payload: Buffer, n: number, asked: string | null): string {
  switch (message.kind) {
    case 'request':
    case 'notification':
      return joinWords(methodWords(message.method, message.canonical), callText(message, payload, n));
    case 'result':
      return joinWords('result', resultText(bodyOf(payload, n, 'result'), asked));
    case 'error':
      return joinWords('error', String(message.code ?? ''), errorText(bodyOf(payload, n, 'error')));
    case 'invalid':
      return joinWords(
        `invalid: ${problemText(message.reason)}`,
        message.method === null ? '' : `(${message.method})`,
      );
  }
}

/** What a message says besides its method and target, where these stand beside it: of a call its arguments, as written. */
export function messageGist(message: Labelled, payload: Buffer, n: number, asked: string | null): string {
  if (message.kind !== 'request' && message.kind !== 'notification')
    return messageLabel(message, payload, n, asked);
  const text = callText(message, payload, n);
  if (text !== (message.details.target ?? '')) return text;
  const params = paramsOf(payload, n);
  return writtenText(payload, params.get('arguments') ?? params.get('argument'));
}

/** The source text of the part of a message that carries its meaning: params, result or error, else all of it. */
export function bodyText(message: Pick<Labelled, 'kind'>, payload: Buffer, n: number): string {
  if (message.kind === 'invalid') return payload.toString('utf8');
  const isAnswer = message.kind === 'result' || message.kind === 'error';
  const span = envelopeOf(payload, n)?.get(isAnswer ? message.kind : 'params');
  return span === undefined ? '' : sourceText(payload, span);
}

function joinWords(...words: string[]): string {
  return words.filter((word) => word !== '').join(' ');
}

function methodWords(method: string, canonical: string): string {
  return method === canonical ? method : `${canonical} (written ${method})`;
}

type Call = Extract<Labelled, { kind: 'request' | 'notification' }>;

function callText({ canonical, details }: Call, payload: Buffer, n: number): string {
  switch (canonical) {
    case 'initialize':
      return joinWords(details.protocolVersion ?? '', peerText(details.peer));
    case 'notifications/progress':
      return progressText(payload, paramsOf(payload, n));
    case 'notifications/message':
      return logText(payload, paramsOf(payload, n));
    case 'notifications/cancelled':
      return cancelText(payload, paramsOf(payload, n));
    case 'elicitation/create':
      return textOf(bodyOf(payload, n, 'params')?.['message']);
    default:
      return details.target ?? '';
  }
}

function peerText(peer: { name: string; version: string | null } | null): string {
  return peer === null ? '' : joinWords(peer.name, peer.version ?? '');
}

/** Parameters that are shown as they are written: exact numbers, and no value too odd or too deep to turn to text. */
type Params = ReadonlyMap<string, Span>;

function progressText(payload: Buffer, params: Params): string {
  // Older texts put the figures into `value`.
  const value = params.get('value');
  const figures: Params = value?.type === 'object' ? membersOf(payload, value) : params;
  const amount = writtenText(payload, figures.get('progress'));
  const total = writtenText(payload, figures.get('total'));
  const isPart = amount !== '' && total !== '';
  return joinWords(isPart ? `${amount}/${total}` : amount, stringOf(payload, figures.get('message')));
}

function logText(payload: Buffer, params: Params): string {
  const level = stringOf(payload, params.get('level'));
  const data = params.get('data');
  const content = data === undefined || data.type === 'null' ? params.get('message') : data;
  return joinWords(level === '' ? '' : `${level}:`, writtenText(payload, content));
}

function cancelText(payload: Buffer, params: Params): string {
  const request = params.get('requestId') ?? params.get('id');
  return joinWords(writtenText(payload, request), stringOf(payload, params.get('reason')));
}

function errorText(error: JsonObject | undefined): string {
  return textOf(error?.['message']);
}

/** The lists that results consist of, by the member that holds them. */
const LISTS: readonly [member: string, noun: string][] = [
  ['tools', 'tool'],
  ['skills', 'skill'],
  ['resources', 'resource'],
  ['resourceTemplates', 'resource template'],
  ['prompts', 'prompt'],
  ['roots', 'root'],
  ['tasks', 'task'],
  ['contents', 'content'],
  ['messages', 'message'],
];

function resultText(result: JsonObject | undefined, asked: string | null): string {
  if (result === undefined) return '';
  const { content, isError, resultType, serverInfo, protocolVersion, action } = result;
  if (resultType === 'input_required') return inputText(result['inputRequests']);
  if (isObject(serverInfo))
    return joinWords(textOf(protocolVersion), textOf(serverInfo['name']), textOf(serverInfo['version']));
  if (content !== undefined) return joinWords(isError === true ? 'tool error:' : '', contentText(content));
  for (const [member, noun] of LISTS) {
    const list = result[member];
    if (Array.isArray(list))
      return joinWords(counted(list.length, noun), result['nextCursor'] === undefined ? '' : 'and more');
  }
  if (isObject(result['skill'])) return skillText(result['skill']);
  if (typeof action === 'string') return action;
  if (isObject(result['task']))
    return joinWords('task', textOf(result['task']['taskId']), textOf(result['task']['status']));
  const isEmpty = Object.keys(result).every((key) => key === '_meta' || key === 'resultType');
  return isEmpty ? (asked === null || asked === 'ping' ? '' : 'empty') : '';
}

/** SEP-2640: `skill refunds, 3 files`. */
function skillText({ frontmatter, resources }: JsonObject): string {
  const name = joinWords('skill', isObject(frontmatter) ? textOf(frontmatter['name']) : '');
  return Array.isArray(resources) ? `${name}, ${counted(resources.length, 'file')}` : name;
}

function inputText(inputRequests: unknown): string {
  const names = isObject(inputRequests) ? Object.keys(inputRequests) : [];
  return names.length === 0 ? 'input required' : `input required: ${names.join(', ')}`;
}

/** `3 lines of text`, `1 line of text, 1 image`. Sampling results have one content block instead of a list. */
function contentText(content: unknown): string {
  const blocks = (Array.isArray(content) ? content : [content]).filter(isObject);
  const counts = new Map<string, number>();
  for (const block of blocks) {
    const type = textOf(block['type']) || 'block';
    const amount = type === 'text' ? textOf(block['text']).split('\n').length : 1;
    counts.set(type, (counts.get(type) ?? 0) + amount);
  }
  if (counts.size === 0) return 'no content';
  return [...counts]
    .map(([type, count]) => (type === 'text' ? `${counted(count, 'line')} of text` : counted(count, type)))
    .join(', ');
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function envelopeOf(payload: Buffer, n: number): Map<string, Span> | undefined {
  const span = messageSpan(payload, n);
  return span?.type === 'object' ? membersOf(payload, span) : undefined;
}

function bodyOf(payload: Buffer, n: number, member: 'params' | 'result' | 'error'): JsonObject | undefined {
  const span = bodySpan(payload, n, member);
  return span === undefined ? undefined : (JSON.parse(sourceText(payload, span)) as JsonObject);
}

function paramsOf(payload: Buffer, n: number): Params {
  const span = bodySpan(payload, n, 'params');
  return span === undefined ? new Map() : membersOf(payload, span);
}

function bodySpan(payload: Buffer, n: number, member: 'params' | 'result' | 'error'): Span | undefined {
  const span = envelopeOf(payload, n)?.get(member);
  return span?.type === 'object' && span.end - span.start <= MAX_BODY_BYTES ? span : undefined;
}

/** A string's text, and any other value as it is written. */
function writtenText(payload: Buffer, span: Span | undefined): string {
  if (span === undefined) return '';
  return span.type === 'string' ? stringText(payload, span) : sourceText(payload, span);
}

function stringOf(payload: Buffer, span: Span | undefined): string {
  return span?.type === 'string' ? stringText(payload, span) : '';
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
