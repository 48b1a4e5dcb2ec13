/** Opens a recorded session to be replayed: its script, and the bytes of its messages. */

import type { IncomingHttpHeaders } from 'node:http';
import { type ParamHeader, paramHeadersOf } from '../../protocol/http/mirrored-headers.ts';
import { canonicalText } from '../../protocol/json/canonical.ts';
import { memberAt, sourceAt } from '../../protocol/json/edit.ts';
import { eachElement, type Span } from '../../protocol/json/read.ts';
import { jsonOf } from '../../protocol/message/conversation.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { type Message, parseMessages, type RequestMessage } from '../../protocol/message/message.ts';
import { messageText } from '../../protocol/message/payload.ts';
import { PLAIN_PROFILE, type RedactionProfile } from '../../protocol/redact/profile.ts';
import { type Channel, directionOf } from '../../protocol/wire/frame.ts';
import { clientIn } from '../../store/file/columns.ts';
import type { Store } from '../../store/file/open.ts';
import { type MessageLinks, prepareLinks } from '../../store/read/exchanges.ts';
import { preparePayloads } from '../../store/read/frames.ts';
import {
  type HttpHead,
  type PrimingEvent,
  prepareEventReader,
  prepareHttpHeads,
} from '../../store/read/http.ts';
import { type SessionRow, sessionDetails } from '../../store/read/sessions.ts';
import { requestHeadersOf } from '../http/headers.ts';
import { findMismatch, type ParamHeadersOf } from '../http/mismatch.ts';
import { buildScript, type Script, type ScriptLine, type Step } from './script.ts';
import { type RecordingSecrets, readSecrets } from './secrets.ts';

/** Where a message was recorded. `session`: the name or id of its session; null where there is only one. */
export type Origin = { seq: number; session: string | null };

export type Recording = MessageLinks &
  RecordingSecrets & {
    session: SessionRow;
    script: Script;
    /** Its messages in the order in which they passed. */
    lines(): Iterable<ScriptLine>;
    /** The JSON text of the message at this place, without the space around it. Throws `RangeError` where there is none. */
    load(place: Place): Buffer;
    /** Parses such a text; undefined where it is no message. */
    read(json: Buffer): Message | undefined;
    httpExchange(number: number): HttpHead | undefined;
    /** The tools that the server listed. */
    tools(): Tools;
    /** Which arguments of a tool its clients repeat in HTTP headers; none where its schema was not recorded. */
    paramHeadersOf: ParamHeadersOf;
    /** Names the frame for people. */
    originOf(place: Place): Origin;
    /** Whether the message came as an event that had an id. */
    hadEventId(place: Place): boolean;
    /** The event without a message that began the message's stream, so that the client had an id. */
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
  httpExchange: number | null,
  status: number | null,
  flags: string | null,
  errorCode: number | null,
];

const FLAGS = 13;

const ERROR_CODE = 14;

/**
 * Events that a resumed stream brought again were sent once. What was refused for want of credentials was asked again
 * with them, and only that has an answer. In the order of the frames' own numbers, in which their index stands, so that nothing
 * has to be sorted.
 */
const SELECT_LINES = `SELECT m.seq, m.n, m.id_type || ' ' || m.id, m.kind, m.canonical, m.target, m.relation, m.to_seq, m.to_n,
    f.channel, f.at, f.http, h.status, f.flags, m.error_code
  FROM message AS m JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
  LEFT JOIN http_exchange AS h ON h.session = f.session AND h.number = f.http
  WHERE f.session = ? AND (f.flags IS NULL OR f.flags NOT LIKE '%replayed%')
    AND NOT (m.kind = 'invalid' AND m.relation IS NULL)
    AND (h.status IS NULL OR h.status NOT IN (401, 403))
  ORDER BY f.seq, m.n`;

/**
 * `keyStores`: stores that may hold the key of the recording's placeholders. `more`: what is redacted besides, from now on.
 */
export function readRecording(
  store: Store,
  session: SessionRow,
  keyStores: readonly Store[] = [store],
  more: RedactionProfile = PLAIN_PROFILE,
): Recording {
  const payloadAt = preparePayloads(store, session.number);
  const events = prepareEventReader(store, session.number);
  const links = prepareLinks(store, session.number);
  const httpExchange = prepareHttpHeads(store, session.number);
  const load = ({ seq, n }: Place) => {
    const frame = payloadAt(seq);
    if (frame === undefined) throw new RangeError(`the recording has no frame ${seq}`);
    return messageText(jsonOf(frame), n);
  };
  const read = (json: Buffer) => parseMessages(json)[0];
  let tools: Tools | undefined;
  const listed = () => {
    tools ??= toolsIn(links.resultsOf('tools/list'), load);
    return tools;
  };
  const paramHeadersOf = (tool: string) => paramHeadersIn(listed(), tool);
  // The mock refuses by itself what was refused for its headers. The same request with the right ones is another.
  const isOwnRefusal: IsOwnRefusal = (place, number, status) => {
    const json = load(place);
    const message = read(json);
    if (message?.kind !== 'request') return false;
    const headers = requestHeadersOf(httpExchange(number));
    if (!message.details.isModern) return isOfLostSession(session, message, headers, status);
    return status === BAD_REQUEST && findMismatch(headers, message, json, paramHeadersOf) !== null;
  };
  return {
    ...readSecrets(sessionDetails(store, session.number).redaction, keyStores, more, function* () {
      yield session.target;
      for (const { place } of eachLine(store, session, isOwnRefusal)) yield load(place).toString('latin1');
    }),
    session,
    script: buildScript(eachLine(store, session, isOwnRefusal)),
    lines: () => eachLine(store, session, isOwnRefusal),
    load,
    read,
    httpExchange,
    ...links,
    tools: listed,
    paramHeadersOf,
    originOf: ({ seq }) => ({ seq, session: null }),
    hadEventId: ({ seq }) => events.hadId(seq),
    primingBefore: ({ place, httpExchange }) =>
      httpExchange === null ? null : events.primingBefore(place.seq, httpExchange),
  };
}

