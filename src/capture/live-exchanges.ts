/** HTTP requests of our own to a live server, over connections that are kept, and the reading of what it answers. */
import { Agent, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps, Agent as TlsAgent } from 'node:https';
import { createSseSplitter, readSse, type SseFields } from '../protocol/sse.ts';

export type Headers = Record<string, string>;

export type Exchanges = {
  /**
   * Settles with the head of the response. Rejects where the server cannot be reached. `id`: of the JSON-RPC request whose
   * answer is awaited on it.
   */
  request(
    url: URL,
    method: string,
    headers: Headers,
    body?: Buffer,
    id?: string | null,
  ): Promise<IncomingMessage>;
  /** Cuts the exchange that the answer to this JSON-RPC request is awaited on. */
  abandon(id: string): void;
  /** Cuts whatever is still open. */
  close(): void;
};

const MAX_BYTES = 256 * 1024 * 1024;

/** `extra`: headers that every request has, such as `Authorization`. */
export function createExchanges({ protocol }: URL, extra: Headers): Exchanges {
  const isTls = protocol === 'https:';
  const agent = isTls ? new TlsAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
  const open = new Set<IncomingMessage>();
  const asked = new Map<string, () => void>();
  return {
    request(url, method, headers, body, id = null) {
      const own: Headers = { ...extra, ...headers };
      if (body !== undefined) own['Content-Length'] = String(body.length);
      return new Promise((resolve, reject) => {
        const ask = isTls ? requestHttps : requestHttp;
        const asking = ask(url, { method, headers: own, agent }, (response) => {
          open.add(response);
          response.once('close', () => open.delete(response));
          response.on('error', () => {});
          resolve(response);
        });
        asking.once('error', reject);
        asking.end(body);
        if (id === null) return;
        asked.set(id, () => asking.destroy());
        asking.once('close', () => asked.delete(id));
      });
    },
    abandon: (id) => asked.get(id)?.(),
    close() {
      for (const response of open) response.destroy();
      agent.destroy();
    },
  };
}

export async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > MAX_BYTES) throw new Error(`an answer of more than ${MAX_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

export function isEventStream({ headers }: IncomingMessage): boolean {
  return (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() === 'text/event-stream';
}

/** Settles when the stream has ended. Events that are not whole, or longer than any server's, are left out. */
export async function eachEvent(
  response: IncomingMessage,
  onEvent: (event: SseFields) => void,
): Promise<void> {
  const splitter = createSseSplitter({
    maxBytes: MAX_BYTES,
    onBlock({ payload, truncated, isComplete }) {
      if (!truncated && isComplete) onEvent(readSse(payload));
    },
    onOversize() {},
    onSkip() {},
  });
  response.on('data', (bytes: Buffer) => splitter.feed(bytes, 0));
  await new Promise<void>((resolve) => response.once('close', resolve));
  splitter.end();
}

export function textOf(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  return message === '' ? (code ?? 'no connection') : message;
}
