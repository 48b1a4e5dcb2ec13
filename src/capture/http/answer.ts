/**
 * Relays the server's answer to the client as it comes: status line, header names, order and duplicates stay. Only the permitted
 * edits change anything in it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { contentCoding, EVENTS_TYPE, fieldsOf, JSON_TYPE, mediaType } from '../../protocol/http/headers.ts';
import type { HttpEvent } from '../../protocol/wire/http-event.ts';
import { now } from '../clock.ts';
import {
  type BodyEdit,
  createEndpointEdit,
  type EditedBytes,
  editMetadata,
  editResponseHeader,
  MAX_METADATA_BYTES,
  metadataUrl,
  type Origins,
} from './edits.ts';
import { type RelayedHeaders, relayHeaders } from './headers.ts';

/**
 * Shows what was forwarded, a moment later: what Node was given to write goes out at the end of the turn. `hold` is called
 * with what to wait for, if there is anything, before more of that body is read.
 */
export type Show = (event: HttpEvent, hold?: (wait: Promise<void>) => void) => void;

type AnswerContext = {
  exchange: number;
  request: IncomingMessage;
  response: ServerResponse;
  answer: IncomingMessage;
  /** Null where nothing may be edited. */
  origins: Origins | null;
  metadataPaths: MetadataPaths;
  show: Show;
};

/** Paths of the upstream at which it has said that its protected-resource metadata stands. */
export type MetadataPaths = Set<string>;

const MAX_METADATA_PATHS = 100;

const WELL_KNOWN_METADATA = '/.well-known/oauth-protected-resource';

export function relayAnswer(context: AnswerContext): void {
  const { origins, response } = context;
  const headers = relayAnswerHeaders(context);
  if (origins !== null && isMetadata(context)) {
    relayMetadata(context, headers, origins);
    return;
  }
  const edit = origins !== null && isEventStream(context) ? createEndpointEdit(origins) : null;
  relayHead(context, headers);
  relayBody(context, edit);
  // Headers and the first bytes of the body go out together where both are there; otherwise the headers at once.
  setImmediate(() => {
    if (!response.writableEnded) response.flushHeaders();
  });
}

function relayAnswerHeaders({ request, answer, origins, metadataPaths }: AnswerContext): RelayedHeaders {
  const status = answer.statusCode ?? 0;
  const canChunk = request.httpVersion !== '1.0' && status !== 204 && status !== 304;
  const edit = (name: string, value: string): string => {
    if (origins === null) return value;
    const edited = editResponseHeader(name, value, status, origins);
    if (edited !== value && name === 'www-authenticate') remember(metadataPaths, value);
    return edited;
  };
  return relayHeaders(answer.rawHeaders, edit, canChunk ? 'as-it-stands' : 'without-chunks');
}

function relayHead({ exchange, response, answer, show }: AnswerContext, headers: RelayedHeaders): void {
  const status = answer.statusCode ?? 0;
  const statusMessage = answer.statusMessage ?? '';
  const { forwarded, shown, edits } = headers;
  response.sendDate = false;
  response.writeHead(status, statusMessage, forwarded);
  show({ type: 'response', exchange, at: now(), status, statusMessage, rawHeaders: shown, edits });
}

function relayBody({ exchange, response, answer, show }: AnswerContext, edit: BodyEdit | null): void {
  let isHeld = false;
  const resume = () => {
    if (!isHeld && !response.writableNeedDrain) answer.resume();
  };
  const send = ({ bytes, original }: EditedBytes) => {
    if (bytes.length === 0) return;
    if (!response.write(bytes)) answer.pause();
    const event = { type: 'response-body', exchange, at: now(), bytes } as const;
    show(original === undefined ? event : { ...event, original }, hold);
  };
  const hold = (wait: Promise<void>) => {
    isHeld = true;
    answer.pause();
    void wait.then(() => {
      isHeld = false;
      resume();
    });
  };
  answer.on('data', (bytes: Buffer) => send(edit === null ? { bytes } : edit.feed(bytes)));
  answer.on('end', () => {
    if (edit !== null) send(edit.end());
    endAnswer(response, answer);
  });
  response.on('drain', resume);
}

function endAnswer(response: ServerResponse, answer: IncomingMessage): void {
  if (answer.rawTrailers.length > 0) response.addTrailers(fieldsOf(answer.rawTrailers));
  response.end();
}

/** Metadata are edited as a whole, so their headers wait for their body. */
function relayMetadata(context: AnswerContext, headers: RelayedHeaders, origins: Origins): void {
  const { exchange, response, answer, show } = context;
  const chunks: Buffer[] = [];
  let size = 0;
  const sendUnchanged = () => {
    relayHead(context, headers);
    for (const bytes of chunks) {
      response.write(bytes);
      show({ type: 'response-body', exchange, at: now(), bytes });
    }
  };
  const onData = (bytes: Buffer) => {
    chunks.push(bytes);
    size += bytes.length;
    if (size <= MAX_METADATA_BYTES) return;
    answer.off('data', onData);
    answer.off('end', onEnd);
    sendUnchanged();
    relayBody(context, null);
  };
  const onEnd = () => {
    const original = Buffer.concat(chunks);
    const bytes = editMetadata(original, codingOf(answer), origins);
    if (bytes === null) sendUnchanged();
    else {
      relayHead(context, withLength(headers, bytes.length));
      response.write(bytes);
      show({ type: 'response-body', exchange, at: now(), bytes, original });
    }
    endAnswer(response, answer);
  };
  answer.on('data', onData);
  answer.on('end', onEnd);
}

/** The headers with the `Content-Length`, if there is one, set to the length of an edited body. */
function withLength({ forwarded, shown, edits }: RelayedHeaders, length: number): RelayedHeaders {
  const place = shown.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length');
  if (place < 0) return { forwarded, shown, edits };
  const header = shown[place] as string;
  const original = shown[place + 1] as string;
  if (original === String(length)) return { forwarded, shown, edits };
  const setLength = (raw: readonly string[]) =>
    raw.map((text, i) => (i % 2 === 1 && raw[i - 1] === header ? String(length) : text));
  return {
    forwarded: setLength(forwarded),
    shown: setLength(shown),
    edits: [...edits, { header, original }],
  };
}

function isMetadata({ request, answer, metadataPaths }: AnswerContext): boolean {
  if (request.method !== 'GET' || answer.statusCode !== 200) return false;
  // An answer of another type may go on for ever, and nothing of it may wait (RFC 9728, 3.2: metadata are JSON).
  const type = mediaType(answer.headers['content-type']);
  if (type !== '' && type !== JSON_TYPE && !type.endsWith('+json')) return false;
  const path = pathOf(request.url ?? '');
  return path.startsWith(WELL_KNOWN_METADATA) || metadataPaths.has(path);
}

function isEventStream({ request, answer }: AnswerContext): boolean {
  if (request.method !== 'GET' || answer.statusCode !== 200) return false;
  const { headers } = answer;
  return mediaType(headers['content-type']) === EVENTS_TYPE && codingOf(answer) === 'identity';
}

function codingOf({ headers }: IncomingMessage): string {
  return contentCoding(headers['content-encoding']);
}

function remember(paths: MetadataPaths, challenge: string): void {
  const url = metadataUrl(challenge);
  if (url !== null && paths.size < MAX_METADATA_PATHS && URL.canParse(url)) paths.add(new URL(url).pathname);
}

function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}