/** Whether it named a session that its server did not know any more, or none where it had to (2025-11-25, basic/transports). */
function isOfLostSession(
  { basis }: SessionRow,
  { canonical }: RequestMessage,
  headers: IncomingHttpHeaders,
  status: number,
): boolean {
  if (basis !== 'session-header' || canonical === 'initialize') return false;
  return (headers['mcp-session-id'] !== undefined) === (status === NOT_FOUND);
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

/** Whether the mock's own HTTP refuses what was refused with this status, so that no answer to it is ever wanted. */
type IsOwnRefusal = (place: Place, httpExchange: number, status: number) => boolean;

function* eachLine(store: Store, { number }: SessionRow, isOwnRefusal: IsOwnRefusal): Generator<ScriptLine> {
  const refused = new Set<number>();
  const faulted = faultedFrames(store, number);
  for (const row of store.prepare<[number], LineRow>(SELECT_LINES).raw().iterate(number)) {
    const [seq, n, id, kind, method, target, relation, toSeq, toN, channel, at, httpExchange, status] = row;
    if (faulted.has(seq) || (toSeq !== null && faulted.has(toSeq))) continue;
    if ((status === BAD_REQUEST || status === NOT_FOUND) && httpExchange !== null) {
      if (kind === 'request' && isOwnRefusal({ seq, n }, httpExchange, status)) refused.add(httpExchange);
      if (refused.has(httpExchange)) continue;
    }
    const place = { seq, n };
    const to = toSeq === null || toN === null ? null : { seq: toSeq, n: toN };
    const direction = directionOf(channel);
    const [client, errorCode] = [clientIn(row[FLAGS]), row[ERROR_CODE]];
    yield { place, id, direction, kind, method, target, at, httpExchange, relation, to, client, errorCode };
  }
}

/** What had a fault put into it on purpose, and the requests that were answered so: no server has ever answered like that. */
function faultedFrames(store: Store, session: number): ReadonlySet<number> {
  const select = store.prepare<[number], [seq: number, toSeq: number | null]>(
    `SELECT x.seq, m.to_seq FROM frame_fault AS x LEFT JOIN message AS m
       ON m.session = x.session AND m.seq = x.seq AND m.relation = 'reply' WHERE x.session = ?`,
  );
  const faulted = new Set<number>();
  for (const [seq, toSeq] of select.raw().iterate(session)) {
    faulted.add(seq);
    if (toSeq !== null) faulted.add(toSeq);
  }
  return faulted;
}

/**
 * The frames of these calls and of no others: their requests, all that the server sent for them, and what the client said in
 * between.
 */
export function framesOfCalls({ script, lines }: Recording, calls: readonly number[]): number[] {
  const keyOf = ({ seq, n }: Place) => `${seq}.${n}`;
  const steps = calls.flatMap((call) => [...script.stepsOf(call), ...script.aftermathOf(call)]);
  const own = new Set([...calls.map(script.placeOf), ...steps.map(({ place }) => place)].map(keyOf));
  const frames = new Set<number>();
  const others = new Set<number>();
  for (const { place, direction, to } of lines()) {
    // Cancellations, and answers to the server's questions.
    if (direction === 'client-to-server' && to !== null && own.has(keyOf(to))) own.add(keyOf(place));
    (own.has(keyOf(place)) ? frames : others).add(place.seq);
  }
  return [...frames].filter((seq) => !others.has(seq));
}

/** `frame 9`, or `frame 9 of demo` where there are several sessions. */
export function frameText({ seq, session }: Origin): string {
  return session === null ? `frame ${seq}` : `frame ${seq} of ${session}`;
}

const BAD_REQUEST = 400;

const NOT_FOUND = 404;

/** The tools of a server, as its answers to `tools/list` have them. */

/** By name: the tool's canonical JSON. */
export type Tools = Map<string, Buffer>;

/** Takes the tools of one answer to `tools/list`. Of several tools with one name the last counts. */
export function collectTools(tools: Tools, answer: Buffer): void {
  const list = memberAt(answer, ['result', 'tools']);
  if (list?.type !== 'array') return;
  eachElement(answer, list.start, (element: Span) => {
    if (element.type !== 'object') return;
    const text = canonicalText(answer, element);
    if (typeof text === 'string') return;
    const name: unknown = JSON.parse(sourceAt(text, ['name']) ?? 'null');
    if (typeof name === 'string') tools.set(name, text);
  });
}

export function isReadOnly(tool: Buffer | undefined): boolean {
  return tool !== undefined && sourceAt(tool, ['annotations', 'readOnlyHint']) === 'true';
}

/** Which arguments of a tool its clients repeat in HTTP headers; none for a tool that was never listed. */
export function paramHeadersIn(tools: Tools, name: string): ParamHeader[] {
  const schema = sourceAt(tools.get(name) ?? NO_TOOL, ['inputSchema']);
  return schema === undefined ? [] : paramHeadersOf(JSON.parse(schema));
}

const NO_TOOL = Buffer.from('{}');
