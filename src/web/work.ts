/**
 * The joint between the thread that speaks HTTP and the threads that read the store: what is asked, and what comes back. A work
 * knows no HTTP but the head of its answer.
 */

import type { Store } from '../store/file/open.ts';
import type { Change } from './api.ts';

/** The parts of the path and of the query that a route takes, by name. */
export type Params = Readonly<Record<string, string | undefined>>;

/** The head of an answer; headers that it does not name are those of its route. */
export type Head = { status: number; headers: Readonly<Record<string, string>> };

/**
 * A piece of the answer: of `ndjson` a line without its end, of `json` and `bytes` as it is. A head, where there is one, comes
 * before the first piece. Bytes are handed over: they are gone afterwards. Lines go out some together; null lets those go that
 * wait: what comes next may take long. Settles when the reader keeps up: whoever waits for it holds at most some pieces in
 * memory, and lets the thread do other work.
 */
export type Emit = (piece: string | Uint8Array | Head | null) => Promise<void>;

/**
 * Answers one request. `isLeft` becomes true at once when the client has left, also in the middle of synchronous work: ask it
 * between slices, and return. What it throws is the answer, as long as there was none yet. No statement's iterator may stay open
 * over an await, because the WAL could not be carried over meanwhile.
 */
export type Work = (store: Store, params: Params, emit: Emit, isLeft: () => boolean) => Promise<void>;

/** `json`: one value. `ndjson`: one a line. `bytes`: anything. */
export type Form = 'json' | 'ndjson' | 'bytes';

/** `left`: one number, not zero once the client has left. */
export type Order = {
  job: number;
  work: string;
  params: Params;
  form: Form;
  left: Int32Array<SharedArrayBuffer>;
};

/** What a thread is told. `more`: so many bytes of a job's answer have gone out. `end`: it is to end by itself, at its next turn. */
export type ToReader =
  | { type: 'order'; order: Order }
  | { type: 'more'; job: number; bytes: number }
  | { type: 'watch'; isOn: boolean }
  | { type: 'end' };

/** An error as it is answered: the words, and the status that goes with them. */
export type RequestFailure = { status: number; code: string; message: string; at?: number };

/** `loaded`: from now on it may be stopped in the middle of what it does. */
export type FromReader =
  | { type: 'loaded' }
  | { type: 'head'; job: number; head: Head }
  | { type: 'piece'; job: number; bytes: Uint8Array; isLast: boolean }
  | { type: 'failure'; job: number; failure: RequestFailure }
  | { type: 'changes'; changes: Change[] };

export type ReaderStart = { file: string };
