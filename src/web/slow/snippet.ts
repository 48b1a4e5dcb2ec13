/** A frame as text to paste: for a bug report, a shell, a test. */

import { isUtf8 } from 'node:buffer';
import { TapedeckError } from '../../errors.ts';
import { curlCommands } from '../../export/curl.ts';
import { frameLine } from '../../export/text/frame.ts';
import { msText } from '../../export/text/lines.ts';
import { frameJson } from '../../inspect/view/json.ts';
import { jsonOf } from '../../protocol/message/conversation.ts';
import { messageText } from '../../protocol/message/payload.ts';
import { commandLine } from '../../protocol/text.ts';
import type { Store } from '../../store/file/open.ts';
import { fetchedFolder, storePath } from '../../store/file/path.ts';
import { type BareFrame, prepareFramesAfter, prepareMessagesBetween } from '../../store/read/frames.ts';
import { originalOf, prepareHttpSummary } from '../../store/read/http.ts';
import { type SessionRow, sessionDetails } from '../../store/read/sessions.ts';
import { typedName } from '../../version.ts';
import type { Snippet } from '../api.ts';
import { numberParam } from '../params.ts';
import { emitJson, type Job, sessionOf, workOf } from './job.ts';
import { testCode } from './test-code.ts';

/** Where the snippet is taken from. */
type Place = { store: Store; session: SessionRow; seq: number };

const MAKERS = {
  link: ({ session, seq }: Place) => `/s/${session.id}/f/${seq}`,
  json: asJson,
  raw: ({ store, session, seq }: Place) => textOf(frameAt(store, session, seq)),
  ndjson: asLine,
  curl: asCurl,
  verify: asVerify,
  test: asTest,
} as const satisfies Record<string, (place: Place) => string>;

/** A clipboard takes no more, nor would anybody read it. */
const MOST_BYTES = 8 * 1024 * 1024;

export const snippetWork = workOf(snippet);

async function snippet(job: Job): Promise<void> {
  const written = job.params['as'] ?? '';
  const names = Object.keys(MAKERS) as (keyof typeof MAKERS)[];
  const name = names.find((known) => known === written);
  if (name === undefined)
    throw new TapedeckError('usage', `Expected one of ${names.join(', ')} as \`as\`, got \`${written}\`.`);
  const session = sessionOf(job);
  const seq = numberParam(job.params, 'seq', { least: 1, most: Number.MAX_SAFE_INTEGER });
  const place = { store: job.store, session, seq };
  const { payload } = frameAt(job.store, session, seq);
  if (payload.length > MOST_BYTES)
    throw new TapedeckError('refused', 'The frame has more than 8 MB. Download its bytes instead.');
  await emitJson(job, { text: MAKERS[name](place) } satisfies Snippet);
}

/** The request of an HTTP exchange, whether it has a frame or none, as curl. */
export const httpSnippetWork = workOf(async (job) => {
  const number = numberParam(job.params, 'number', { least: 1, most: Number.MAX_SAFE_INTEGER });
  await emitJson(job, { text: curlCommands(job.store, sessionOf(job), number) } satisfies Snippet);
});

function frameAt(store: Store, session: SessionRow, seq: number): BareFrame {
  const [frame] = prepareFramesAfter(store, session.number, 1)(seq - 1);
  if (frame?.seq === seq) return frame;
  throw new TapedeckError('not-found', `Session ${session.id} has no frame ${seq}.`);
}

function textOf({ payload }: BareFrame): string {
  if (isUtf8(payload)) return payload.toString('utf8');
  throw new TapedeckError('refused', 'The frame is no text in UTF-8. Download its bytes instead.');
}

function asJson({ store, session, seq }: Place): string {
  const messages = prepareMessagesBetween(store, session.number)(seq - 1, seq);
  const details = {
    summaryOf: prepareHttpSummary(store, session.number),
    originalOf: (number: number) => originalOf(store, session.number, number),
  };
  return [...frameJson(session.id, { ...frameAt(store, session, seq), messages }, details)]
    .join('')
    .trimEnd();
}

/** As a line of a text recording; its time is that since the session's start. */
function asLine({ store, session, seq }: Place): string {
  const frame = frameAt(store, session, seq);
  const original = frame.isEdited ? originalOf(store, session.number, seq) : null;
  return [...frameLine(frame, msText(frame.at - session.startedAt), original)].join('').trimEnd();
}

