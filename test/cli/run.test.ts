import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { startCompanyProxy } from '../support/company-proxy.ts';
import { listenOn, startServer } from '../support/http.ts';
import { query } from '../support/http-record.ts';
import { fixture, tapedeck, tapedeckInProcess, tempFolder, tempStore, until } from '../support/tapedeck.ts';

const CLIENT = fixture('proxied-client.js');

/** A server with TLS, which only its own certificate vouches for. */
async function startTls() {
  const certificate = makeCertificate();
  const server = createServer(certificate, (_, response) => {
    response.setHeader('Content-Type', 'application/json');
    response.end('{"jsonrpc":"2.0","id":1,"result":{}}');
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `https://localhost:${await listenOn(server)}/mcp`, file: certificate.file };
}

/** Its own data folder, where Node keeps nothing of its own, and no proxy of the machine. */
function environmentOf(folder: string, more: Record<string, string> = {}): Record<string, string> {
  return {
    HOME: folder,
    XDG_DATA_HOME: join(folder, 'data'),
    TMPDIR: folder,
    ...{ HTTPS_PROXY: '', https_proxy: '', HTTP_PROXY: '', http_proxy: '', ALL_PROXY: '', all_proxy: '' },
    NODE_DISABLE_COMPILE_CACHE: '1',
    ...more,
  };
}

test('a client keeps its URL, is recorded under it, and ends as it ends', async () => {
  const { url, file } = await startTls();
  const [db, folder] = [tempStore(), tempFolder()];
  const env = environmentOf(folder, { NODE_EXTRA_CA_CERTS: file });
  const words = ['run', '--db', db, '--forward', url, '--', process.execPath, CLIENT, url, 'exit 7'];
  const { code, stdout, stderr } = await tapedeck(words, { env }).ended;
  expect({ code, stderr }).toEqual({ code: 7, stderr: '' });
  expect(stdout.toString()).toBe('200 {"jsonrpc":"2.0","id":1,"result":{}}\n');
  expect(query(db, 'SELECT target, dropped FROM session')).toEqual([{ target: url, dropped: 0 }]);
  expect(query(db, 'SELECT method, path, status, edits FROM http_exchange')).toEqual([
    { method: 'POST', path: '/mcp', status: 200, edits: null },
  ]);
  expect(query(db, 'SELECT outcome FROM exchange')).toEqual([{ outcome: 'ok' }]);
  // Neither the certificate nor a key stays.
  expect(readdirSync(folder)).toEqual([]);
});

test('it dies by the signal that its client died of, and passes its own on', async () => {
  const { url } = await startServer((_, response) => response.end('{}'));
  const words = ['run', '--db', tempStore(), '--forward', url, '--', process.execPath, CLIENT, url, 'wait'];
  const run = tapedeck(words, { env: environmentOf(tempFolder()) });
  await until('it waits', () => run.stdout().includes('200'));
  run.child.kill('SIGTERM');
  expect(await run.ended).toMatchObject({ code: null, signal: 'SIGTERM' });
});

test('a client that goes past the proxy, or cannot be started, is told of', async () => {
  const { url } = await startServer((_, response) => response.end('{}'));
  const env = environmentOf(tempFolder());
  const past = ['run', '--db', tempStore(), '--forward', url, '--', process.execPath, '-e', '0'];
  expect(await tapedeck(past, { env }).ended).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`nothing was recorded: the client asked nothing of ${url}`),
  });
  const none = ['run', '--db', tempStore(), '--forward', url, '--', './no-such-client'];
  expect(await tapedeck(none, { env }).ended).toMatchObject({
    code: 127,
    stderr: expect.stringContaining('no such command'),
  });
});

test('it goes on through the proxy of the environment, which neither says nor keeps its password', async () => {
  const { url: upstream } = await startServer((_, response) => response.end('{}'));
  const company = await startCompanyProxy({ hosts: { 'api.example': Number(new URL(upstream).port) } });
  const proxy = `http://me:top-secret@127.0.0.1:${company.port}`;
  const [db, url] = [tempStore(), 'http://api.example:8080/mcp'];
  const words = ['run', '--db', db, '--forward', url, '--', process.execPath, CLIENT, url, 'exit 0'];
  const env = environmentOf(tempFolder(), { HTTP_PROXY: proxy, ALL_PROXY: 'socks5://127.0.0.1:9' });
  const { stdout, stderr } = await tapedeck(words, { env }).ended;
  expect(stdout.toString()).toBe('200 {}\n');
  expect(stderr).toBe(
    [
      `tapedeck: goes on through the proxy http://127.0.0.1:${company.port}, which HTTP_PROXY names\n`,
      'tapedeck: WARNING: ALL_PROXY is set, but not to the URL of an HTTP proxy, such as http://host:port; tapedeck does not use it\n',
    ].join(''),
  );
  expect(company.asked).toEqual(['POST http://api.example:8080/mcp']);
  expect(JSON.stringify(company.rawHeaders)).toContain(Buffer.from('me:top-secret').toString('base64'));
  expect(query(db, 'SELECT status FROM http_exchange')).toEqual([{ status: 200 }]);
  const stored = readFileSync(db, 'latin1');
  for (const secret of ['top-secret', Buffer.from('me:top-secret').toString('base64')])
    expect(stored).not.toContain(secret);
});

