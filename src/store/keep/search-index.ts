/**
 * The index of texts. `search` makes it and completes it: a recorder has nothing to do with it.
 */

import { foldCase } from '../../protocol/text.ts';
import { payloadSql } from '../file/codec.ts';
import type { Store } from '../file/open.ts';
import type { SideFile } from './side-file.ts';

/** So long one transaction lasts: what a kill costs, and what another search waits. */
const SLICE_MS = 500;

export type SearchIndex = {
  /** So many frames of the store are not in it yet. */
  lag(): number;
  /** Brings the index up to what the store holds now; after each slice it tells how many frames are done, and of how many. */
  catchUp(): Generator<{ done: number; total: number }>;
  /**
   * The rowids of the frames that may hold what is wanted, the newest first; all that hold it are among them. Null
   * where the index does not help, because the texts are too short.
   */
  candidates(wanted: Wanted): IterableIterator<number> | null;
};

type Extent = { number: number; id: string; frames: number; covered: number };

export function createSearchIndex(side: SideFile, store: Store): SearchIndex {
  const begun = side
    .prepare<[string, string, number], string>(
      'SELECT term FROM gram_list WHERE term >= ? AND term < ? LIMIT ?',
    )
    .pluck();

  function behind(): Extent[] {
    const covered = new Map(
      side.prepare<[], [string, number]>('SELECT session, frames FROM covered').raw().all(),
    );
    const extents = store.prepare<[], Omit<Extent, 'covered'>>(
      `SELECT s.number, s.id, ifnull((SELECT max(f.seq) FROM frame AS f WHERE f.session = s.number), 0) AS frames
       FROM session AS s ORDER BY s.number`,
    );
    return extents
      .all()
      .map((extent) => ({ ...extent, covered: covered.get(extent.id) ?? 0 }))
      .filter(({ frames, covered }) => frames > covered);
  }

  const lagOf = (extents: readonly Extent[]) =>
    extents.reduce((sum, { frames, covered }) => sum + frames - covered, 0);

  return {
    lag: () => lagOf(behind()),
    *catchUp() {
      let rest = behind();
      const total = lagOf(rest);
      let done = 0;
      const slice = prepareSlice(side, store, (count) => {
        done += count;
      });
      while (rest.length > 0) {
        rest = slice(rest);
        yield { done, total };
      }
    },
    candidates(wanted) {
      const query = ftsQuery(wanted, (text, limit) => begun.all(text, `${text}\u{10ffff}`, limit));
      if (query === null) return null;
      return side
        .prepare<[string], number>(
          'SELECT rowid FROM gram WHERE gram MATCH ? UNION ALL SELECT frame FROM large ORDER BY 1 DESC',
        )
        .pluck()
        .iterate(query);
    },
  };
}

type FrameRow = { rowid: number; seq: number; size: number; payload: Buffer };

