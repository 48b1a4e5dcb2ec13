/** `record` with `--admin`: joins the recorders of this process to its admin port. */

import { openAdmin } from '../../admin/admin.ts';
import { createMetrics, type WatchedRecorder } from '../../admin/metrics.ts';
import type { HttpEvent } from '../../protocol/wire/http-event.ts';
import { cannotListen, readListen } from '../listening.ts';
import type { Log } from './log.ts';

export type Operations = {
  onCommit(ms: number): void;
  onForwarded(ms: number): void;
  /** Counts HTTP exchanges by their answers. */
  onHttpEvent(event: HttpEvent): void;
  /** Why this process takes no traffic; null: it does. */
  setObstacle(why: string | null): void;
  /** What is not shipped yet may take so many bytes; null: it has no limit. Without shipping it does nothing. */
  setShipLimit(bytes: number | null): void;
  close(): void;
};

export type AdminAccess = { allowHosts: readonly string[]; allowOrigins: readonly string[] };

/** `address`: the value of `--admin`; `recorders`: those of this process, to which more may come; `isShipped`: what they record is. Throws `TapedeckError` where it is wrong, or cannot be listened on. */
export async function openOperations(
  address: string,
  { allowHosts, allowOrigins }: AdminAccess,
  recorders: readonly WatchedRecorder[],
  log: Log,
  isShipped: boolean,
): Promise<Operations> {
  const listen = readListen(address, '--admin');
  const shipping = isShipped ? (await import('../../ship/metrics.ts')).createShipMetrics() : null;
  const answered = new Set<number>();
  let obstacle: string | null = 'starting';
  const metrics = createMetrics(() => recorders, shipping?.declare ?? null);
  const { close, url } = await openAdmin({
    ...{ listen, allowHosts, allowOrigins, metrics },
    recorders: () => recorders,
    notReady: () => obstacle,
  }).catch((error) => {
    throw cannotListen(listen, error as NodeJS.ErrnoException, '--admin');
  });
  log.info('admin', `health and metrics are at ${url.href}`, { url: url.href });
  return {
    onCommit: metrics.onCommit,
    onForwarded: metrics.onForwarded,
    onHttpEvent(event) {
      if (event.type === 'response') {
        answered.add(event.exchange);
        metrics.onHttpAnswer(event.status);
      } else if (event.type === 'end' && !answered.delete(event.exchange)) metrics.onHttpAnswer(null);
    },
    setObstacle(why) {
      obstacle = why;
    },
    setShipLimit: (bytes) => shipping?.setLimit(bytes),
    close,
  };
}
