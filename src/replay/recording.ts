/** A recorded session, opened to be replayed: its script, and the bytes of its messages. */
import { jsonOf } from '../protocol/conversation.ts';
import { type Channel, directionOf } from '../protocol/frame.ts';
import { eachElement, type Span, skipSpace, typeAt } from '../protocol/json.ts';
import { type Message, parseMessages } from '../protocol/message.ts';
import { type HttpHead, prepareHttpHeads } from '../store/http-heads.ts';
import { type PrimingEvent, prepareEventReader } from '../store/http-reader.ts';
import { type MessageLinks, prepareLinks } from '../store/message-links.ts';
import type { Store } from '../store/open.ts';
import { preparePayloads } from '../store/payloads.ts';
import type { SessionRow } from '../store/reader.ts';
import { requestHeadersOf } from './http-headers.ts';
import { findMismatch, type ParamHeadersOf } from './http-mismatch.ts';
import { type Alike, createAlike } from './redaction.ts';
import type { Place, Script, ScriptLine, Step } from './script.ts';
import { buildScript } from './script-builder.ts';
import { collectTools, paramHeadersIn, type Tools } from './tools.ts';

/** Where a message was recorded. `session`: the name or id of its session; null where there is only one. */
export type Origin = { seq: number; session: string | null };

export type Recording = MessageLinks &
  Alike & {
    session: SessionRow;
    script: Script;
    /** Its messages in the order in which they passed. */
    lines(): Iterable<ScriptLine>;
    /** The JSON text of the message at this place, without the space around it. Throws `RangeError` where there is none. */
    load(place: Place): Buffer;
    /** Such a text as a message; undefined where it is none. */
    read(json: Buffer): Message | undefined;
    exchange(number: number): HttpHead | undefined;
    /** Which arguments of a tool its clients repeat in HTTP headers; none where its schema was not recorded. */
    paramHeadersOf: ParamHeadersOf;
    /** For people, who know the frames of a session by their numbers. */
    originOf(place: Place): Origin;
    /** Whether the message came as an event that had an id. */
    hadEventId(place: Place): boolean;
    /** The event without a message that the message's stream began with, to give the client an id. */
    primingBefore(step: Step): PrimingEvent | null;
  };

/** The columns of `SELECT_LINES`: as arrays, rows are read in two thirds of the time. */
type LineRow = [
  seq: number,
  n: number,
  id: string | null,
  kind: string,
  method: string | null,
  target: string | null,
  relation: string | null,
  toSeq: number | null,
  toN: number | null,
  channel: Channel,
  at: number,
  exchange: number | null,
  status: number | null,
];

/**
 * Events that a resumed stream brought again were sent once. What was refused for want of credentials was asked again
 * with them, and only that has an answer.
 */
const SELECT_LINES = `SELECT m.seq, m.n, m.id_type || ' ' || m.id, m.kind, m.canonical, m.target, m.relation, m.to_seq, m.to_n,
    f.channel, f.at, f.http, h.status
  FROM message AS m JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
  LEFT JOIN http_exchange AS h ON h.session = f.session AND h.number = f.http
  WHERE m.session = ? AND (f.flags IS NULL OR f.flags NOT LIKE '%replayed%')
    AND NOT (m.kind = 'invalid' AND m.relation IS NULL)
    AND (h.status IS NULL OR h.status NOT IN (401, 403))
  ORDER BY m.seq, m.n`;

/** `keyStores`: where the key may be that the recording's placeholders were made with. */
export function openRecording(
  store: Store,
  session: SessionRow,
  keyStores: readonly Store[] = [store],
): Recording {
  const payloadAt = preparePayloads(store, session.number);
  const events = prepareEventReader(store, session.number);
  const links = prepareLinks(store, session.number);
  const exchange = prepareHttpHeads(store, session.number);
  const load = ({ seq, n }: Place) => {
    const frame = payloadAt(seq);
    if (frame === undefined) throw new RangeError(`the recording has no frame ${seq}`);
    return messageText(jsonOf(frame), n);
  };
  const read = (json: Buffer) => parseMessages(json)[0];
  let tools: Tools | undefined;
  const paramHeadersOf = (tool: string) => {
    tools ??= toolsIn(links.resultsOf('tools/list'), load);
    return paramHeadersIn(tools, tool);
  };
  // The mock refuses by itself what was refused for its headers. The same request with the right ones is another.
  const isMismatched = (place: Place, number: number) => {
    const json = load(place);
    const message = read(json);
    const headers = requestHeadersOf(exchange(number));
    return (
      message?.kind === 'request' &&
      message.details.isModern &&
      findMismatch(headers, message, json, paramHeadersOf) !== null
    );
  };
  return {
    ...createAlike(store, session.number, keyStores),
    session,
    script: buildScript(eachLine(store, session, isMismatched)),
    lines: () => eachLine(store, session, isMismatched),
    load,
    read,
    exchange,
    ...links,
    paramHeadersOf,
    originOf: ({ seq }) => ({ seq, session: null }),
    hadEventId: ({ seq }) => events.hadId(seq),
    primingBefore: ({ place, exchange }) =>
      exchange === null ? null : events.primingBefore(place.seq, exchange),
  };
}

/** Lists that cannot be read any more name no tools. */
function toolsIn(lists: readonly Place[], load: Recording['load']): Tools {
  const tools: Tools = new Map();
  for (const place of lists) {
    try {
      collectTools(tools, load(place));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return tools;
}

function* eachLine(
  store: Store,
  { number }: SessionRow,
  isMismatched: (place: Place, exchange: number) => boolean,
): Generator<ScriptLine> {
  const refused = new Set<number>();
  for (const row of store.prepare<[number], LineRow>(SELECT_LINES).raw().iterate(number)) {
    const [seq, n, id, kind, method, target, relation, toSeq, toN, channel, at, exchange, status] = row;
    if (status === BAD_REQUEST && exchange !== null) {
      if (kind === 'request' && isMismatched({ seq, n }, exchange)) refused.add(exchange);
      if (refused.has(exchange)) continue;
    }
    const to = toSeq === null || toN === null ? null : { seq: toSeq, n: toN };
    const direction = directionOf(channel);
    yield { place: { seq, n }, id, direction, kind, method, target, at, exchange, relation, to };
  }
}

/** `frame 9`, or `frame 9 of demo` where there are several sessions. */
export function frameText({ seq, session }: Origin): string {
  return session === null ? `frame ${seq}` : `frame ${seq} of ${session}`;
}

const BAD_REQUEST = 400;
const BOM_BYTES = 3;

/** The `n`th message of a frame: an element of a batch, or all of it. */
export function messageText(json: Buffer, n: number): Buffer {
  const start = skipSpace(json, json[0] === 0xef ? BOM_BYTES : 0);
  if (typeAt(json, start) !== 'array') {
    let end = json.length;
    while (end > start && skipSpace(json, end - 1) > end - 1) end -= 1;
    return end - start === json.length ? json : json.subarray(start, end);
  }
  const elements: Span[] = [];
  eachElement(json, start, (element) => elements.push(element));
  const element = elements[n];
  if (element === undefined) throw new RangeError(`the batch has no message ${n}`);
  return json.subarray(element.start, element.end);
}
