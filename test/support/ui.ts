/** A viewer of a store, in this process, and what a client asks of it. */
import { request } from 'node:http';
import { type InProcessRun, startInProcess } from './in-process.ts';
import { tapedeckInProcess, tempStore, until } from './tapedeck.ts';

/** Obviously no secret. */
export const TOKEN = 'a-token-for-tests-alone';

export type Ui = {
  run: InProcessRun;
  /** Without a slash at its end. */
  origin: string;
  port: number;
  /** Those that bear the token. */
  headers: Record<string, string>;
  /** With the token, unless the headers have another one. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** The answer as JSON. Fails for any other status than 200. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  json(path: string): Promise<any>;
};

/** On any free port, unless one is named. */
export async function startUi(
  db: string,
  args: readonly string[] = [],
  onPort = 0,
  env: Record<string, string> = {},
): Promise<Ui> {
  const run = startInProcess(
    ['ui', ...args, ...['--db', db, '--no-open', '--token', TOKEN, '--listen', `127.0.0.1:${onPort}`]],
    { env },
  );
  const link = /(http:\/\/127\.0\.0\.1:(\d+))\//;
  await until(`it listens: ${run.stderr()}`, () => link.test(run.stdout().toString()));
  const [, origin = '', port] = link.exec(run.stdout().toString()) ?? [];
  const own = { Authorization: `Bearer ${TOKEN}` };
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(origin + path, { headers: { ...own, ...headers }, redirect: 'manual' });
  async function json(path: string): Promise<unknown> {
    const answer = await get(path);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }
  return { run, origin, port: Number(port), headers: own, get, json };
}

/** A new store with the recordings of these names (of `recordings`). */
export async function storeOf(...recordings: readonly string[]): Promise<string> {
  const db = tempStore();
  for (const name of recordings) {
    const { code, stderr } = await tapedeckInProcess(['import', `recordings/${name}.ndjson`, '--db', db]);
    if (code !== 0) throw new Error(stderr);
  }
  return db;
}

type RawAnswer = { status: number; headers: Record<string, string | string[] | undefined>; text: string };

/** A request as no `fetch` makes it: any method, path and headers, the `Host` among them. */
export function ask(
  { port }: Ui,
  path: string,
  {
    method = 'GET',
    headers = {},
    body,
  }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece) => {
        text += piece;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
