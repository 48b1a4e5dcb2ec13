import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { inFull, scale } from '../support/scale.ts';
import { tapedeckInProcess } from '../support/tapedeck.ts';
import { ask, startUi, storeOf, TOKEN, type Ui } from '../support/ui.ts';

const OWN = { Authorization: `Bearer ${TOKEN}` };

/** The files of a store, with what is in them; what readers of SQLite have for each other is left out, and an empty WAL. */
function contentOf(db: string): Record<string, string> {
  const hasContent = (name: string) => statSync(join(dirname(db), name)).size > 0;
  const names = readdirSync(dirname(db)).filter((name) => !name.endsWith('-shm') && hasContent(name));
  return Object.fromEntries(
    names.map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(dirname(db), name)))
        .digest('hex'),
    ]),
  );
}

type Bad = [what: string, status: number, path: string, how: Parameters<typeof ask>[2]];

const BAD: readonly Bad[] = [
  ['a foreign Host', 403, '/api/about', { headers: { ...OWN, Host: 'evil.example' } }],
  ['a name that may be rebound', 403, '/', { headers: { Host: '127.0.0.1.evil.example' } }],
  ['a foreign Origin', 403, '/api/about', { headers: { ...OWN, Origin: 'https://evil.example' } }],
  ['the page of another port', 403, '/api/about', { headers: { ...OWN, Origin: 'http://127.0.0.1:1' } }],
  ['an Origin without a name', 403, '/api/about', { headers: { ...OWN, Origin: 'null' } }],
  ['a page of another site', 403, '/api/about', { headers: { ...OWN, 'Sec-Fetch-Site': 'cross-site' } }],
  ['a page of another port', 403, '/api/about', { headers: { ...OWN, 'Sec-Fetch-Site': 'same-site' } }],
  ['a typed address', 403, '/api/about', { headers: { ...OWN, 'Sec-Fetch-Site': 'none' } }],
  ['no token', 401, '/api/about', {}],
  ['no token for what is not there', 401, '/api/nothing', {}],
  ['a wrong token', 401, '/api/about', { headers: { Authorization: `Bearer ${TOKEN}x` } }],
  [
    'the beginning of the token',
    401,
    '/api/about',
    { headers: { Authorization: `Bearer ${TOKEN.slice(0, -1)}` } },
  ],
  ['the token as a password', 401, '/api/about', { headers: { Authorization: `Basic ${TOKEN}` } }],
  ['the token in the URL', 401, `/api/about?token=${TOKEN}`, {}],
  ['POST', 405, '/api/sessions', { method: 'POST', headers: OWN, body: '{}' }],
  ['PUT', 405, '/', { method: 'PUT', headers: OWN, body: 'x'.repeat(100_000) }],
  ['DELETE', 405, '/api/sessions/latest', { method: 'DELETE', headers: OWN }],
  [
    'a preflight',
    405,
    '/api/about',
    { method: 'OPTIONS', headers: { 'Access-Control-Request-Method': 'GET' } },
  ],
  ['a path out of the page', 404, '/../../package.json', {}],
  ['an encoded path out of it', 404, '/%2e%2e/%2e%2e/package.json', {}],
  ['a path out of the assets', 404, '/assets/..%2f..%2fpackage.json', {}],
  ['a path with a zero', 404, '/s%00', {}],
  ['a file that is none of the page', 404, '/package.json', {}],
  ['the URL of another server', 404, 'http://evil.example/api/about', { headers: OWN }],
  ['what is no encoding', 404, '/api/sessions/%ff%fe/outline', { headers: OWN }],
  ['a route that is not there', 404, '/api/sessions/latest/nothing', { headers: OWN }],
  ['a session that is not there', 404, '/api/sessions/no-such', { headers: OWN }],
  ['SQL in the place of a session', 404, "/api/sessions/'%20OR%201=1--", { headers: OWN }],
  ['a number that is none', 400, '/api/sessions/latest/frames/1e3', { headers: OWN }],
  ['a limit that is too large', 400, '/api/sessions?limit=501', { headers: OWN }],
  ['an order that is none', 400, '/api/sessions?sort=random()', { headers: OWN }],
  ['a place that is none', 400, '/api/sessions?after=WzFd', { headers: OWN }],
  ['a ticket that was never issued', 404, '/api/download/x', {}],
  ['a link that was never issued', 404, '/open/x', {}],
  ['a URL of 17 kB', 414, `/api/about?${'x'.repeat(17_000)}`, { headers: OWN }],
];

function expectSafe(headers: Record<string, unknown>): void {
  expect(headers['content-security-policy']).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src blob:; connect-src 'self'; " +
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  );
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': expect.stringMatching(/no-store|no-cache/),
  });
  expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
}

