/** The requests that were sent to a live server and are not answered yet. */
import type { Answer } from './verify-compare.ts';

/** How a request ended: with an answer, or why without. */
export type Ended = { answer: Answer | null; why: string | null };

export type Asking = {
  /** As it was sent. */
  id: string;
  method: string;
  /** By `performance.now()`. */
  startedAt: number;
  ended: Promise<Ended>;
};

export type Asked = {
  /** A new id. It is given up after the time that is allowed. */
  begin(method: string): Asking;
  end(id: string, how: Ended): void;
  endAll(why: string): void;
};

/** `onTimeout` is told of each that had no answer in time; `onEnd` of each, before `ended` settles. */
export function createAsked(
  timeoutMs: number,
  onTimeout: (id: string) => void,
  onEnd: (method: string, how: Ended) => void,
): Asked {
  const open = new Map<string, (how: Ended) => void>();
  let lastId = 0;
  return {
    begin(method) {
      lastId += 1;
      const id = String(lastId);
      const ended = new Promise<Ended>((resolve) => {
        const end = (how: Ended) => {
          clearTimeout(timer);
          open.delete(id);
          onEnd(method, how);
          resolve(how);
        };
        const timer = setTimeout(() => {
          end({ answer: null, why: `no answer within ${timeoutMs / 1000} s` });
          onTimeout(id);
        }, timeoutMs);
        open.set(id, end);
      });
      return { id, method, startedAt: performance.now(), ended };
    },
    end: (id, how) => open.get(id)?.(how),
    endAll(why) {
      for (const end of open.values()) end({ answer: null, why });
    },
  };
}