type Request = { seq: number; n: number; method: string; target: string | null; isClients: boolean };

/** The request that stands in the frame, or that it answers. */
function requestAt({ store, session, seq }: Place): Request {
  const sql = `SELECT r.seq, r.n, r.canonical AS method, r.target, f.channel IN ('stdin', 'request') AS isClients
    FROM message AS m JOIN message AS r ON r.session = m.session AND r.kind = 'request'
      AND r.seq = iif(m.kind = 'request', m.seq, m.to_seq) AND r.n = iif(m.kind = 'request', m.n, m.to_n)
    JOIN frame AS f ON f.session = r.session AND f.seq = r.seq
    WHERE m.session = ? AND m.seq = ? ORDER BY m.n LIMIT 1`;
  const row = store
    .prepare<[number, number], Omit<Request, 'isClients'> & { isClients: 0 | 1 }>(sql)
    .get(session.number, seq);
  if (row === undefined)
    throw new TapedeckError('refused', `Expected a request or an answer in frame ${seq}. It has none.`);
  return { ...row, isClients: row.isClients === 1 };
}

function clientsRequest(place: Place): Request {
  const request = requestAt(place);
  if (request.isClients) return request;
  throw new TapedeckError(
    'refused',
    `Expected a request of the client, got ${request.method} of the server.`,
  );
}

function asCurl(place: Place): string {
  const { store, session } = place;
  const { http } = frameAt(store, session, place.seq);
  const { exchange } = (http === null ? http : frameAt(store, session, askingSeq(place)).http) ?? {
    exchange: 0,
  };
  return curlCommands(store, session, exchange);
}

/** Of a frame without a request its own number: then it is its exchange that is sent again. */
function askingSeq(place: Place): number {
  try {
    return clientsRequest(place).seq;
  } catch (error) {
    if (error instanceof TapedeckError) return place.seq;
    throw error;
  }
}

/** Null where the store is the one that commands take by themselves. What was fetched of an engine has no name for long. */
function dbOf({ name }: Store): string | null {
  if (name.startsWith(fetchedFolder(process.env))) return 'postgres://…';
  return name === storePath(undefined) ? null : name;
}

function asVerify(place: Place): string {
  const { store, session } = place;
  const { method, target } = clientsRequest(place);
  const { command } = sessionDetails(store, session.number);
  const db = dbOf(store);
  const only = method === 'initialize' ? [] : ['--only', (method === 'tools/call' ? target : null) ?? method];
  const options = [...only, ...(db === null ? [] : ['--db', db])];
  const server = command === null ? [] : ['--', ...command];
  const url = command === null ? [session.target] : [];
  return commandLine([
    ...typedName(process.env).split(' '),
    'verify',
    session.id,
    ...url,
    ...options,
    ...server,
  ]);
}

function asTest(place: Place): string {
  const { store, session } = place;
  const { seq, n, method, target } = clientsRequest(place);
  const answer = store
    .prepare<[number, number, number], { seq: number; n: number }>(
      `SELECT seq, n FROM message WHERE session = ? AND to_seq = ? AND to_n = ? AND relation = 'reply' LIMIT 1`,
    )
    .get(session.number, seq, n);
  if (answer === undefined)
    throw new TapedeckError('refused', 'Expected a request with its answer. This one was not answered.');
  const messageAt = (at: { seq: number; n: number }) =>
    Buffer.from(messageText(jsonOf(frameAt(store, session, at.seq)), at.n));
  const questions = store
    .prepare<[number, number, number], string>(
      `SELECT DISTINCT m.canonical FROM message AS m JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
       WHERE m.session = ? AND m.seq > ? AND m.seq < ? AND m.kind = 'request' AND f.channel NOT IN ('stdin', 'request')`,
    )
    .pluck()
    .all(session.number, seq, answer.seq);
  const [request, reply] = [messageAt({ seq, n }), messageAt(answer)];
  const isModern = session.era === 'modern';
  const recording = session.id;
  return testCode({
    recording,
    db: dbOf(store),
    isModern,
    method,
    target,
    request,
    answer: reply,
    questions,
  });
}
