/**
 * Which client run a session belongs to. Each piece of evidence is a row of `run`; sessions that share a key have one id, and so
 * have those that are tied to each other by way of a third. What is only likely is never written (read/runs.ts).
 */

import { createHash } from 'node:crypto';
import type { RunEvidence, SessionStart } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { processKey } from '../file/process.ts';

/** The label by which people say it themselves. */
export const RUN_LABEL = 'run';

/** What is known of a session when it begins, the strongest first. */
export function evidenceOf(start: SessionStart): RunEvidence[] {
  const { host, clientPid: pid, clientStarted: started = null, labels, run } = start;
  const said = labels.filter(([key]) => key === RUN_LABEL).slice(-1);
  return [
    ...(run ? [run] : []),
    ...(pid !== null && started !== null ? [byProcess('process', processKey(host, { pid, started }))] : []),
    ...said.map(([, value]): RunEvidence => ({ kind: 'label', key: labelKey(value) })),
  ];
}

/** `key` is one of `processKey`. */
export function byProcess(kind: 'process' | 'peer', key: string): RunEvidence {
  return { kind, key: `process ${key}` };
}

/** Adds a piece of evidence. Call it inside a transaction. Where it ties two runs together, the older one keeps its id. */
export function prepareRunJoin(store: Store): (session: number, evidence: RunEvidence) => void {
  const known = store
    .prepare<[object], string>(
      'SELECT id FROM run WHERE key = @key OR session = @session GROUP BY id ORDER BY min(session)',
    )
    .pluck();
  const insert = store.prepare(
    'INSERT OR IGNORE INTO run (session, kind, key, id) VALUES (@session, @kind, @key, @id)',
  );
  const rename = store.prepare('UPDATE run SET id = ? WHERE id = ?');
  const newId = prepareNewId(store);
  return (session, { kind, key }) => {
    const [id = newId(key, session), ...others] = known.all({ session, key });
    insert.run({ session, kind, key, id });
    for (const other of others) rename.run(id, other);
  };
}

/** The same wherever the key is first seen, so that a recording that is given away keeps the id of its run. */
function idOf(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 12);
}

/** A run may have the id of a key that was taken away from it. */
function prepareNewId(store: Store): (key: string, session: number) => string {
  const taken = store.prepare<[string], 1>('SELECT 1 FROM run WHERE id = ? LIMIT 1').pluck();
  return (key, session) => (taken.get(idOf(key)) === undefined ? idOf(key) : idOf(`${key} ${session}`));
}

type EvidenceRow = { session: number; key: string };

/**
 * Call it when a session's evidence was taken away, with its keys, the strongest first, inside that transaction. What nothing ties
 * together any more are several runs from then on: the one that its id was made of keeps it, else the oldest.
 */
export function prepareRunPart(store: Store): (evidence: Evidence) => void {
  const select = store.prepare<[string], EvidenceRow>(
    'SELECT session, key FROM run WHERE id = ? ORDER BY session, key',
  );
  const rename = store.prepare('UPDATE run SET id = ? WHERE session = ? AND key = ?');
  const newId = prepareNewId(store);
  const isTied = prepareIsTied(store);
  return ({ id, keys }) => {
    // A label may tie thousands of sessions: they are gone through only where something may have parted.
    if (id === null || isTied(keys)) return;
    const groups = tiedTogether(select.all(id));
    const keeps = groups.find((group) => group.some(({ key }) => idOf(key) === id)) ?? groups[0];
    for (const group of groups) {
      const [first] = group;
      if (first === undefined || group === keeps) continue;
      const own = newId(first.key, first.session);
      for (const { session, key } of group) rename.run(own, session, key);
    }
  };
}

