/**
 * Keeps the figures of ended sessions beside the store: computing them takes seconds for a million messages. Keeps their
 * sum too.
 */

import type { Store } from '../../store/file/open.ts';
import { type SideFile, SUM } from '../../store/keep/side-file.ts';
import { mayLackPayloads } from '../../store/read/meta-only.ts';
import { type SessionRow, stateOf } from '../../store/read/sessions.ts';
import {
  addSessionFigures,
  figuresText,
  noSessionFigures,
  readFigures,
  type SessionFigures,
} from './call-figures.ts';
import { scaledBy, weightOf } from './scaled.ts';
import { prepareFigures } from './session-figures.ts';

/**
 * The figures of one session, as they are; or of several together (`session` null), each scaled by how many sessions it stands for,
 * which are `standsFor` together. `sampled`: so many of them stand for more than themselves. `lacking`: calls of so many may be
 * missing, because frames have no payload.
 */
export type SomeFigures = { figures: SessionFigures; sessions: number } & (
  | { session: SessionRow }
  | { session: null; standsFor: number; sampled: number; lacking: number }
);

/** How long figures wait before they are written. A kill costs the work of this time. */
const SLICE_MS = 500;

/** Of each session. `version`: whose figures may be kept. Without a side file they are made each time. */
export function* eachFigures(
  store: Store,
  side: SideFile | null,
  sessions: Iterable<SessionRow>,
  version: string,
): Generator<Extract<SomeFigures, { session: SessionRow }>> {
  const make = prepareFigures(store);
  const shelf = side === null ? null : openShelf(side);
  try {
    for (const session of sessions) {
      const madeFrom = sourceOf(session, version);
      const kept = shelf?.take(session.id, madeFrom);
      const figures = kept ?? make(session);
      if (kept === undefined && isOver(session)) shelf?.put(session.id, madeFrom, figures);
      yield { session, sessions: 1, figures };
    }
  } finally {
    shelf?.close();
  }
}

/** Of all these sessions: first of those together that were put together before, then of each that was not. */
export function* summedFigures(
  store: Store,
  side: SideFile,
  sessions: readonly SessionRow[],
  version: string,
): Generator<SomeFigures> {
  const sources = new Map(sessions.map((session) => [session.id, sourceOf(session, version)]));
  const { sum, summed } = readSum(side, sources);
  const those = sessions.filter(({ id }) => summed.has(id));
  const before = those.map(weightOf);
  const standsFor = before.reduce((total, weight) => total + weight, 0);
  const sampled = before.filter((weight) => weight !== 1).length;
  const lacking = those.filter(mayLackPayloads).length;
  if (summed.size > 0)
    yield { session: null, sessions: summed.size, standsFor, sampled, lacking, figures: sum };
  const rest = sessions.filter(({ id }) => !summed.has(id));
  const added: SessionRow[] = [];
  try {
    for (const one of eachFigures(store, side, rest, version)) {
      yield one;
      const weight = weightOf(one.session);
      if (!isOver(one.session) || weight === 0) continue;
      addSessionFigures(sum, weight === 1 ? one.figures : scaledBy(weight, one.figures));
      added.push(one.session);
    }
  } finally {
    // Also where somebody has no more time: the next one has less to put together.
    if (added.length > 0) {
      const together = [...summed, ...added.map(({ id }) => id)];
      attempt(() => writeSum(side, sum, new Map(together.map((id) => [id, sources.get(id) ?? '']))));
    }
  }
}

/** Of what is kept; counts up whenever that changes. */
const FORM = 2;

/** What figures are computed from. While this is the same, they are the same. */
function sourceOf({ frames, indexed, sample }: SessionRow, version: string): string {
  return `${version} ${FORM} ${frames} ${indexed}${sample === null ? '' : ` ${sample}`}`;
}

function isOver(session: SessionRow): boolean {
  return session.indexed >= session.frames && stateOf(session) !== 'open';
}

/** The sum that is kept, and of which sessions; of none, where one of them has changed since. */
function readSum(
  side: SideFile,
  sources: ReadonlyMap<string, string>,
): { sum: SessionFigures; summed: ReadonlySet<string> } {
  const read = side.transaction(() => ({
    summed: side.prepare<[], [string, string]>('SELECT session, made_from FROM summed').raw().all(),
    text: side.prepare<[string], string>('SELECT figures FROM figures WHERE session = ?').pluck().get(SUM),
  }));
  const { summed, text } = read();
  const isCurrent = summed.every(([id, madeFrom]) => sources.get(id) === madeFrom);
  return text === undefined || !isCurrent
    ? { sum: noSessionFigures(), summed: new Set() }
    : { sum: readFigures(text), summed: new Set(summed.map(([id]) => id)) };
}

/** The sum, and of which sessions it is, in one transaction. */
function writeSum(side: SideFile, sum: SessionFigures, sources: ReadonlyMap<string, string>): void {
  const insert = side.prepare('INSERT INTO summed (session, made_from) VALUES (?, ?)');
  const write = side.transaction(() => {
    side.exec('DELETE FROM summed');
    for (const [id, source] of sources) insert.run(id, source);
    side.prepare(INSERT_FIGURES).run(SUM, '', figuresText(sum));
  });
  write.immediate();
}

/** Figures that cannot be written are computed again next time. */
function attempt(write: () => void): void {
  try {
    write();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
  }
}

const INSERT_FIGURES = 'INSERT OR REPLACE INTO figures (session, made_from, figures) VALUES (?, ?, ?)';

type Shelf = {
  take(id: string, madeFrom: string): SessionFigures | undefined;
  put(id: string, madeFrom: string, figures: SessionFigures): void;
  close(): void;
};

/** Writes in transactions of many sessions: each takes about a millisecond. */
function openShelf(side: SideFile): Shelf {
  const get = side
    .prepare<[string, string], string>('SELECT figures FROM figures WHERE session = ? AND made_from = ?')
    .pluck();
  const insert = side.prepare(INSERT_FIGURES);
  let waiting: [id: string, madeFrom: string, figures: string][] = [];
  let since = performance.now();

  function write(): void {
    const rows = waiting;
    waiting = [];
    attempt(() => side.transaction(() => void rows.map((row) => insert.run(...row))).immediate());
  }

  return {
    take(id, madeFrom) {
      const text = get.get(id, madeFrom);
      return text === undefined ? undefined : readFigures(text);
    },
    put(id, madeFrom, figures) {
      waiting.push([id, madeFrom, figuresText(figures)]);
      if (performance.now() - since < SLICE_MS) return;
      write();
      since = performance.now();
    },
    close() {
      if (waiting.length > 0) write();
    },
  };
}
