/** HTTP on its way into the store: as many sessions as the traffic turns out to have. */

import { hostname } from 'node:os';
import type { Statement } from 'better-sqlite3';
import type { SessionChange } from '../../protocol/http/sessions.ts';
import type { RedactionProfile } from '../../protocol/redact/profile.ts';
import type { SessionEnd } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { processStarted } from '../file/process.ts';
import { closingOf } from '../read/http.ts';
import { type Indexer, restartIndexer } from '../write/index.ts';
import { createLiveSession, type HttpHeld, type LiveSession } from '../write/pending.ts';
import { createStoreRedactor, redactHttpFrame, redactionColumn, redactStart } from '../write/redaction.ts';
import { createHttpWriter, type HttpWriter, insertSession } from '../write/rows.ts';
import { createHttpIngest } from './http-exchanges.ts';
import { createNewsReader } from './http-items.ts';
import type { Intake } from './intake.ts';
import type { KnownStart } from './thread.ts';

/** A session with its row, once it has one, and its index. */
type Kept = { live: LiveSession; row: Row | null; indexer: Indexer | null };

type Row = { number: number; id: string };

const NOTHING: readonly HttpHeld[] = [];

/** So many sessions keep what their index needs to go on. Of another one that speaks again, the index begins anew. */
const MAX_INDEXERS = 1000;

/** Sessions that ended are kept for late traffic; more than this are not asked for any more. */
const MAX_KEPT = 20_000;