/** Whether each of these keys that is left shares a session with one before it. */
function prepareIsTied(store: Store): (keys: readonly string[]) => boolean {
  const isLeft = store.prepare<[string], 1>('SELECT 1 FROM run WHERE key = ? LIMIT 1').pluck();
  const share = store
    .prepare<[string, string], 1>(
      'SELECT 1 FROM run AS a JOIN run AS b ON b.session = a.session AND b.key = ? WHERE a.key = ? LIMIT 1',
    )
    .pluck();
  return (keys) => {
    const left = keys.filter((key) => isLeft.get(key) !== undefined);
    return left.every(
      (key, i) => i === 0 || left.slice(0, i).some((before) => share.get(key, before) !== undefined),
    );
  };
}

/** Rows that share a session or a key, also by way of others; the group with the first row first. */
function tiedTogether(rows: readonly EvidenceRow[]): EvidenceRow[][] {
  const above = new Map<number | string, number | string>();
  const topOf = (one: number | string): number | string => {
    let top = one;
    for (let up = above.get(top); up !== undefined; up = above.get(top)) top = up;
    if (top !== one) above.set(one, top);
    return top;
  };
  for (const { session, key } of rows) {
    const [own, other] = [topOf(key), topOf(session)];
    if (own !== other) above.set(other, own);
  }
  const groups = new Map<number | string, EvidenceRow[]>();
  for (const row of rows) {
    const group = groups.get(topOf(row.key));
    if (group === undefined) groups.set(topOf(row.key), [row]);
    else group.push(row);
  }
  return [...groups.values()];
}

/** What tells the run of a session: the run's id, null without one, and the keys, the strongest first. */
type Evidence = { id: string | null; keys: string[] };

export function prepareEvidenceOf(store: Store): (session: number) => Evidence {
  const select = store.prepare<[number], { id: string; key: string }>(
    "SELECT id, key FROM run WHERE session = ? ORDER BY instr('process peer label trace', kind)",
  );
  return (session) => {
    const rows = select.all(session);
    return { id: rows[0]?.id ?? null, keys: rows.map(({ key }) => key) };
  };
}

/** Takes the evidence of one kind away from a session. Call it inside a transaction. */
export function withdrawEvidence(store: Store, session: number, kind: RunEvidence['kind']): void {
  const evidence = prepareEvidenceOf(store)(session);
  store.prepare('DELETE FROM run WHERE session = ? AND kind = ?').run(session, kind);
  prepareRunPart(store)(evidence);
}

/** The label was redacted after the fact. The id of a run does not stay one that was made of what is redacted. */
export function renameRunLabel(store: Store, session: number, before: string, value: string): void {
  withdrawEvidence(store, session, 'label');
  prepareRunJoin(store)(session, { kind: 'label', key: labelKey(value) });
  const made = idOf(labelKey(before));
  const isStillTrue = store.prepare('SELECT 1 FROM run WHERE key = ?').get(labelKey(before)) !== undefined;
  if (!isStillTrue) store.prepare('UPDATE run SET id = ? WHERE id = ?').run(idOf(labelKey(value)), made);
}

function labelKey(value: string): string {
  return `label ${value}`;
}

/**
 * Takes in that a frame is part of a trace, and ties the sessions together in which it goes on. Sessions that another trace has
 * tied need no more evidence: a client may begin a trace for every turn. Call it inside a transaction.
 */
export function prepareTraceInsert(
  store: Store,
): (session: number, seq: number, trace: { traceId: string; spanId: string }) => void {
  const insert = store.prepare(
    'INSERT OR IGNORE INTO trace (session, seq, trace_id, parent_id) VALUES (?, ?, ?, ?)',
  );
  const others = store
    .prepare<[object], number>(
      `SELECT DISTINCT t.session FROM trace AS t WHERE t.trace_id = @traceId AND t.session <> @session
         AND NOT EXISTS (SELECT 1 FROM run AS r JOIN run AS o ON o.key = r.key AND o.session = t.session
           WHERE r.session = @session AND r.kind = 'trace')`,
    )
    .pluck();
  const join = prepareRunJoin(store);
  return (session, seq, { traceId, spanId }) => {
    insert.run(session, seq, traceId, spanId);
    for (const other of others.all({ session, traceId }))
      for (const one of [other, session]) join(one, { kind: 'trace', key: `trace ${traceId}` });
  };
}