/** Indexes frames of sessions, in one transaction. Returns the sessions that are not done. */
function prepareSlice(
  side: SideFile,
  store: Store,
  onFrames: (count: number) => void,
): (sessions: readonly Extent[]) => Extent[] {
  const coveredOf = side.prepare<[string], number>('SELECT frames FROM covered WHERE session = ?').pluck();
  const cover = side.prepare('INSERT OR REPLACE INTO covered (session, frames) VALUES (?, ?)');
  const addRun = side.prepare('INSERT OR REPLACE INTO run (session, first, last) VALUES (?, ?, ?)');
  const addGrams = side.prepare('INSERT OR REPLACE INTO gram (rowid, text) VALUES (?, ?)');
  const addLarge = side.prepare('INSERT OR IGNORE INTO large (frame) VALUES (?)');
  const framesAfter = store.prepare<[number, number], FrameRow>(
    `SELECT rowid, seq, size, ${payloadSql()} AS payload FROM frame WHERE session = ? AND seq > ? ORDER BY seq`,
  );

  /** From where another process may have come to meanwhile. True: nothing is left. */
  function advance({ id, number }: Extent, deadline: number): boolean {
    let seq = coveredOf.get(id) ?? 0;
    /** The run of rowids at hand. */
    let [first, last] = [0, 0];
    let count = 0;
    let isLate = false;
    for (const frame of framesAfter.iterate(number, seq)) {
      if (frame.payload.length < frame.size) addLarge.run(frame.rowid);
      else addGrams.run(frame.rowid, gramText(frame.payload.toString('utf8')));
      if (frame.rowid !== last + 1) {
        if (last > 0) addRun.run(id, first, last);
        first = frame.rowid;
      }
      last = frame.rowid;
      seq = frame.seq;
      count += 1;
      isLate = performance.now() > deadline;
      if (isLate) break;
    }
    if (last > 0) addRun.run(id, first, last);
    cover.run(id, seq);
    onFrames(count);
    return !isLate;
  }

  return side.transaction((sessions: readonly Extent[]) => {
    const deadline = performance.now() + SLICE_MS;
    const at = sessions.findIndex((session) => !advance(session, deadline));
    return at < 0 ? [] : sessions.slice(at);
  }).immediate;
}

/**
 * Texts in terms of the search index, which knows of each frame which three characters follow one another somewhere. A
 * frame that has a text has all the grams of that text; one that has all grams need not have the text.
 */

/** What a frame must hold to come into question. */
export type Wanted = { type: 'text'; text: string } | { type: 'and' | 'or'; parts: readonly Wanted[] };

/** Characters of a gram, as FTS5's tokenizer `trigram` makes them. */
const GRAM = 3;

/** More grams of one text hardly leave fewer frames. */
const MAX_GRAMS = 24;

/** A short text begins so many grams at most; a shorter one stands in most frames anyway. */
const MAX_BEGUN = 400;

/** As a text is put into the index. Its end is padded, so that its last characters begin grams too. */
function gramText(text: string): string {
  // FTS5 stops reading at a NUL.
  return `${foldCase(text).replaceAll('\0', ' ')}  `;
}

/**
 * A query in FTS5's language for frames that may hold what is wanted; null where the index does not help.
 * `begunBy` returns the grams that begin with a text, at most `limit`.
 */
function ftsQuery(
  wanted: Wanted,
  begunBy: (text: string, limit: number) => readonly string[],
): string | null {
  if (wanted.type === 'text') return textQuery(wanted.text, begunBy);
  const parts = wanted.parts.map((part) => ftsQuery(part, begunBy));
  const known = parts.filter((part) => part !== null);
  if (known.length === 0 || (wanted.type === 'or' && known.length < parts.length)) return null;
  return `(${known.join(wanted.type === 'and' ? ' AND ' : ' OR ')})`;
}

function textQuery(text: string, begunBy: (text: string, limit: number) => readonly string[]): string | null {
  const characters = [...foldCase(text).replaceAll('\0', ' ')];
  if (characters.length >= GRAM) return joined(gramsOf(characters), 'AND');
  if (characters.length === 0) return null;
  const begun = begunBy(characters.join(''), MAX_BEGUN + 1);
  return begun.length > MAX_BEGUN ? null : joined(begun, 'OR');
}

function gramsOf(characters: readonly string[]): string[] {
  const grams = new Set<string>();
  for (let at = 0; at + GRAM <= characters.length && grams.size < MAX_GRAMS; at += 1) {
    grams.add(characters.slice(at, at + GRAM).join(''));
  }
  return [...grams];
}

function joined(grams: readonly string[], operator: 'AND' | 'OR'): string {
  // No gram begins with the text: a query for what no frame has.
  if (grams.length === 0) return '"\u{10ffff}\u{10ffff}\u{10ffff}"';
  return `(${grams.map((gram) => `"${gram.replaceAll('"', '""')}"`).join(` ${operator} `)})`;
}
