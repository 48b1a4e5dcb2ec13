/**
 * The admin port of a recording process: `/healthz`, `/readyz` and `/metrics`. A port of its own, never the one of the
 * traffic, so that nobody who may call the server learns how the recorder is.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createAccessCheck, type Listen, ownUrl, startListening } from '../net/listen.ts';
import { ANSWER_MS, findIllness } from './health.ts';
import type { Metrics, WatchedRecorder } from './metrics.ts';

export type AdminOptions = {
  listen: Listen;
  allowHosts: readonly string[];
  allowOrigins: readonly string[];
  /** Those of this process, at the moment. */
  recorders: () => readonly WatchedRecorder[];
  metrics: Metrics;
  /** Why this process takes no traffic; null: it does. */
  notReady: () => string | null;
};

export type Admin = {
  url: URL;
  close(): void;
};

type Answer = { status: number; type: string; text: string };

/** A scraper gives up after ten seconds; what the writer said last is better than nothing. */
const SCRAPE_MS = 2000;

/** Settles when it listens; rejects with Node's error where it cannot (`EADDRINUSE` and the like). */
export async function openAdmin(options: AdminOptions): Promise<Admin> {
  const { listen, allowHosts, allowOrigins, recorders, metrics, notReady } = options;
  const check = createAccessCheck({ listenHost: listen.host, allowHosts, allowOrigins });

  async function findObstacle(): Promise<string | null> {
    const obstacle = notReady();
    if (obstacle !== null) return obstacle;
    const answers = await Promise.all(recorders().map((recorder) => recorder.figures(ANSWER_MS)));
    return answers.every((figures) => figures?.isStoring) ? null : 'the store is not open';
  }

  const pages: Readonly<Record<string, () => Promise<Answer>>> = {
    '/healthz': async () => verdict(await findIllness(recorders())),
    '/readyz': async () => verdict(await findObstacle()),
    '/metrics': async () => ({ status: 200, ...(await metrics.scrape(SCRAPE_MS)) }),
  };

  async function answer(request: IncomingMessage): Promise<Answer> {
    const refusal = check(request.headers);
    if (refusal !== null) return plain(403, refusal);
    const page = pages[(request.url ?? '').split('?', 1)[0] ?? ''];
    if (page === undefined) return plain(404, `expected ${Object.keys(pages).join(', ')}`);
    if (request.method !== 'GET' && request.method !== 'HEAD') return plain(405, 'expected GET');
    return page();
  }

  const server = createServer((request, response) => {
    answer(request)
      .catch((error: Error) => plain(500, error.message))
      .then((found) => send(response, request, found));
  });
  const address = await startListening(server, listen);
  // It never keeps the process alive: the traffic does.
  server.unref();
  return {
    url: ownUrl(address, 'http', '/'),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function verdict(obstacle: string | null): Answer {
  return obstacle === null ? plain(200, 'ok') : plain(503, obstacle);
}

function plain(status: number, text: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', text: `${text}\n` };
}

function send(response: ServerResponse, { method }: IncomingMessage, { status, type, text }: Answer): void {
  const length = Buffer.byteLength(text);
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': length, 'Cache-Control': 'no-store' });
  response.end(method === 'HEAD' ? undefined : text);
}
