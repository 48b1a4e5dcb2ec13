/** One HTTP request, and its answer as it comes. */
import { type IncomingHttpHeaders, request } from 'node:http';

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
