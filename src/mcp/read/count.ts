/** The figures of all sessions that may be seen, within the time of one question. */

import type { SessionFigures } from '../../inspect/figures/call-figures.ts';
import { eachFigures, type SomeFigures, summedFigures } from '../../inspect/figures/kept-figures.ts';
import { prepareFigures } from '../../inspect/figures/session-figures.ts';
import { type Filter, isAboutSessions } from '../../inspect/filter/filter.ts';
import { prepareSessionTest, selectFrames } from '../../inspect/filter/sql.ts';
import type { Store } from '../../store/file/open.ts';
import { VERSION } from '../../version.ts';
import { sideFor, type ToolQuestion } from './asked.ts';

/** `rest`: so many of the sessions are not counted. */
export type Counted = { figures: SomeFigures[]; rest: number; of: number };

/** So long sessions are counted, in milliseconds: the newest first. */
const COUNT_MS = 700;

/** `filter`: with the fence, where that cuts sessions. */
export function figuresOfAll(asked: ToolQuestion, filter: Filter | undefined): Promise<Counted> {
  return filter === undefined || isAboutSessions(filter)
    ? Promise.resolve(ofWholeSessions(asked, filter))
    : ofSomeFrames(asked, filter);
}

/** What is kept beside the store is of whole sessions, and of those alone. */
function ofWholeSessions(
  { store, scope, args, keepsIndex }: ToolQuestion,
  filter: Filter | undefined,
): Counted {
  const until = performance.now() + COUNT_MS;
  const candidates = filter === undefined ? null : new Set(prepareSessionTest(store, filter).candidates);
  const sessions = scope.sessions().filter(({ number }) => candidates?.has(number) ?? true);
  const side = sideFor(store, keepsIndex);
  const figures: SomeFigures[] = [];
  let rest = sessions.length;
  try {
    const canSum = side !== null && filter === undefined && args.by !== 'session';
    const each = canSum
      ? summedFigures(store, side, sessions, VERSION)
      : eachFigures(store, side, sessions, VERSION);
    for (const one of each) {
      figures.push(one);
      rest -= one.sessions;
      if (performance.now() > until) break;
    }
  } finally {
    side?.close();
  }
  return { figures, rest, of: sessions.length };
}

/** Figures of some frames of sessions, kept in this thread for who asks the same again. */
type Kept = {
  since: number;
  bySession: Map<string, { frames: number; indexed: number; figures: SessionFigures }>;
};

const kept = new WeakMap<Store, Map<string, Kept>>();

/** So many questions are remembered, for so long: the time that a filter counts back from goes on. */
const MOST_KEPT = 4;

const KEPT_MS = 5 * 60_000;

async function ofSomeFrames({ store, scope, args }: ToolQuestion, filter: Filter): Promise<Counted> {
  const until = performance.now() + COUNT_MS;
  const { bySession } = keptFor(store, args.filter ?? '');
  const candidates = new Set(prepareSessionTest(store, filter).candidates);
  const sessions = scope.sessions().filter(({ number }) => candidates.has(number));
  const make = prepareFigures(store, selectFrames(store, filter));
  const figures: SomeFigures[] = [];
  let rest = sessions.length;
  for (const session of sessions) {
    const { id, frames, indexed } = session;
    const known = bySession.get(id);
    let isWhole = true;
    if (known?.frames !== frames || known.indexed !== indexed) {
      if (performance.now() > until) break;
      const opened = await scope.open(session);
      isWhole = opened.lack === null;
      const own =
        opened.store === store ? make : prepareFigures(opened.store, selectFrames(opened.store, filter));
      bySession.set(id, { frames, indexed, figures: own(opened.session) });
    }
    const found = bySession.get(id)?.figures;
    if (found !== undefined && found.topics.length > 0)
      figures.push({ session, sessions: 1, figures: found });
    if (!isWhole) bySession.delete(id);
    rest -= 1;
  }
  return { figures, rest, of: sessions.length };
}

function keptFor(store: Store, question: string): Kept {
  const questions = kept.get(store) ?? new Map<string, Kept>();
  kept.set(store, questions);
  const before = questions.get(question);
  const now = performance.now();
  const own =
    before !== undefined && now - before.since < KEPT_MS ? before : { since: now, bySession: new Map() };
  questions.delete(question);
  questions.set(question, own);
  for (const old of questions.keys()) if (questions.size > MOST_KEPT) questions.delete(old);
  return own;
}
