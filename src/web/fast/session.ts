/** One session as a whole: what it was, what its server offered, what is missing of it. */

import { endText, lossesOf } from '../../inspect/view/session.ts';
import { formatTime } from '../../inspect/view/text.ts';
import { eachElement, membersOf, type Span, sourceText, stringText } from '../../protocol/json/read.ts';
import { jsonOf } from '../../protocol/message/conversation.ts';
import { messageSpan } from '../../protocol/message/payload.ts';
import type { Store } from '../../store/file/open.ts';
import { prepareLinks } from '../../store/read/exchanges.ts';
import { preparePayloads } from '../../store/read/frames.ts';
import { metaOnlyOf, metaOnlyText } from '../../store/read/meta-only.ts';
import { type RequestPlace, requestsOfMethods } from '../../store/read/outline.ts';
import { type SessionDetails, type SessionRow, sessionDetails } from '../../store/read/sessions.ts';
import { lastFrame } from '../../store/read/slices.ts';
import type { SessionDetail } from '../api.ts';
import { breathe, emitFreshness, sessionParam } from '../params.ts';
import type { Emit, Work } from '../work.ts';
import { createErrorLines } from './error-lines.ts';
import { listedSession } from './sessions.ts';

export const sessionWork: Work = async (store, params, emit) => {
  const session = sessionParam(store, params);
  if (await emitFreshness(store, session, params, emit)) return;
  await emitSession(store, session, null, emit);
};

/** `findings`: how many there are; null where nobody asks for that. */
export async function emitSession(
  store: Store,
  session: SessionRow,
  findings: number | null,
  emit: Emit,
): Promise<void> {
  const details = sessionDetails(store, session.number);
  const membersAt = prepareMembers(store, session.number);
  const lines = createErrorLines(store);
  const detail: SessionDetail = {
    session: listedSession(store, session, lines.inTime),
    labels: details.labels,
    command: session.target,
    environment: environmentOf(session, details),
    capabilities: capabilitiesOf(store, session.number, membersAt),
    offers: await offersOf(store, session, membersAt),
    losses: lossesInWords(store, session),
    ending: endText(session),
    lastSeq: lastFrame(store, session.number)?.seq ?? 0,
    httpExchanges: session.httpExchanges,
    findings,
  };
  await emit(JSON.stringify(detail));
  lines.completeLater();
}

/** What is known of where it was recorded; of a recording that was imported only who recorded it. */
function environmentOf(session: SessionRow, details: SessionDetails): SessionDetail['environment'] {
  const { host, pid, clientProgram, clientPid, importedFrom } = session;
  const { cwd, serverPid, tapedeck, redaction, importedAt } = details;
  if (importedFrom !== null) return [['imported from', importedFrom]];
  const here: [string, string | null][] = [
    ['host', host],
    ['folder', cwd],
    ['started by', clientProgram === null ? null : `${clientProgram}, pid ${clientPid}`],
    ['server', serverPid === null ? null : `pid ${serverPid}`],
    ['recorder', `pid ${pid}`],
  ];
  const facts: [string, string | null][] = [
    ...(importedAt === null ? here : ([['imported', formatTime(importedAt)]] satisfies typeof here)),
    ['recorded by', `tapedeck ${tapedeck}`],
    ['redaction', redactionInWords(redaction)],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== null);
}

/** Which secrets were replaced while it was recorded, or after. */
function redactionInWords(redaction: SessionDetails['redaction']): string {
  if (redaction === null) return 'none: secrets are as they passed';
  const { without, rules, paths } = redaction;
  const own = [...rules.map((rule) => rule.slice(0, rule.indexOf('='))), ...paths];
  return [
    'all known kinds of secrets',
    ...(without.length > 0 ? [`but not ${without.join(', ')}`] : []),
    ...(own.length > 0 ? [`and ${own.join(', ')}`] : []),
  ].join(', ');
}

function lossesInWords(store: Store, session: SessionRow): string[] {
  const noPayloads = 'no payloads: recorded with --capture meta';
  const metaOnly = metaOnlyOf(store, session);
  return [
    ...lossesOf(session),
    ...(session.capture === 'meta' ? [noPayloads] : []),
    ...(metaOnly === null ? [] : [metaOnlyText(metaOnly)]),
  ];
}

/** Members of a message's part (`params`, `result`), with the bytes that they stand in. Null where it has no such part. */
type Members = { bytes: Buffer; members: ReadonlyMap<string, Span> };

type MembersAt = (place: { seq: number; n: number }, part: 'params' | 'result') => Members | null;

