/** Frames as `show --json` prints them, large ones cut. */

import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { TapedeckError } from '../../errors.ts';
import { prepareFates } from '../../inspect/verdict/fate.ts';
import { frameJson } from '../../inspect/view/json.ts';
import type { Store } from '../../store/file/open.ts';
import { type MessageRow, prepareMessagesBetween, unfinishedFrames } from '../../store/read/frames.ts';
import { prepareHttpSummary } from '../../store/read/http.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import {
  type FrameBeginning,
  lastFrame,
  originalBytes,
  payloadBytes,
  prepareBeginnings,
} from '../../store/read/slices.ts';
import { breathe, emitFreshness, numberParam, sessionParam } from '../params.ts';
import type { Work } from '../work.ts';

/** So much of a payload is shown; the rest is asked for by range. */
const MAX_BYTES = 64 * 1024;

const MOST_FRAMES = 200;

export const framesWork: Work = async (store, params, emit) => {
  const session = sessionParam(store, params);
  const after = numberParam(params, 'after', { most: Number.MAX_SAFE_INTEGER, otherwise: 0 });
  const limit = numberParam(params, 'limit', { least: 1, most: MOST_FRAMES, otherwise: MOST_FRAMES });
  if (await emitFreshness(store, session, params, emit)) return;
  const rows = prepareBeginnings(store, session.number, { limit: limit + 1, maxBytes: MAX_BYTES })(after);
  const shown = rows.slice(0, limit);
  const upTo = shown.at(-1)?.seq ?? after;
  const messages = prepareMessagesBetween(store, session.number)(after, upTo);
  const view = prepareView(store, session);
  const frames = shown.map((frame) =>
    view(
      frame,
      messages.filter(({ seq }) => seq === frame.seq),
    ),
  );
  await emit(`{"frames":[${frames.join(',')}],"next":${rows.length > limit ? upTo : null}}`);
};

/** Returns a frame as JSON, an object. */
function prepareView(
  store: Store,
  session: SessionRow,
): (frame: FrameBeginning, messages: MessageRow[]) => string {
  const summaryOf = prepareHttpSummary(store, session.number);
  const fateOf = prepareFates(store, session);
  return (frame, messages) => {
    let isCut = frame.storedBytes > frame.payload.length;
    const payload = isCut ? wholeCharacters(frame.payload) : frame.payload;
    const originalOf = (seq: number) => {
      const original = originalBytes(store, session.number, seq);
      if (original === undefined) return null;
      if (original.size <= MAX_BYTES) return original.from(0);
      isCut = true;
      return wholeCharacters(original.from(0).subarray(0, MAX_BYTES));
    };
    const details = { summaryOf, originalOf, fateOf };
    const line = [...frameJson(session.id, { ...frame, payload, messages }, details)].join('');
    return `${line.slice(0, -2)}${isCut ? ',"cut":true' : ''}}`;
  };
}

/** The last character may be cut in the middle, which would make bytes of text. */
function wholeCharacters(bytes: Buffer): Buffer {
  if (isUtf8(bytes)) return bytes;
  for (let end = bytes.length - 1; end > bytes.length - 4; end -= 1) {
    const shorter = bytes.subarray(0, end);
    if (isUtf8(shorter)) return shorter;
  }
  return bytes;
}

export const frameWork: Work = async (store, params, emit) => {
  const session = sessionParam(store, params);
  const seq = numberParam(params, 'seq', { least: 1, most: Number.MAX_SAFE_INTEGER });
  const [frame] = prepareBeginnings(store, session.number, { limit: 1, maxBytes: MAX_BYTES })(seq - 1);
  const found = frame?.seq === seq ? frame : unfinishedFrame(store, session.number, seq);
  if (found === undefined) throw new TapedeckError('not-found', `Session ${session.id} has no frame ${seq}.`);
  if (await emitFreshness(store, session, params, emit)) return;
  const messages = prepareMessagesBetween(store, session.number)(seq - 1, seq);
  await emit(await prepareDetail(store, session)(found, messages));
};

