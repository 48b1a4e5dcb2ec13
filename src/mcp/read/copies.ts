/**
 * Redacted copies of sessions that were recorded without redaction, or with less of it. A copy is a temporary store: what outgrows
 * SQLite's cache stands on the disk, in a file without a name. One of a large session is made piece by piece, and read meanwhile as far
 * as it has come: it is the beginning of the session, as it was when that was being recorded.
 */

import { hostname } from 'node:os';
import { readNdjson } from '../../export/text/read.ts';
import { writeNdjson } from '../../export/text/write.ts';
import { PLAIN_PROFILE } from '../../protocol/redact/profile.ts';
import { openTemporaryStore, type Store } from '../../store/file/open.ts';
import { processStarted } from '../../store/file/process.ts';
import { adoptKey, placeholderKey } from '../../store/file/secret.ts';
import { lastSeqOf } from '../../store/read/frames.ts';
import { findSession, type SessionRow, sessionDetails } from '../../store/read/sessions.ts';
import { createIndexer, type Indexer, prepareIndex } from '../../store/write/index.ts';

export type Copy = {
  store: Store;
  /** Its row in the copy, with the id of the original. Call `advance` first. */
  session(): SessionRow;
  /** Goes on for about so many milliseconds, and at least until there is a row. Rejects with what stopped it. */
  advance(ms: number): Promise<void>;
  /** Frames that can be read. */
  done(): number;
  /** There will be no more of it. */
  isOver(): boolean;
  close(): void;
};

/** Of a session whose text recording is larger, the copy has the beginning alone: it takes room on the disk, and time. */
const MOST_COPIED_BYTES = 1024 * 1024 * 1024;

/** So long one transaction of its index lasts, in milliseconds. */
const INDEX_MS = 50;

export function beginCopy(store: Store, session: SessionRow, mostBytes = MOST_COPIED_BYTES): Copy {
  const copy = openTemporaryStore();
  const key = placeholderKey(store);
  if (key !== undefined) adoptKey(copy, key);
  let until = 0;
  let resume = () => {};
  let pause = () => {};
  let isRead = false;
  let isOver = false;
  let failure: unknown;

  async function* pieces(): AsyncGenerator<Buffer> {
    let bytes = 0;
    for (const text of writeNdjson(store, session, { onFrame() {} })) {
      if (performance.now() >= until)
        await new Promise<void>((go) => {
          resume = go;
          pause();
        });
      const piece = Buffer.from(text);
      bytes += piece.length;
      yield piece;
      if (bytes > mostBytes && text.endsWith('\n')) return;
    }
  }

  // It looks like one being recorded until it is whole: by this process.
  const importer = {
    ...{ host: hostname(), pid: process.pid, processStarted: processStarted(process.pid) },
    tapedeck: sessionDetails(store, session.number).tapedeck,
  };
  const read = readNdjson(copy, pieces(), {
    ...{ file: session.id, name: null, importer, redaction: PLAIN_PROFILE, onFrame() {} },
    // It is indexed as it grows.
    index() {},
    signal: new AbortController().signal,
  })
    .catch((error) => {
      failure = error;
    })
    .finally(() => {
      isRead = true;
    });

  const numberOf = copy.prepare<[], number>('SELECT number FROM session').pluck();
  const index = createCopyIndex(copy, numberOf);

  async function readFor(ms: number): Promise<void> {
    until = performance.now() + ms;
    const paused = new Promise<void>((settle) => {
      pause = settle;
    });
    resume();
    await Promise.race([paused, read]);
    if (failure !== undefined) throw failure;
  }

  return {
    store: copy,
    session: () => findSession(copy, session.id),
    async advance(ms) {
      const end = performance.now() + ms;
      do await readFor(Math.max(end - performance.now(), INDEX_MS));
      while (numberOf.get() === undefined && !isRead);
      const isIndexed = index.advance(Math.max(end - performance.now(), INDEX_MS));
      isOver = isRead && isIndexed;
      const { host, pid, processStarted: started } = isOver ? session : importer;
      copy
        .prepare('UPDATE session SET id = ?, imported_at = NULL, host = ?, pid = ?, process_started = ?')
        .run(session.id, host, pid, started);
    },
    done: () => lastSeqOf(copy, numberOf.get() ?? 0),
    isOver: () => isOver,
    close: () => void copy.close(),
  };
}

/** What `reindexSession` does at once, piece by piece as frames come. */
function createCopyIndex(copy: Store, numberOf: { get(): number | undefined }) {
  const prepared = prepareIndex(copy);
  const { closedHttpExchanges, hasTraceparents } = prepared.restart();
  let indexer: Indexer | undefined;
  let closed = 0;
  return {
    /** True: nothing is left of what there is. */
    advance(ms: number): boolean {
      const number = numberOf.get();
      if (number === undefined) return true;
      indexer ??= createIndexer(number, prepared);
      const all = closedHttpExchanges(number);
      for (const exchange of all.slice(closed)) indexer.close(exchange);
      closed = all.length;
      if (hasTraceparents(number)) indexer.expectTraces();
      const end = performance.now() + ms;
      let isDone = false;
      while (!isDone && performance.now() < end) isDone = indexer.advance(INDEX_MS);
      return isDone;
    },
  };
}
