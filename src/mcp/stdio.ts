/** `tapedeck mcp` over stdin and stdout, for one client of either era. */

import type { Readable, Writable } from 'node:stream';
import type { Transport } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Reader } from './ask.ts';
import { createServer } from './server.ts';
import { createResourceWatch, createSubscriptions, listenedUris } from './watch.ts';

/** Settles when the client has left, or `stopped` has settled. */
export async function serveOverStdio(
  reader: Reader,
  { stdin, stdout }: { stdin: Readable; stdout: Writable },
  stopped: Promise<void>,
): Promise<void> {
  const tellers = new Set<(uri: string) => void>();
  const watch = createResourceWatch(reader, (uri) => {
    for (const tell of tellers) tell(uri);
  });
  const subscriptions = createSubscriptions(watch);
  let leave = () => {};
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const transport = observed(new StdioServerTransport(stdin, stdout), (message) => {
    const uris = listenedUris(message);
    return uris.length === 0 ? null : watch.add(uris).ready;
  });
  const handle = serveStdio(
    () => {
      const server = createServer(reader, subscriptions);
      // A client of the 2025 era is told what it has asked for, a later one what it listens to: the SDK sees to that.
      const tell = (uri: string) => void server.server.sendResourceUpdated({ uri }).catch(() => {});
      tellers.add(tell);
      server.server.onclose = () => {
        tellers.delete(tell);
        if (tellers.size === 0) leave();
      };
      return server;
    },
    { transport },
  );
  stdin.once('end', leave).once('close', leave);
  await Promise.race([left, stopped]);
  watch.close();
  await handle.close();
}

/** A transport that shows each message before it passes it on. Those behind one that waits keep their places. */
function observed(inner: Transport, onMessage: (message: unknown) => Promise<void> | null): Transport {
  let waiting: Promise<void> | null = null;
  const outer: Transport = {
    start() {
      inner.onmessage = (message, extra) => {
        const pass = () => outer.onmessage?.(message, extra);
        const ready = onMessage(message);
        if (ready === null && waiting === null) {
          pass();
          return;
        }
        const turn: Promise<void> = Promise.all([waiting, ready]).then(() => {
          if (waiting === turn) waiting = null;
          pass();
        });
        waiting = turn;
      };
      inner.onclose = () => outer.onclose?.();
      inner.onerror = (error) => outer.onerror?.(error);
      return inner.start();
    },
    send: (message, options) => inner.send(message, options),
    close: () => inner.close(),
  };
  return outer;
}