test('whoever may not ask is refused in a line, everywhere under the same headers, and the store stays as it was', async () => {
  const db = await storeOf('everything-stdio');
  const before = contentOf(db);
  const ui = await startUi(db);
  const name = readFileSync(db).includes('everything-stdio') ? 'everything-stdio' : '';
  expect(name).not.toBe('');
  for (const [what, status, path, how] of BAD) {
    const answer = await ask(ui, path, how);
    expect([what, answer.status]).toEqual([what, status]);
    expectSafe(answer.headers);
    expect(answer.text.split('\n').length, what).toBe(2);
    expect(JSON.parse(answer.text).error.message, what).toMatch(/\w/);
    expect(answer.text, what).not.toContain(TOKEN);
  }
  expect((await ask(ui, '/api/about', { headers: OWN })).status).toBe(200);
  expect(contentOf(db)).toEqual(before);
});

test('the own page asks from wherever it is called, and so does an origin that is allowed', async () => {
  const ui = await startUi(await storeOf('everything-stdio'), [
    ...['--allow-host', 'viewer.example', '--allow-origin', 'https://viewer.example'],
  ]);
  const statusOf = async (headers: Record<string, string>) =>
    (await ask(ui, '/api/about', { headers: { ...OWN, ...headers } })).status;
  const own = `127.0.0.1:${ui.port}`;
  expect(await statusOf({ Origin: `http://${own}`, 'Sec-Fetch-Site': 'same-origin' })).toBe(200);
  expect(await statusOf({ Host: `localhost:${ui.port}`, Origin: `http://localhost:${ui.port}` })).toBe(200);
  expect(await statusOf({ Host: 'viewer.example', Origin: 'https://viewer.example' })).toBe(200);
  expect(await statusOf({ Host: 'viewer.example', Origin: 'https://viewer.example:444' })).toBe(403);
  expect(await statusOf({ Host: own, Origin: `http://localhost:${ui.port}` })).toBe(403);
});

/** Bytes as they are, which no client would send. */
function sendRaw({ port }: Ui, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.setEncoding('utf8');
    socket.on('data', (piece) => {
      text += piece;
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
}

test('what is no HTTP is refused under the same headers', async () => {
  const ui = await startUi(await storeOf('everything-stdio'));
  for (const [bytes, status] of [
    ['nonsense\r\n\r\n', 400],
    [`GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n${'x'.repeat(70_000)}: y\r\n\r\n`, 431],
  ] as const) {
    const answer = await sendRaw(ui, bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toContain("require-trusted-types-for 'script'");
  }
});

inFull('bad requests in thousands cost no good one its answer', async () => {
  const db = await storeOf('everything-stdio');
  const before = contentOf(db);
  const ui = await startUi(db);
  const count = scale(10_000, 300);
  const statuses = new Set<number>();
  for (let sent = 0; sent < count; sent += 50) {
    const some = Array.from({ length: 50 }, (_, i) => BAD[(sent + i) % BAD.length] as Bad);
    const answers = await Promise.all(some.map(([, , path, how]) => ask(ui, path, how)));
    for (const { status } of answers) statuses.add(status);
    expect((await ui.json('/api/about')).sessions).toBe(1);
  }
  expect([...statuses].sort()).toEqual([400, 401, 403, 404, 405, 414]);
  expect(contentOf(db)).toEqual(before);
});

test('a token is long, and an origin is one; what is given is not repeated', async () => {
  const db = await storeOf('everything-stdio');
  const start = (...args: string[]) =>
    tapedeckInProcess(['ui', '--db', db, '--listen', '127.0.0.1:0', ...args]);
  const short = await start('--token', 'tooshort');
  expect([short.code, short.stderr]).toEqual([2, expect.stringMatching(/Expected a token of 16 to 512/)]);
  expect(short.stderr).not.toContain('tooshort');
  const everybody = await start('--allow-origin', '*');
  expect([everybody.code, everybody.stderr]).toEqual([2, expect.stringMatching(/Expected an origin after/)]);
});

inFull('reading everything of every route changes no byte of the store', async () => {
  const db = await storeOf('everything-stdio', 'everything-http', 'modern-http');
  const before = contentOf(db);
  const ui = await startUi(db);
  for (const { session } of (await ui.json('/api/sessions')).sessions) {
    const { lastSeq, httpExchanges } = await ui.json(`/api/sessions/${session}`);
    for (let seq = 1; seq <= lastSeq; seq += 1) {
      await ui.json(`/api/sessions/${session}/frames/${seq}`);
      await (await ui.get(`/api/sessions/${session}/frames/${seq}/bytes`)).arrayBuffer();
    }
    for (let http = 1; http <= httpExchanges; http += 1)
      await ui.json(`/api/sessions/${session}/http/${http}`);
  }
  expect(contentOf(db)).toEqual(before);
});