function prepareMembers(store: Store, session: number): MembersAt {
  const payloadOf = preparePayloads(store, session);
  return ({ seq, n }, part) => {
    const frame = payloadOf(seq);
    if (frame === undefined) return null;
    const bytes = jsonOf(frame);
    const span = messageSpan(bytes, n);
    const body = span?.type === 'object' ? membersOf(bytes, span).get(part) : undefined;
    return body?.type === 'object' ? { bytes, members: membersOf(bytes, body) } : null;
  };
}

/** Who speaks first says what it can do. */
const INTRODUCTIONS = ['initialize', 'server/discover'];

const WITHIN_FRAMES = 1000;

const CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

function capabilitiesOf(store: Store, session: number, membersAt: MembersAt): SessionDetail['capabilities'] {
  const within = { after: 0, upTo: WITHIN_FRAMES };
  const [request] = requestsOfMethods(store, session, INTRODUCTIONS, within);
  if (request === undefined) return { client: null, server: null };
  const answer = prepareLinks(store, session).answerTo(request);
  const asked = membersAt(request, 'params');
  const answered = answer === null ? null : membersAt(answer, 'result');
  return {
    client: sourceOf(asked, 'capabilities') ?? metaOf(asked),
    server: sourceOf(answered, 'capabilities'),
  };
}

function sourceOf(body: Members | null, name: string): string | null {
  const span = body?.members.get(name);
  return body === null || span === undefined ? null : sourceText(body.bytes, span);
}

/** Since 2026-07-28 every request says it in its `_meta`. */
function metaOf(body: Members | null): string | null {
  const meta = body?.members.get('_meta');
  if (body === null || meta?.type !== 'object') return null;
  return sourceOf({ bytes: body.bytes, members: membersOf(body.bytes, meta) }, CLIENT_CAPABILITIES);
}

type Offer = SessionDetail['offers'][number];

/** The lists that a server offers by: the member of the result, and what names one thing of it. */
const LISTS: Readonly<Record<string, { kind: Offer['kind']; member: string; name: string }>> = {
  'tools/list': { kind: 'tool', member: 'tools', name: 'name' },
  'prompts/list': { kind: 'prompt', member: 'prompts', name: 'name' },
  'resources/list': { kind: 'resource', member: 'resources', name: 'uri' },
  'resources/templates/list': { kind: 'template', member: 'resourceTemplates', name: 'uriTemplate' },
};

/** A client may ask for the lists again and again: the newest definition counts, of so many answers at most. */
const MOST_ANSWERS = 500;

async function offersOf(store: Store, session: SessionRow, membersAt: MembersAt): Promise<Offer[]> {
  const requests = (await listRequests(store, session)).slice(-MOST_ANSWERS);
  const { answerTo } = prepareLinks(store, session.number);
  const offers = new Map<string, Offer>();
  for (const request of requests) {
    const list = LISTS[request.method];
    const answer = answerTo(request);
    const body = answer === null ? null : membersAt(answer, 'result');
    const span = list === undefined ? undefined : body?.members.get(list.member);
    if (list === undefined || answer === null || body === null || span?.type !== 'array') continue;
    eachElement(body.bytes, span.start, (element) => {
      const name = element.type === 'object' ? membersOf(body.bytes, element).get(list.name) : undefined;
      if (name?.type !== 'string') return;
      const text = stringText(body.bytes, name);
      const bytes = element.end - element.start;
      offers.set(`${list.kind} ${text}`, { kind: list.kind, name: text, bytes, seq: answer.seq });
    });
  }
  return [...offers.values()];
}

const FRAMES_AT_ONCE = 10_000;

type Looked = { upTo: number; found: RequestPlace[] };

/** Up to where each session was looked through, by connection: one that is recorded is asked for again and again. */
const looked = new WeakMap<Store, Map<number, Looked>>();

async function listRequests(store: Store, { number, indexed }: SessionRow): Promise<readonly RequestPlace[]> {
  const ofStore = looked.get(store) ?? new Map<number, Looked>();
  looked.set(store, ofStore);
  const before = ofStore.get(number) ?? { upTo: 0, found: [] };
  // An index that is rebuilt begins anew.
  const { upTo, found } = before.upTo > indexed ? { upTo: 0, found: [] } : before;
  const all = [...found];
  for (let after = upTo; after < indexed; after += FRAMES_AT_ONCE) {
    const within = { after, upTo: Math.min(after + FRAMES_AT_ONCE, indexed) };
    all.push(...requestsOfMethods(store, number, Object.keys(LISTS), within));
    await breathe();
  }
  ofStore.set(number, { upTo: indexed, found: all });
  return all;
}
