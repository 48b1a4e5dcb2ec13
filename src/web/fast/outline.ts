/** The outline of a session: a row for each message, and for each frame without one; as columns, which take half the bytes of rows. */

import { blockText } from '../../inspect/view/conversation.ts';
import { jsonOf } from '../../protocol/message/conversation.ts';
import { labelledBy, messageGist } from '../../protocol/message/label.ts';
import { type Message, parseMessages } from '../../protocol/message/message.ts';
import { clientIn, formOf } from '../../store/file/columns.ts';
import type { Store } from '../../store/file/open.ts';
import { groupBySeq, preparePayloads, unfinishedFrames } from '../../store/read/frames.ts';
import {
  type OutlineFrame,
  type OutlineMessage,
  prepareOutlineFrames,
  prepareOutlineMessages,
} from '../../store/read/outline.ts';
import { type SessionRow, stateOf } from '../../store/read/sessions.ts';
import { lastFrame } from '../../store/read/slices.ts';
import type { Outline } from '../api.ts';
import { breathe, emitFreshness, numberParam, sessionParam } from '../params.ts';
import type { Work } from '../work.ts';

const MOST_FRAMES = 5000;

/** So many are read before others are let in: some milliseconds' worth. */
const FRAMES_AT_ONCE = 500;

/** What a larger message says is not worth reading all of it. */
const MAX_LABEL_BYTES = 16 * 1024;

const MAX_TEXT = 200;

export const outlineWork: Work = async (store, params, emit, isLeft) => {
  const session = sessionParam(store, params);
  const after = numberParam(params, 'after', { most: Number.MAX_SAFE_INTEGER, otherwise: 0 });
  const limit = numberParam(params, 'limit', { least: 1, most: MOST_FRAMES, otherwise: MOST_FRAMES });
  if (await emitFreshness(store, session, params, emit)) return;
  const isOpen = stateOf(session) === 'open';
  const last = lastFrame(store, session.number)?.seq ?? 0;
  // What is recorded at the moment shows when it is indexed, so that no row changes later on.
  const end = isOpen ? Math.min(session.indexed, last) : last;
  const slice = { after, limit, last, end, isOpen };
  if (isOpen) await emit(await sharedSlice(store, session, slice));
  else await emit(await sliceOf(store, session, slice, isLeft));
};

/** `last`: the last frame that is stored; `end`: the last one that is shown. */
type Slice = { after: number; limit: number; last: number; end: number; isOpen: boolean };

/** By connection and place. Of what is recorded at the moment, all who follow it ask for the same, and at the same moment. */
const shared = new WeakMap<Store, Map<string, Promise<string>>>();

/** So long one is shared, in milliseconds: what is redacted meanwhile is soon read anew. */
const SHARED_MS = 200;

function sharedSlice(store: Store, session: SessionRow, slice: Slice): Promise<string> {
  const ofStore = shared.get(store) ?? new Map<string, Promise<string>>();
  shared.set(store, ofStore);
  const key = [session.id, slice.after, slice.limit, slice.end].join(' ');
  const known = ofStore.get(key);
  if (known !== undefined) return known;
  // Others wait for it too: that one has left ends nothing.
  const made = sliceOf(store, session, slice, () => false);
  ofStore.set(key, made);
  setTimeout(() => ofStore.delete(key), SHARED_MS).unref();
  return made;
}

async function sliceOf(
  store: Store,
  session: SessionRow,
  { after, limit, last, end, isOpen }: Slice,
  isLeft: () => boolean,
): Promise<string> {
  const rows = createRows(session, createLabels(store, session.number));
  const framesAfter = prepareOutlineFrames(store, session.number);
  const messagesBetween = prepareOutlineMessages(store, session.number);
  let upTo = after;
  for (let left = limit; left > 0 && upTo < end && !isLeft(); ) {
    const frames = framesAfter(upTo, end, Math.min(left, FRAMES_AT_ONCE));
    const from = upTo;
    upTo = frames.at(-1)?.seq ?? end;
    const messages = groupBySeq(messagesBetween(from, upTo));
    for (const frame of frames) rows.add(frame, messages.get(frame.seq) ?? []);
    left -= frames.length;
    await breathe();
  }
  if (!isOpen && upTo >= end) addUnfinished(store, session, { last, after }, rows);
  return JSON.stringify({ ...rows.outline, next: upTo < end ? upTo : null });
}

/** What a killed recorder left unfinished is numbered on after the last frame. */
function addUnfinished(
  store: Store,
  session: SessionRow,
  { last, after }: { last: number; after: number },
  rows: Rows,
): void {
  for (const { seq, at, channel, size, http, payload } of unfinishedFrames(store, session.number, last)) {
    const frame = {
      seq,
      at,
      channel,
      size,
      flags: null,
      storedBytes: payload.length,
      http: http?.exchange ?? null,
    };
    const text = payload.toString('utf8', 0, MAX_TEXT * 4);
    if (seq > after) rows.addUnfinished({ ...frame, isEdited: false, isRedacted: false }, text);
  }
}

