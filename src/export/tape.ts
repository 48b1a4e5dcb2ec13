/** Adds the answers of a live server to a session or a text recording, old or new. */

import { readFileSync, statSync } from 'node:fs';
import { clearTimeout, setTimeout } from 'node:timers';
import type { SessionStart } from '../store/file/columns.ts';
import type { Store } from '../store/file/open.ts';
import { replaceFile } from '../store/file/replace-file.ts';
import { findSession, type SessionRow } from '../store/read/sessions.ts';
import {
  appendTo,
  type Block,
  endSession,
  replaceSession,
  type SessionAppend,
  settleBasis,
  type Tape,
} from '../store/write/import.ts';
import { reindexSession } from '../store/write/index.ts';
import { removeSession } from '../store/write/removal.ts';
import { insertSession } from '../store/write/rows.ts';
import { appendNdjson } from './text/append.ts';
import { steadyText } from './text/steady.ts';
import { writeNdjson } from './text/write.ts';

/** Behind the last frame of a stored session, block by block. */
export function tapeBehindSession(store: Store, session: number): Tape {
  const append = appendTo(store, session);
  let hasAdded = false;
  return {
    add(block) {
      append.add(block);
      hasAdded = true;
    },
    async finish() {
      if (hasAdded) reindexSession(store, session);
    },
    discard: async () => {},
  };
}

/** Behind the last line of a text recording, which `start` describes. `store` is temporary. */
export function tapeBehindFile(path: string, store: Store, start: SessionStart): Tape {
  const waiting: Block[] = [];
  const saver = createSaver(async () => {
    const blocks = [...waiting];
    if (blocks.length === 0) return;
    await appendNdjson(path, blocks, store, start);
    waiting.splice(0, blocks.length);
  });
  return {
    add(block) {
      waiting.push(block);
      saver.soon();
    },
    finish: saver.now,
    discard: async () => {},
  };
}

/** Holds back all blocks until the end: then `tape` gets all of them, or none. */
export function heldTape(tape: Tape): Tape {
  const held: Block[] = [];
  return {
    add: (block) => void held.push(block),
    async finish(at) {
      for (const block of held.splice(0)) tape.add(block);
      await tape.finish(at);
    },
    async discard() {
      held.length = 0;
      await tape.discard();
    },
  };
}

type NewSession = {
  add: (block: Block) => void;
  /** Null while there is none. */
  stored: () => { number: number; id: string } | null;
  end(at: number): void;
  discard(): void;
};

/** It begins with the first block: without one there is nothing to keep. */
function createNewSession(store: Store, start: SessionStart): NewSession {
  let session: { number: number; id: string } | null = null;
  let append: SessionAppend | null = null;
  return {
    add(block) {
      if (session === null) {
        session = insertSession(store, { ...start, at: block.frames[0]?.at ?? start.at });
        append = appendTo(store, session.number);
      }
      append?.add(block);
    },
    stored: () => session,
    end(at) {
      if (session !== null) endSession(store, session.number, at);
    },
    discard() {
      if (session !== null) removeSession(store, session.number);
      session = null;
    },
  };
}

/** A new session of the store; once it is whole it takes the place of `old`, if that is a session's number. */
export function tapeAsSession(store: Store, start: SessionStart, old: number | null): Tape {
  const session = createNewSession(store, old === null ? start : { ...start, name: null, labels: [] });
  return {
    add: session.add,
    async finish(at) {
      const stored = session.stored();
      if (stored === null) return;
      session.end(at);
      reindexSession(store, stored.number);
      settleBasis(store, stored.number);
      if (old !== null) replaceSession(store, old, stored.number);
    },
    discard: async () => session.discard(),
  };
}

/** It is made to be committed, so it gets the rights that new files have, and not those of a secret. */
const FILE_RIGHTS = 0o666;

/**
 * A new text recording. `replaces`: there is one already, which stays until the new one is whole. Otherwise the file grows
 * while it is recorded, and a file that somebody else has created meanwhile is left alone. `store` is temporary.
 */
export function tapeAsFile(path: string, store: Store, start: SessionStart, replaces: boolean): Tape {
  const session = createNewSession(store, start);
  let hasChanged = false;
  let isOwn = replaces;
  const saver = createSaver(async () => {
    const stored = session.stored();
    if (stored === null || !hasChanged) return;
    hasChanged = false;
    try {
      reindexSession(store, stored.number);
      settleBasis(store, stored.number);
      const pieces = writeNdjson(store, findSession(store, stored.id), { onFrame() {} });
      replaceFile(path, replaces ? likeBefore(path, pieces) : pieces, {
        as: isOwn ? 'replace' : 'new',
        rights: FILE_RIGHTS,
      });
      isOwn = true;
    } catch (error) {
      hasChanged = true;
      throw error;
    }
  });
  return {
    add(block) {
      session.add(block);
      hasChanged = true;
      if (!replaces) saver.soon();
    },
    async finish(at) {
      session.end(at);
      hasChanged = true;
      await saver.now();
    },
    discard: async () => session.discard(),
  };
}

/** Rewrites a text recording, which `store` holds, without these frames. No other line changes. Throws `TapedeckError` `io`. */
export function removeFrames(path: string, store: Store, session: SessionRow, seqs: readonly number[]): void {
  const only = {
    sql: 'SELECT seq FROM frame WHERE session = @session AND seq NOT IN (SELECT value FROM json_each(@removed))',
    values: { removed: JSON.stringify(seqs) },
    hasUnfinished: () => true,
  };
  replaceFile(path, likeBefore(path, writeNdjson(store, session, { onFrame() {}, only })));
}

/** A file too long to compare is replaced as it is. */
function likeBefore(path: string, pieces: Iterable<string>): Iterable<string> {
  return statSync(path).size > LONGEST_COMPARED ? pieces : [steadyText(readFileSync(path, 'utf8'), pieces)];
}

const LONGEST_COMPARED = 16 * 1024 * 1024;

/** Saves soon after there is something to save, but spends only a small share of its time on it. */

// Tests replace the globals by clocks of their own.

type Saver = {
  /** There is something to save. */
  soon(): void;
  /** Saves what is there. Rejects with why it cannot be saved. */
  now(): Promise<void>;
};

const SOON_MS = 300;

/** The next save waits this many times as long as the last one took. */
const REST = 10;

/** `save` never runs twice at once. Its errors are dropped, because it is tried again; only `now` rejects with them. */
function createSaver(save: () => Promise<void>): Saver {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let restMs = SOON_MS;

  function run(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const next = running.then(async () => {
      const startedAt = performance.now();
      await save();
      restMs = Math.max(SOON_MS, (performance.now() - startedAt) * REST);
    });
    running = next.catch(() => {});
    return next;
  }

  return {
    soon() {
      timer ??= setTimeout(() => void run().catch(() => {}), restMs);
    },
    now: run,
  };
}
