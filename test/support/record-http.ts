/** Records HTTP servers with the real command, in a process of its own. */
import { type IncomingHttpHeaders, request } from 'node:http';
import { type Run, tapedeck, until } from './tapedeck.ts';

export type HttpRecording = {
  run: Run;
  /** Where clients reach the server. */
  url: URL;
  /** Settles once everything is stored. */
  stop(): Promise<void>;
};

export async function recordUrl(
  db: string,
  upstream: string,
  options: readonly string[] = [],
): Promise<HttpRecording> {
  const run = tapedeck(['record', upstream, '--listen', '127.0.0.1:0', '--db', db, ...options]);
  const listening = /listening on (\S+) for/;
  await until('the proxy listens', () => listening.test(run.stderr()));
  const [, url = ''] = listening.exec(run.stderr()) ?? [];
  return {
    run,
    url: new URL(url),
    async stop() {
      run.child.kill('SIGTERM');
      await run.ended;
    },
  };
}

export type Answer = {
  status: number;
  headers: IncomingHttpHeaders;
  /** What came so far. */
  text(): string;
  /** Settles once the answer has ended, whole or not. */
  ended: Promise<void>;
  leave(): void;
};

/** Sends a request, and settles with the head of its answer. */
export function send(
  url: URL,
  {
    method = 'POST',
    headers = {},
    body = '',
  }: { method?: string; headers?: object; body?: string | object } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const text = typeof body === 'string' ? body : JSON.stringify({ jsonrpc: '2.0', ...body });
    const type =
      text === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
    const accept = { Accept: 'application/json, text/event-stream' };
    const sent = request(url, { method, agent: false, headers: { ...accept, ...type, ...headers } });
    sent.on('error', reject);
    sent.on('response', (answer) => {
      let received = '';
      answer.on('data', (bytes) => {
        received += bytes;
      });
      answer.on('error', () => {});
      const ended = new Promise<void>((over) => answer.once('close', over));
      const leave = () => void sent.destroy();
      const { statusCode: status = 0, headers: answered } = answer;
      resolve({ status, headers: answered, text: () => received, ended, leave });
    });
    sent.end(text);
  });
}