test('one that is to go on through itself is refused', async () => {
  const env = environmentOf(tempFolder(), { https_proxy: 'http://me:top-secret@127.0.0.1:1' });
  const words = ['record', '--forward', 'https://a.example/', '--listen', '127.0.0.1:1'];
  const { code, stderr } = await tapedeckInProcess(words, { env });
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/in https_proxy than http:\/\/127\.0\.0\.1:1,/),
  });
});

test.each([
  [['run'], /Expected the client’s command after `--`/],
  [['run', '--', './mine'], /the config of `\.\/mine` is not known.*--forward/],
  [['run', '--forward', 'https://*.example.com/', '--', 'x'], /URL of one server/],
  [['run', '--forward', 'api.example.com', '--', 'x'], /Expected the URL of an MCP server/],
  [['run', '--forward', 'http://a/', '--tunnel', 'a', '--', 'x'], /besides those of `--tunnel`/],
  [['run', '--forward', 'http://a:1/', '--forward', 'https://a:1/', '--', 'x'], /one scheme at a:1/],
  [['record', '--forward', 'http://a/', '--', 'x'], /Try: tapedeck run --forward http:\/\/a\/ -- x/],
  [['record', '--forward', 'http://a/', '--no-edit'], /`--no-edit` does not go with `--forward`/],
  [
    ['run', '--forward', 'http://a/', '--forward', 'http://b/', '--fault', 'drop', '--', 'x'],
    /one server for `--fault`, got 2/,
  ],
  [['record', 'http://a/', '--tunnel', 'a'], /`--tunnel` goes with `--forward`/],
  [['record', '--forward', 'http://127.0.0.1:1/', '--listen', '127.0.0.1:1'], /would go to itself/],
  [
    ['record', '--forward', 'http://a/', '--listen', '0.0.0.0:0'],
    /password in TAPEDECK_PROXY_PASSWORD.*got none/,
  ],
])('%j is refused with what to do', async (words, expected) => {
  const { code, stderr } = await tapedeckInProcess(words, { env: environmentOf(tempFolder()) });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(expected) });
});

test('the CA of record --forward is kept for its hosts, is the user’s alone, and is forgotten', async () => {
  const folder = tempFolder();
  const env = environmentOf(folder);
  const record = async () => {
    const run = tapedeck(
      ['record', '--forward', 'https://a.example/', '--listen', '127.0.0.1:0', '--db', tempStore()],
      { env },
    );
    await until('it listens', () => run.stderr().includes('CURL_CA_BUNDLE'));
    run.child.kill('SIGTERM');
    expect(await run.ended).toMatchObject({ code: 0 });
    return /NODE_EXTRA_CA_CERTS=(\S+)/.exec(run.stderr())?.[1] ?? '';
  };
  const first = await record();
  const printed = await tapedeckInProcess(['ca', '--print'], { env });
  expect(printed.stdout.toString()).toMatch(/^-----BEGIN CERTIFICATE-----/);
  expect(await record()).toBe(first);
  expect((await tapedeckInProcess(['ca', '--print'], { env })).stdout.equals(printed.stdout)).toBe(true);
  const [listed = ''] = (await tapedeckInProcess(['ca', '--json'], { env })).stdout.toString().split('\n');
  const { file, hosts } = JSON.parse(listed) as { file: string; hosts: string[] };
  expect(hosts).toEqual(['a.example']);
  const key = file.replace('.pem', '.key');
  if (process.platform !== 'win32') expect(statSync(key).mode & 0o777).toBe(0o600);
  expect(await tapedeckInProcess(['ca', '--forget'], { env })).toMatchObject({ code: 0 });
  expect(existsSync(key)).toBe(false);
});
