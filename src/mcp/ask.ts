/** Asks the reader threads, as the thread that speaks MCP sees them: it never opens the store itself. */

import { Worker } from 'node:worker_threads';
import { TapedeckError } from '../errors.ts';
import { createSlowReaders, optionsFor, type SlowReaders } from '../web/readers.ts';
import type { RequestFailure } from '../web/work.ts';
import type { AskedText, Elsewhere, ToolArguments } from './read/asked.ts';
import type { FenceOptions } from './read/scope.ts';
import type { ASK_WORKS } from './read/works.ts';

export type AskName = keyof typeof ASK_WORKS;

export type Reader = {
  /** Rejects with `TapedeckError` for what the store or its reader says. An aborted question is ended. */
  ask(work: AskName, args: ToolArguments, signal?: AbortSignal): Promise<object>;
  close(): Promise<unknown>;
};

/** So long one question may take. */
const MOST_MS = 60_000;

export function createReader(file: string, fence: FenceOptions): Reader {
  const startWorker = () => new Worker(new URL('./ask-reader.js', import.meta.url), optionsFor(file));
  const readers = createSlowReaders(startWorker, MOST_MS);
  /** One thread alone, for questions about large sessions that have to be redacted: it has what of them is done. */
  const copier = createSlowReaders(startWorker, MOST_MS, 1);
  let isKeptUp = !fence.keepsIndex;
  let isCopying = false;
  let isClosed = false;

  /** Once somebody searches or counts, what makes that sooner is made, piece by piece. */
  async function keepUp(): Promise<void> {
    if (isKeptUp) return;
    isKeptUp = true;
    await untilDone('upkeep', readers);
  }

  /** Once somebody asks about a large session, the rest of it is redacted while they think. */
  async function keepCopying(): Promise<void> {
    if (isCopying) return;
    isCopying = true;
    await untilDone('copying', copier).finally(() => {
      isCopying = false;
    });
  }

  async function untilDone(work: AskName, of: SlowReaders): Promise<void> {
    for (let isDone = false; !isDone && !isClosed; )
      ({ isDone } = (await askOne(of, work, {})) as { isDone: boolean });
  }

  async function ask(work: AskName, args: ToolArguments, signal?: AbortSignal): Promise<object> {
    const answer = await askOne(readers, work, args, signal);
    if (!('isElsewhere' in (answer as Partial<Elsewhere>))) return answer;
    const found = await askOne(copier, work, args, signal);
    keepCopying().catch(() => {});
    return found;
  }

  function askOne(
    of: SlowReaders,
    work: AskName,
    args: ToolArguments,
    signal?: AbortSignal,
  ): Promise<object> {
    return new Promise((resolve, reject) => {
      const params = {
        asked: JSON.stringify({ fence, args, copiesLarge: of === copier } satisfies AskedText),
      };
      // What is aborted later, when the answer has gone out, must not end the thread: it has the next question.
      const end = () => signal?.removeEventListener('abort', stop);
      const sink = {
        head() {},
        piece(bytes: Uint8Array) {
          end();
          resolve(JSON.parse(Buffer.from(bytes).toString()));
        },
        fail(failure: RequestFailure) {
          end();
          reject(errorOf(failure));
        },
      };
      const leave = of.take({
        ...{ question: { work, params, form: 'json' }, sink },
        left: new Int32Array(new SharedArrayBuffer(4)),
      });
      function stop(): void {
        leave();
        reject(new TapedeckError('stopped', 'The client took its question back.'));
      }
      if (signal?.aborted) stop();
      else signal?.addEventListener('abort', stop, { once: true });
    });
  }

  return {
    ask(work, args, signal) {
      const answer = ask(work, args, signal);
      // It goes on without, slower, and is begun again with the next server.
      if (work === 'search' || args.all === true) answer.finally(() => keepUp()).catch(() => {});
      return answer;
    },
    close() {
      isClosed = true;
      return Promise.all([readers.close(), copier.close()]);
    },
  };
}

function errorOf({ code, message, at }: RequestFailure): TapedeckError {
  const column = at === undefined || message.includes(`column ${at}`) ? '' : ` At column ${at}.`;
  return new TapedeckError(code === 'bug' ? 'io' : (code as TapedeckError['code']), `${message}${column}`);
}
