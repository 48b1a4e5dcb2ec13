/**
 * Rows page by page: no statement is open between two of them, however long their reader takes, so that recorders can carry the
 * WAL over meanwhile.
 */

import type { Store } from '../file/open.ts';

const ROWS = 5000;

/**
 * The rows of a statement (without an order), ordered by some of its columns, which together name a row and are never null. What
 * comes while they are read is among them where its place is still to come.
 */
export function* eachRow<R extends object>(
  store: Store,
  sql: string,
  keys: readonly (keyof R & string)[],
  values: object,
): Generator<R> {
  const order = keys.map((key) => `"${key}"`).join(', ');
  const page = (where: string) =>
    store.prepare<[object], R>(`SELECT * FROM (${sql}) ${where} ORDER BY ${order} LIMIT ${ROWS}`);
  let rows = page('').all(values);
  yield* rows;
  if (rows.length < ROWS) return;
  const next = page(`WHERE (${order}) > (${keys.map((key) => `@after_${key}`).join(', ')})`);
  for (let last = rows.at(-1); last !== undefined; last = rows.at(-1)) {
    const place: R = last;
    rows = next.all({ ...values, ...Object.fromEntries(keys.map((key) => [`after_${key}`, place[key]])) });
    yield* rows;
  }
}

/** The numbers after one up to another in stretches, the lower end left out. */
export function* stretches(
  after: number,
  upTo: number,
  length: number,
): Generator<[after: number, upTo: number]> {
  for (let from = after; from < upTo; from += length) yield [from, Math.min(upTo, from + length)];
}
