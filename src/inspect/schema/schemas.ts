/**
 * JSON Schema for recorded schemas and values. Both are hostile: a pattern may take forever, a schema may be endless. So
 * a thread checks them. It has a bounded time, and is ended when it needs more; then there is no verdict.
 */
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';

/** `fine`: valid. `broken`: not valid, and why. `unchecked`: not known, and why. `unasked`: the thread did not start. */
export type Verdict = { kind: 'fine' } | { kind: 'unasked' } | { kind: 'broken' | 'unchecked'; why: string };

export type Schemas = {
  /** Whether a schema, as JSON, is one that can be used. Remote references are not followed. */
  compile(schema: string): Verdict;
  /** Whether a value fits a schema that compiled. */
  validate(schema: string, value: unknown): Verdict;
  /** Whether something was left unchecked because the thread did not start. */
  hasFailed(): boolean;
  close(): Promise<void>;
};

/** A question to the thread; `value` is null to compile the schema alone. */
export type Question = { schema: string; value: string | null };

const MAX_MS = 2000;

/** The thread's own start is not the schema's fault. */
const MAX_START_MS = 30_000;

const MAX_HEAP_MB = 128;

/** A larger schema or value is not worth the thread's time. */
const MAX_CHARS = 4 * 1024 * 1024;

type Thread = { worker: Worker; ask: (question: Question) => Verdict | undefined };

export function createSchemas(maxMs = MAX_MS): Schemas {
  let thread: Thread | undefined;
  /** A thread that does not even start is not waited for again. */
  let isDead = false;
  const compiled = new Map<string, Verdict>();

  function ask(question: Question): Verdict {
    if (question.schema.length + (question.value?.length ?? 0) > MAX_CHARS)
      return { kind: 'unchecked', why: `more than ${MAX_CHARS / 1024 / 1024} MB` };
    if (!isDead) thread ??= startThread(maxMs);
    if (thread === undefined) {
      isDead = true;
      return { kind: 'unasked' };
    }
    const verdict = thread.ask(question);
    if (verdict !== undefined) return verdict;
    void thread.worker.terminate();
    thread = undefined;
    return { kind: 'unchecked', why: `no verdict within ${maxMs / 1000} s` };
  }

  function compile(schema: string): Verdict {
    const known = compiled.get(schema);
    if (known !== undefined) return known;
    const verdict = ask({ schema, value: null });
    compiled.set(schema, verdict);
    return verdict;
  }

  function validate(schema: string, value: unknown): Verdict {
    const known = compile(schema);
    if (known.kind === 'unasked') return known;
    if (known.kind !== 'fine') return { kind: 'unchecked', why: known.why };
    const verdict = ask({ schema, value: JSON.stringify(value) });
    // It will not be faster the next time.
    if (verdict.kind === 'unchecked') compiled.set(schema, verdict);
    return verdict;
  }

  return {
    compile,
    validate,
    hasFailed: () => isDead,
    async close() {
      await thread?.worker.terminate();
    },
  };
}

function startThread(maxMs: number): Thread | undefined {
  const { port1, port2 } = new MessageChannel();
  const bell = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL('./schema-thread.js', import.meta.url), {
    workerData: { port: port2, bell },
    transferList: [port2],
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    stderr: true,
  });
  // A thread that runs out of memory answers nothing, which means `unchecked`.
  worker.on('error', () => {});
  worker.unref();
  if (Atomics.wait(bell, 0, 0, MAX_START_MS) === 'timed-out') {
    void worker.terminate();
    return undefined;
  }
  return {
    worker,
    ask(question) {
      Atomics.store(bell, 0, 0);
      port1.postMessage(question);
      if (Atomics.wait(bell, 0, 0, maxMs) === 'timed-out') return undefined;
      return receiveMessageOnPort(port1)?.message as Verdict | undefined;
    },
  };
}
