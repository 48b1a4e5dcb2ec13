/** The index of messages of a session, part by part. Each statement ends at once, so that the store is free for writing. */

import type { Channel } from '../../protocol/wire/frame.ts';
import { payloadLengthSql } from '../file/codec.ts';
import type { Store } from '../file/open.ts';

/** A frame as a row of an outline: without its payload, of which `storedBytes` tells the first MiB. */
export type OutlineFrame = {
  seq: number;
  at: number;
  channel: Channel;
  size: number;
  flags: string | null;
  storedBytes: number;
  http: number | null;
  isEdited: boolean;
  isRedacted: boolean;
};

/** Up to `limit` frames after a `seq`, as far as another one. */
export function prepareOutlineFrames(
  store: Store,
  session: number,
): (after: number, upTo: number, limit: number) => OutlineFrame[] {
  type Row = [number, number, Channel, number, string | null, number, number | null];
  // Half of the time of objects, which SQLite's driver makes name by name.
  const select = store
    .prepare<[number, number, number, number], Row>(
      `SELECT seq, at, channel, size, flags, ${payloadLengthSql()}, http FROM frame
       WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
    )
    .raw();
  const [edited, redacted] = ['frame_edit', 'frame_redaction'].map((table) =>
    store
      .prepare<[number, number, number], number>(
        `SELECT seq FROM ${table} WHERE session = ? AND seq > ? AND seq <= ?`,
      )
      .pluck(),
  );
  return (after, upTo, limit) => {
    const rows = select.all(session, after, upTo, limit);
    const last = rows.at(-1)?.[0] ?? after;
    const [edits, redactions] = [edited, redacted].map((all) => new Set(all?.all(session, after, last)));
    return rows.map(([seq, at, channel, size, flags, storedBytes, http]) => {
      const marks = { isEdited: edits?.has(seq) === true, isRedacted: redactions?.has(seq) === true };
      return { seq, at, channel, size, flags, storedBytes, http, ...marks };
    });
  };
}

/** A row of the index of messages, as an outline shows it: of an answer with the method and target of its request. */
export type OutlineMessage = {
  seq: number;
  n: number;
  kind: string;
  id: string | null;
  /** As it was written. */
  written: string | null;
  method: string | null;
  target: string | null;
  relation: string | null;
  toSeq: number | null;
  toN: number | null;
  latency: number | null;
  outcome: string | null;
  errorCode: number | null;
  problem: string | null;
};

/** The messages of the frames after one up to another, that one too. */
export function prepareOutlineMessages(
  store: Store,
  session: number,
): (after: number, upTo: number) => OutlineMessage[] {
  type Row = [
    ...[
      seq: number,
      n: number,
      kind: string,
      id: string | null,
      written: string | null,
      relation: string | null,
    ],
    ...[toSeq: number | null, toN: number | null, latency: number | null, outcome: string | null],
    ...[errorCode: number | null, problem: string | null, method: string | null, target: string | null],
  ];
  const select = store
    .prepare<[number, number, number], Row>(
      `SELECT m.seq, m.n, m.kind, m.id, m.method, m.relation, m.to_seq, m.to_n, m.latency, m.outcome, m.error_code, m.problem,
         iif(m.relation = 'reply', asked.canonical, m.canonical), iif(m.relation = 'reply', asked.target, m.target)
       FROM message AS m
       LEFT JOIN message AS asked
         ON m.relation = 'reply' AND asked.session = m.session AND asked.seq = m.to_seq AND asked.n = m.to_n
       WHERE m.session = ? AND m.seq > ? AND m.seq <= ? ORDER BY m.seq, m.n`,
    )
    .raw();
  return (after, upTo) =>
    select.all(session, after, upTo).map((row) => {
      const [
        seq,
        n,
        kind,
        id,
        written,
        relation,
        toSeq,
        toN,
        latency,
        outcome,
        errorCode,
        problem,
        method,
        target,
      ] = row;
      // biome-ignore format: a line
      return { seq, n, kind, id, written, method, target, relation, toSeq, toN, latency, outcome, errorCode, problem };
    });
}

/**
 * When requests were answered with an error among the frames after one up to another, in order. Times are microseconds since the
 * Unix epoch. It reads all of these messages.
 */
export function errorTimes(store: Store, session: number, after: number, upTo: number): number[] {
  return store
    .prepare<[number, number, number], number>(
      `SELECT f.at FROM message AS m JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
       WHERE m.session = ? AND m.seq > ? AND m.seq <= ? AND m.outcome IN ('error', 'tool-error') ORDER BY m.seq`,
    )
    .pluck()
    .all(session, after, upTo);
}

/** A request by its place and (canonical) method. */
export type RequestPlace = { seq: number; n: number; method: string };

/** The requests of some (canonical) methods among the frames after one up to another, in order. It reads all of these messages. */
export function requestsOfMethods(
  store: Store,
  session: number,
  methods: readonly string[],
  { after, upTo }: { after: number; upTo: number },
): RequestPlace[] {
  return store
    .prepare<[number, number, number, string], RequestPlace>(
      `SELECT seq, n, canonical AS method FROM message
       WHERE session = ? AND seq > ? AND seq <= ? AND kind = 'request' AND canonical IN (SELECT value FROM json_each(?))
       ORDER BY seq, n`,
    )
    .all(session, after, upTo, JSON.stringify(methods));
}
