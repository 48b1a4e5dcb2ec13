/** The demo's client: asks a stdio server, and gives up on an answer that does not come, as every client does. */

import { performance } from 'node:perf_hooks';
import { clearTimeout, setTimeout } from 'node:timers';
import { TapedeckError } from '../../errors.ts';
import { liveStdio } from '../../talk/stdio.ts';

export type DemoClient = {
  /** Null where no answer came within `patienceMs`. Throws `TapedeckError` `io` where the server has gone. */
  ask(method: string, params: object, patienceMs: number): Promise<{ result: unknown; ms: number } | null>;
  notify(method: string, params?: object): Promise<void>;
  close(): Promise<void>;
};

/** `onStderr` gets what the server, and what stands before it, says besides. */
export function startClient(
  [command = '', ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
  onStderr: (bytes: Buffer) => void,
): DemoClient {
  const open = new Map<unknown, (outcome: { result: unknown } | { gone: string } | null) => void>();
  let gone: string | null = null;
  const server = liveStdio(
    command,
    args,
    onStderr,
    env,
  )({
    onPayload(payload) {
      const { id, result } = JSON.parse(payload.toString());
      // An answer belongs to the call whose id it has: "4" is not 4.
      open.get(id)?.({ result });
    },
    onFailed() {},
    onClosed(why) {
      gone = why;
      for (const settle of open.values()) settle({ gone: why });
    },
  });
  const send = (message: object, kind: 'request' | 'notification', id: number | null) =>
    server.send({
      ...{ json: Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message })), kind },
      ...{ id: id === null ? null : String(id), method: null, target: null, mirrored: [], version: null },
    });
  let last = 0;
  const notify = (method: string, params?: object) => send({ method, params }, 'notification', null);
  return {
    notify,
    async ask(method, params, patienceMs) {
      last += 1;
      const id = last;
      const begin = performance.now();
      const outcome = await new Promise<{ result: unknown } | { gone: string } | null>((settle) => {
        const timer = setTimeout(() => settle(null), patienceMs);
        open.set(id, (one) => {
          clearTimeout(timer);
          settle(one);
        });
        if (gone !== null) open.get(id)?.({ gone });
        else void send({ id, method, params }, 'request', id);
      });
      open.delete(id);
      if (outcome === null) {
        const reason = `no answer within ${patienceMs / 1000} s`;
        await notify('notifications/cancelled', { requestId: id, reason });
        return null;
      }
      if ('gone' in outcome) throw new TapedeckError('io', `The demo cannot go on: ${outcome.gone}.`);
      return { result: outcome.result, ms: performance.now() - begin };
    },
    close: () => server.close(),
  };
}
