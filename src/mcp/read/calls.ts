/** The calls of a session, and one call with its answer and what lay between. */

import { TapedeckError } from '../../errors.ts';
import type { Filter } from '../../inspect/filter/filter.ts';
import { prepareFates } from '../../inspect/verdict/fate.ts';
import { fateJson } from '../../inspect/view/fate.ts';
import { formatIsoTime } from '../../protocol/text.ts';
import { directionOf } from '../../protocol/wire/frame.ts';
import { type ExchangeRow, eachExchange } from '../../store/read/exchanges.ts';
import { cursorNumber, openAsked, type ToolAnswer, type ToolQuestion } from './asked.ts';
import { prepareFrames } from './frames.ts';
import type { Opened } from './redacted.ts';
import { prepareAmong, readToolFilter, type SeenScope } from './scope.ts';

const CALLS = 50;

/** So long one page is looked for, in milliseconds. */
const LOOK_MS = 600;

/** So often one that looks for calls is told how far it has come. */
const LOOKED_AT_ONCE = 200;

/** Calls that may be seen and for which a filter holds, in order; null now and then, where one may want to stop. */
export function* eachSeenCall(
  opened: Opened,
  scope: SeenScope,
  filter: Filter | undefined,
  after: number,
): Generator<ExchangeRow | null> {
  const isAmong = prepareAmong(opened, scope.only(opened, filter));
  let looked = 0;
  for (const call of eachExchange(opened.store, opened.session, undefined, after)) {
    looked += 1;
    if (isAmong(call.requestSeq) || (call.answerSeq !== null && isAmong(call.answerSeq))) yield call;
    else if (looked % LOOKED_AT_ONCE === 0) yield null;
  }
}

export async function listCalls(asked: ToolQuestion): Promise<ToolAnswer> {
  const { scope, room, args } = asked;
  const opened = await openAsked(asked);
  const { limit = CALLS } = args;
  const until = performance.now() + LOOK_MS;
  const calls: object[] = [];
  let last = cursorNumber(args.cursor);
  const session = opened.session.id;
  for (const call of eachSeenCall(opened, scope, readToolFilter(args.filter), last)) {
    if (performance.now() > until)
      return more({ session, calls }, last, 'It takes long to look through this session');
    if (call === null) continue;
    const row = calls.length < limit ? room.admit(callRow(opened, call)) : undefined;
    if (row === undefined) return more({ session, calls }, last, 'There are more calls');
    calls.push(row);
    last = call.requestSeq;
  }
  // Of a session that is being redacted there will be more.
  const goesOn = opened.lack !== null && !opened.lack.isFinal;
  return { recorded: { session, calls }, ...(goesOn ? { cursor: String(last) } : {}) };
}

function more(recorded: ToolAnswer['recorded'], last: number, why: string): ToolAnswer {
  return { recorded, cursor: String(last), leftOut: [`${why}: ask again with this cursor.`] };
}

export function callRow({ store, session }: Pick<Opened, 'store' | 'session'>, call: ExchangeRow) {
  const { requestSeq, answerSeq, askedBy, id, method, target, at, latency, outcome, errorCode } = call;
  const sizeOf = (seq: number | null) =>
    store
      .prepare<[number, number | null], number>('SELECT size FROM frame WHERE session = ? AND seq = ?')
      .pluck()
      .get(session.number, seq) ?? null;
  return {
    seq: requestSeq,
    answerSeq,
    method,
    target,
    askedBy,
    id,
    at: formatIsoTime(at),
    latencyMs: latency === null ? null : latency / 1000,
    outcome,
    ...(errorCode === null ? {} : { errorCode }),
    requestBytes: sizeOf(requestSeq),
    answerBytes: sizeOf(answerSeq),
  };
}

/** Shares of the room; what the request leaves is the answer's. */
const REQUEST_SHARE = 0.35;

const ANSWER_SHARE = 0.7;

/** So many frames between a request and its answer are listed, of so many that are looked at. */
const BETWEEN = 20;

const LOOKED_AT = 2000;

export async function getCall(asked: ToolQuestion): Promise<ToolAnswer> {
  const { scope, room, args } = asked;
  const opened = await openAsked(asked);
  const { seq = 0 } = args;
  const call = callAt(opened, scope, seq);
  const frames = prepareFrames(opened, scope);
  const request = frames.at(call.requestSeq);
  const answer = call.answerSeq === null ? undefined : frames.at(call.answerSeq);
  const fate = prepareFates(
    opened.store,
    opened.session,
  )({
    ...{ seq: call.requestSeq, n: 0, kind: 'request', method: null, relation: null },
    outcome: call.outcome === 'cancelled' ? 'cancelled' : null,
  });
  const facts = room.admit({
    session: opened.session.id,
    call: callRow(opened, call),
    fate: fate === null ? null : fateJson(fate),
  });
  const between: object[] = [];
  const leftOut: string[] = [];
  const sent = request && room.payload(request.payload, 0, room.left() * REQUEST_SHARE);
  const got = answer && room.payload(answer.payload, 0, room.left() * ANSWER_SHARE);
  for (const [what, piece, at] of [
    ['request', sent, call.requestSeq],
    ['answer', got, call.answerSeq],
  ] as const)
    if (piece !== undefined && 'next' in piece)
      leftOut.push(
        `Of the ${what}, what is behind byte ${piece.next}: ask get_frame with seq ${at} and from ${piece.next}.`,
      );
  const end = call.answerSeq ?? call.requestSeq + LOOKED_AT;
  for (const frame of frames.between(call.requestSeq, Math.min(end, call.requestSeq + LOOKED_AT))) {
    const { seq: at, channel } = frame;
    const row =
      between.length < BETWEEN
        ? room.admit({ seq: at, direction: directionOf(channel), channel, says: frames.title(frame) })
        : undefined;
    if (row === undefined) {
      leftOut.push(`Frames from ${at} on that lay between: ask get_frame for each.`);
      break;
    }
    between.push(row);
  }
  return { recorded: { ...facts, request: sent ?? null, answer: got ?? null, between }, leftOut };
}

/** The call whose request or answer stands in this frame. */
function callAt(
  { store, session }: Pick<Opened, 'store' | 'session'>,
  scope: SeenScope,
  seq: number,
): ExchangeRow {
  const opened = { store, session };
  const isAmong = prepareAmong(opened, scope.only(opened, undefined));
  const asked = store
    .prepare<[number, number], number>(
      `SELECT coalesce(iif(relation = 'reply', to_seq, NULL), seq) FROM message
       WHERE session = ? AND seq = ? ORDER BY relation = 'reply' DESC LIMIT 1`,
    )
    .pluck()
    .get(session.number, seq);
  if (asked !== undefined && isAmong(seq)) {
    for (const call of eachExchange(store, session, undefined, asked - 1)) {
      if (call.requestSeq === asked) return call;
      break;
    }
  }
  throw new TapedeckError(
    'not-found',
    `Expected the number of a frame with a request or an answer, got ${seq}. See the tool list_calls.`,
  );
}
