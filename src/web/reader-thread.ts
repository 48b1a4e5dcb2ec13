/**
 * A thread that reads the store for the viewer: takes orders, runs the works they name, and sends pieces of answers at the pace of
 * their readers. It opens the store anew when another file has its name.
 */

import { setPriority } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type ErrorCode, TapedeckError } from '../errors.ts';
import { openTemporaryStore } from '../store/file/open.ts';
import { troubleOf } from '../store/file/trouble.ts';
import type { Change } from './api.ts';
import { doWork } from './params.ts';
import { createStoreKeeper, type Loan, type StoreKeeper } from './store-keeper.ts';
import type { Emit, FromReader, Order, ReaderStart, RequestFailure, ToReader, Work } from './work.ts';

/** So much of an answer may be on its way; then its work waits. */
const WINDOW_BYTES = 256 * 1024;

/** Lines go out together, as long as nobody waits for them. */
const TOGETHER_BYTES = 32 * 1024;

const TOGETHER_MS = 10;

type Works = Readonly<Record<string, Work>>;

/** What looks for changes of the store: from the first answer on, so that none is missed that came after it. */
type CreateWatch = (
  keeper: StoreKeeper,
  tell: (changes: Change[]) => void,
) => { begin(): void; set(isOn: boolean): void };

/** `niceness`: by how much the thread stands back behind others that want the same processor, recorders among them. */
export function serveWorks(works: Works, niceness: number, createWatch?: CreateWatch): void {
  standBack(niceness);
  const port = parentPort as MessagePort;
  const keeper = createStoreKeeper((workerData as ReaderStart).file);
  const outlets = new Map<number, Outlet>();
  const report: Report = (message, transfer = []) => port.postMessage(message, transfer);
  const watch = createWatch?.(keeper, (changes) => report({ type: 'changes', changes }));
  // Before anybody asks, so that the first one does not wait for it.
  watch?.begin();
  loadSqlite();
  report({ type: 'loaded' });

  async function run(order: Order): Promise<void> {
    const outlet = createAnswerOutlet(order, report);
    const isLeft = () => Atomics.load(order.left, 0) !== 0;
    outlets.set(order.job, outlet);
    let loan: Loan | undefined;
    try {
      const work = works[order.work];
      if (work === undefined) throw new RangeError(`no work is named ${order.work}`);
      watch?.begin();
      loan = keeper.lend();
      await doWork(work, loan.store, order.params, outlet.emit, isLeft);
      outlet.end();
    } catch (error) {
      report({ type: 'failure', job: order.job, failure: failureOf(error) });
    } finally {
      outlets.delete(order.job);
      loan?.release();
    }
  }

  port.on('message', (message: ToReader) => {
    if (message.type === 'order') void run(message.order);
    else if (message.type === 'more') outlets.get(message.job)?.more(message.bytes);
    else if (message.type === 'watch') watch?.set(message.isOn);
    // Of a thread that is not the main one this ends the thread alone.
    else process.exit();
  });
}

/** The addon is loaded with the first store that is opened, whichever that is. */
function loadSqlite(): void {
  openTemporaryStore().close();
}

type Report = (message: FromReader, transfer?: ArrayBuffer[]) => void;

/** Linux alone sets the priority of one thread: there the calling one is meant by 0. */
function standBack(niceness: number): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(0, niceness);
  } catch {
    // Then it runs as all others do.
  }
}

type Outlet = { emit: Emit; more(bytes: number): void; end(): void };

/** Sends the pieces of one answer. The last of them is held back until it is known to be the last. */
export function createAnswerOutlet(
  { job, form, left }: Omit<Order, 'work' | 'params'>,
  report: Report,
): Outlet {
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  let onItsWay = 0;
  let sentAt = performance.now();
  let wake = () => {};

  function send(isLast: boolean): void {
    const bytes = held.length === 1 ? copyOf(held[0] as Uint8Array) : new Uint8Array(Buffer.concat(held));
    held = [];
    heldBytes = 0;
    onItsWay += bytes.byteLength;
    sentAt = performance.now();
    report({ type: 'piece', job, bytes, isLast }, [bytes.buffer as ArrayBuffer]);
  }

  async function emit(piece: Parameters<Emit>[0]): Promise<void> {
    if (piece === null) {
      if (heldBytes > 0) send(false);
      return;
    }
    if (typeof piece === 'object' && 'status' in piece) return report({ type: 'head', job, head: piece });
    if (form === 'json' && heldBytes > 0) throw new RangeError('an answer as JSON is one piece');
    const text = typeof piece === 'string' ? Buffer.from(form === 'ndjson' ? `${piece}\n` : piece) : piece;
    held.push(text);
    heldBytes += text.byteLength;
    if (form === 'json') return;
    if (heldBytes >= TOGETHER_BYTES || performance.now() - sentAt >= TOGETHER_MS) send(false);
    if (onItsWay > WINDOW_BYTES && Atomics.load(left, 0) === 0)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    else await nextTurn();
  }

  return {
    emit,
    more(bytes) {
      onItsWay -= bytes;
      // Of one who has left nothing more is taken: its work is to find that out by itself.
      if (onItsWay <= WINDOW_BYTES || Atomics.load(left, 0) !== 0) wake();
    },
    end: () => send(true),
  };
}

/** Memory of its own, which can be handed over: small buffers share theirs. */
function copyOf(bytes: Uint8Array): Uint8Array {
  const isWhole = bytes.byteOffset === 0 && bytes.byteLength === bytes.buffer.byteLength;
  return isWhole ? bytes : new Uint8Array(bytes);
}

const STATUS: Record<ErrorCode, number> = {
  usage: 400,
  'not-found': 404,
  ambiguous: 409,
  refused: 409,
  busy: 503,
  stopped: 503,
  io: 500,
  corrupt: 500,
  newer: 500,
  'not-a-store': 500,
  'old-sqlite': 500,
  assertion: 500,
};

/** What went wrong, as the viewer answers it: in the words of the command line. */
function failureOf(error: unknown): RequestFailure {
  if (error instanceof TapedeckError) {
    const { code, message } = error;
    const at = 'column' in error ? { at: Number(error.column) } : {};
    return { status: STATUS[code], code, message, ...at };
  }
  if (error instanceof Error && 'code' in error) {
    const { text, isPassing } = troubleOf(error);
    const code = isPassing ? 'busy' : 'io';
    return { status: STATUS[code], code, message: `the store cannot be used: ${text}` };
  }
  return {
    status: 500,
    code: 'bug',
    message: `a bug in tapedeck: ${error instanceof Error ? error.stack : error}`,
  };
}