/** `onNews` is called when something waits to be stored that may have come by itself, later than it was fed. */
export function createHttpIntake(
  start: KnownStart,
  maxFrameBytes: number,
  redaction: RedactionProfile | null,
  onNews: () => void,
): Intake {
  const secrets = redaction === null ? null : createStoreRedactor(redaction);
  const kept = new Map<number, Kept>();
  /** Sessions with something that waits to be stored. */
  const fresh = new Set<Kept>();
  /** Sessions with something that waits to be indexed. */
  const behind = new Set<Kept>();
  /** Sessions with an indexer, the one first that was used longest ago. */
  const indexed = new Set<Kept>();
  let store: Store | undefined;
  let writer: HttpWriter | undefined;
  let selectRow: Statement<[number, string]> | undefined;
  let held = NOTHING;
  let rows = new Map<Kept, Row>();
  let isIndexing = true;

  const readNews = createNewsReader();
  const ingest = createHttpIngest({
    maxFrameBytes,
    firstSign: secrets?.redactor.firstSign ?? null,
    mcpPath: new URL(start.target).pathname,
    sessionOf: (number) => keptOf(number).live,
    onChange,
  });

  function keptOf(number: number): Kept {
    return kept.get(number) ?? keep(number, start.at);
  }

  function keep(number: number, at: number): Kept {
    const hasNews = () => {
      fresh.add(one);
      onNews();
    };
    const live = createLiveSession(number, at, hasNews);
    const one: Kept = { live, row: null, indexer: null };
    kept.set(number, one);
    hasNews();
    return one;
  }

  function onChange(change: SessionChange): void {
    if (change.type === 'opened') {
      keep(change.session, change.at);
      return;
    }
    const { live } = keptOf(change.session);
    if (change.type === 'basis') live.change({ basis: change.basis, transport: change.transport });
    else if (change.type === 'reopened') live.change({ end: null });
    else live.change({ end: { at: change.at, reason: change.reason } });
  }

  function save(withHeld: boolean): void {
    if (withHeld) ingest.settle();
    held = withHeld ? ingest.held() : NOTHING;
    // Of a save that failed, none of the new rows is there.
    rows = new Map();
    if (fresh.size === 0 && held.length === 0) return;
    store?.transaction(saveAll).immediate();
  }

  function saveAll(): void {
    for (const one of fresh) {
      const row = one.row !== null && isThere(one.row) ? one.row : insert(one.live);
      rows.set(one, row);
      if (secrets !== null) one.live.changeFrames((frame) => redactHttpFrame(frame, secrets.redactor));
      writer?.write(row.number, one.live);
    }
    for (const piece of held) {
      const one = keptOf(piece.session.number);
      writer?.hold((rows.get(one) ?? one.row)?.number ?? 0, piece);
    }
  }

  /** A session that had ended may have been pruned since: if it speaks again, what it says goes into a row of its own. */
  function isThere({ number, id }: Row): boolean {
    return selectRow?.get(number, id) !== undefined;
  }

  function insert({ row: { basis, transport }, startedAt: at }: LiveSession): Row {
    const { parentPid: _, ...given } = start;
    const known = secrets === null ? given : redactStart(given, secrets.row);
    const found = { host: hostname(), processStarted: processStarted(start.pid), clientPid: null };
    const session = { ...known, ...found, basis, transport, at, clientProgram: null };
    const column = redactionColumn(store as Store, redaction);
    return insertSession(store as Store, { ...session, redaction: column });
  }

  function confirm(): void {
    for (const [one, row] of rows) {
      if (one.row !== null && one.row !== row) forgetIndexer(one);
      one.row = row;
      remember(one);
      one.live.confirm();
      fresh.delete(one);
    }
    rows = new Map();
    if (held.length > 0) ingest.confirmHeld();
    held = NOTHING;
    forgetOldest();
  }

  /** Hands what was stored just now to the session's index, which reads back what it was not handed. */
  function remember(one: Kept): void {
    if (!isIndexing) return;
    one.indexer?.remember(one.live.frames(), one.live.firstSeq());
    const closed = [...one.live.changed()].flatMap(closingOf).sort((a, b) => a.after - b.after);
    for (const exchange of closed) one.indexer?.close(exchange);
    behind.add(one);
  }

  function index(maxMs: number): boolean {
    const deadline = performance.now() + maxMs;
    for (const one of behind) {
      if (one.row !== null && !isThere(one.row)) {
        forgetIndexer(one);
        behind.delete(one);
      } else if (indexerOf(one).advance(deadline - performance.now())) behind.delete(one);
      if (performance.now() >= deadline) break;
    }
    for (const one of indexed) {
      if (indexed.size <= MAX_INDEXERS || behind.has(one)) break;
      forgetIndexer(one);
    }
    return behind.size === 0;
  }

  function indexerOf(one: Kept): Indexer {
    if (one.indexer === null || one.indexer.isSpoiled())
      one.indexer = restartIndexer(store as Store, one.row?.number ?? 0);
    // Delete first, so that the set's order stays the order of the latest use.
    indexed.delete(one);
    indexed.add(one);
    return one.indexer;
  }

  function forgetIndexer(one: Kept): void {
    one.indexer = null;
    indexed.delete(one);
  }

  function forgetOldest(): void {
    if (kept.size <= MAX_KEPT) return;
    for (const [number, one] of kept) {
      if (one.live.row.end === null || fresh.has(one) || behind.has(one)) continue;
      kept.delete(number);
      indexed.delete(one);
      if (kept.size <= MAX_KEPT) return;
    }
  }

  return {
    feed: (item) => ingest.feed(readNews(item)),
    giveUpOn: ({ owner, bytes, at }) => ingest.abandon(owner, bytes.length, at),
    gap() {},
    serverStarted() {},
    open(opened) {
      store = opened;
      secrets?.open(opened);
      writer = createHttpWriter(opened, secrets?.redactor ?? null);
      selectRow = opened.prepare('SELECT 1 FROM session WHERE number = ? AND id = ?');
      // The parents of every row are rows of this writer: checking them again would only cost time.
      store.pragma('foreign_keys = OFF');
      // Another file: what this one does not have begins anew in it.
      for (const one of kept.values()) one.row = null;
    },
    save,
    confirm,
    hasHeld: ingest.hasHeld,
    giveUp() {
      // They stay: each row wants the count of what was lost.
      for (const { live } of fresh) live.giveUp();
    },
    index,
    stopIndexing() {
      isIndexing = false;
      behind.clear();
    },
    tick(at) {
      ingest.tick(at);
      return fresh.size > 0;
    },
    finish: ingest.finish,
    end({ at, reason }: SessionEnd) {
      for (const { live } of kept.values()) {
        if (live.row.end === null) live.change({ end: { at, reason } });
      }
      // Rows that are there first: they need hardly any room on a disk that may be full.
      const missing = [...fresh].filter(({ row }) => row === null);
      for (const one of missing) fresh.delete(one);
      save(false);
      confirm();
      for (const one of missing) fresh.add(one);
      save(false);
      confirm();
    },
  };
}