/** Returns a frame with all its details, as JSON. */
function prepareDetail(
  store: Store,
  session: SessionRow,
): (frame: FrameBeginning, messages: MessageRow[]) => Promise<string> {
  const view = prepareView(store, session);
  const answerTo = prepareAnswer(store, session.number);
  return async (frame, messages) => {
    const { sha256, isText } = await readWhole(store, session.number, frame);
    const more = {
      lineEnd: frame.lineEnd,
      sha256,
      encoding: isText ? 'utf-8' : 'binary',
      answeredBy: answerTo(frame.seq),
      storedBytes: frame.storedBytes,
    };
    return `${view(frame, messages).slice(0, -1)},${JSON.stringify(more).slice(1)}`;
  };
}

/** A frame with all its details, as JSON. `isCut`: not all of its payload is in there. */
type WholeFrame = { seq: number; json: string; isCut: boolean; isEdited: boolean };

const FRAMES_AT_ONCE = 200;

/** All frames of a session, in order. */
export async function* eachWholeFrame(store: Store, session: SessionRow): AsyncGenerator<WholeFrame> {
  const beginnings = prepareBeginnings(store, session.number, { limit: FRAMES_AT_ONCE, maxBytes: MAX_BYTES });
  const messagesBetween = prepareMessagesBetween(store, session.number);
  const detail = prepareDetail(store, session);
  const wholeFrame = async (frame: FrameBeginning, messages: MessageRow[]): Promise<WholeFrame> => ({
    ...{ seq: frame.seq, isEdited: frame.isEdited, isCut: frame.storedBytes > frame.payload.length },
    json: await detail(frame, messages),
  });
  let upTo = 0;
  for (let frames = beginnings(0); frames.length > 0; frames = beginnings(upTo)) {
    const from = upTo;
    upTo = frames.at(-1)?.seq ?? upTo;
    const messages = messagesBetween(from, upTo);
    for (const frame of frames)
      yield await wholeFrame(
        frame,
        messages.filter(({ seq }) => seq === frame.seq),
      );
  }
  for (const frame of unfinishedFrames(store, session.number, upTo))
    yield await wholeFrame({ ...frame, storedBytes: frame.payload.length }, []);
}

function unfinishedFrame(store: Store, session: number, seq: number): FrameBeginning | undefined {
  const frames = [...unfinishedFrames(store, session, lastFrame(store, session)?.seq ?? 0)];
  const frame = frames.find((one) => one.seq === seq);
  return frame === undefined ? undefined : { ...frame, storedBytes: frame.payload.length };
}

/** The frame that answers a request of this one, the first where they are several. */
function prepareAnswer(store: Store, session: number): (seq: number) => number | null {
  const answer = store
    .prepare<[number, number], number | null>(
      "SELECT min(seq) FROM message WHERE session = ? AND to_seq = ? AND relation = 'reply'",
    )
    .pluck();
  return (seq) => answer.get(session, seq) ?? null;
}

const MIB = 1024 * 1024;

/** Of what is stored, read piece by piece. */
async function readWhole(
  store: Store,
  session: number,
  { seq, payload, storedBytes }: FrameBeginning,
): Promise<{ sha256: string; isText: boolean }> {
  const hash = createHash('sha256');
  if (payload.length === storedBytes) {
    return { sha256: hash.update(payload).digest('hex'), isText: isUtf8(payload) };
  }
  const bytes = payloadBytes(store, session, seq);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let isText = true;
  for (let at = 0; bytes !== undefined && at < bytes.size; at += MIB) {
    const piece = bytes.from(at);
    hash.update(piece);
    isText &&= isDecoded(decoder, piece, at + MIB >= bytes.size);
    await breathe();
  }
  return { sha256: hash.digest('hex'), isText };
}

/** A character may be cut between two pieces. */
function isDecoded(decoder: InstanceType<typeof TextDecoder>, piece: Buffer, isLast: boolean): boolean {
  try {
    decoder.decode(piece, { stream: !isLast });
    return true;
  } catch {
    return false;
  }
}