type Rows = {
  outline: Omit<Outline, 'next'>;
  add(frame: OutlineFrame, messages: readonly OutlineMessage[]): void;
  addUnfinished(frame: OutlineFrame, text: string): void;
};

function createRows({ startedAt }: SessionRow, labels: Labels): Rows {
  const outline = emptyOutline();
  const places = new Map<string, number>();

  /** The place of a text in the table; -1 for none. */
  function place(text: string | null): number {
    if (text === null || text === '') return -1;
    const known = places.get(text);
    if (known !== undefined) return known;
    const made = outline.strings.push(text) - 1;
    places.set(text, made);
    return made;
  }

  function addFrame(frame: OutlineFrame, marks: number, text: string): void {
    outline.seq.push(frame.seq);
    outline.at.push(frame.at - startedAt);
    outline.channel.push(place(frame.channel));
    outline.size.push(frame.size);
    outline.http.push(frame.http ?? 0);
    outline.marks.push(marks);
    outline.text.push(place(text.slice(0, MAX_TEXT)));
    outline.client.push(clientIn(frame.flags));
  }

  function addMessage(message: OutlineMessage | null): void {
    outline.n.push(message?.n ?? 0);
    outline.kind.push(place(message?.kind ?? null));
    outline.id.push(place(message?.id ?? null));
    outline.method.push(place(message?.method ?? null));
    outline.target.push(place(message?.target ?? null));
    outline.relation.push(place(message?.relation ?? null));
    outline.toSeq.push(message?.toSeq ?? 0);
    outline.toN.push(message?.toN ?? 0);
    outline.latency.push(message?.latency ?? -1);
    outline.outcome.push(place(message?.outcome ?? null));
    outline.problem.push(place(message?.problem ?? null));
  }

  return {
    outline,
    add(frame, messages) {
      const marks = marksOf(frame);
      if (messages.length === 0) {
        addFrame(frame, marks, labels.plain(frame));
        addMessage(null);
        return;
      }
      const labelOf = labels.of(frame);
      for (const message of messages) {
        addFrame(frame, marks, labelOf(message));
        addMessage(message);
      }
    },
    addUnfinished(frame, text) {
      addFrame(frame, UNFINISHED, text);
      addMessage(null);
    },
  };
}

function emptyOutline(): Omit<Outline, 'next'> {
  return {
    ...{ strings: [], seq: [], n: [], at: [], channel: [], size: [], http: [], kind: [], id: [], method: [] },
    ...{ target: [], relation: [], toSeq: [], toN: [], latency: [], outcome: [], problem: [], marks: [] },
    ...{ text: [], client: [] },
  };
}

/** The marks, as bits of one number. */
const [EDITED, REDACTED, CUT, UNFINISHED, REPLAYED] = [1, 2, 4, 8, 16] as const;

function marksOf({ isEdited, isRedacted, flags, channel }: OutlineFrame): number {
  const own = (isEdited ? EDITED : 0) + (isRedacted ? REDACTED : 0);
  if (flags === null) return own;
  const { truncated, marks } = formOf(flags, channel);
  return own + (truncated ? CUT : 0) + (marks.includes('replayed') ? REPLAYED : 0);
}

/** What a message says besides its method and target, or the beginning of what is no message. */
type Labels = {
  /** Of the messages of one frame, which is read once, and parsed once at most. */
  of(frame: OutlineFrame): (message: OutlineMessage) => string;
  plain(frame: OutlineFrame): string;
};

/** Reads payloads for what the index does not tell. What is too large for that has none. */
function createLabels(store: Store, session: number): Labels {
  const payloadOf = preparePayloads(store, session);
  const read = ({ seq, storedBytes }: OutlineFrame) =>
    storedBytes > MAX_LABEL_BYTES ? undefined : payloadOf(seq);

  return {
    plain(frame) {
      const payload = read(frame)?.payload;
      if (payload === undefined) return '';
      const { part } = formOf(frame.flags, frame.channel);
      return part === 'block' ? blockText(payload) : payload.toString('utf8', 0, MAX_TEXT * 4);
    },
    of(frame) {
      const found = read(frame);
      if (found === undefined || found.payload.length === 0) return () => '';
      const json = jsonOf(found);
      let parsed: readonly Message[] | undefined;
      return (message) => {
        const { method: canonical, written, n } = message;
        const indexed = labelledBy({ ...message, method: written ?? canonical, canonical });
        parsed ??= indexed === null ? parseMessages(json) : undefined;
        const known = indexed ?? parsed?.[n];
        const asked = message.relation === 'reply' ? canonical : null;
        return known === undefined ? '' : messageGist(known, json, n, asked);
      };
    },
  };
}
