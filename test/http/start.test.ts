import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { listenOn, startServer } from '../support/http.ts';
import { query, recordArgs, recordUrl } from '../support/http-record.ts';
import { scale } from '../support/scale.ts';
import { ROOT, tapedeck, tapedeckInProcess, tempFolder, tempStore } from '../support/tapedeck.ts';

const URL_OF_NOBODY = 'http://127.0.0.1:9/mcp';

/** What `record` says as it refuses: one line. */
async function refusal(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { code, signal, stdout, stderr } = await tapedeckInProcess(['record', ...args], { env });
  expect({ code, signal, stdout: stdout.toString() }, stderr).toEqual({ code: 2, signal: null, stdout: '' });
  expect(stderr).toMatch(/^tapedeck: [^\n]+\n$/);
  return stderr;
}

test('a port that is taken is said, and no store is made', async () => {
  const { server } = await startServer((_request, response) => void response.end());
  const address = server.address() as { port: number };
  const db = tempStore();
  const args = ['--listen', `127.0.0.1:${address.port}`, '--db', db];
  expect(await refusal([URL_OF_NOBODY, ...args])).toMatch(
    /Cannot listen on 127\.0\.0\.1:\d+: something else listens there\. Choose another port, or 0 for a free one/,
  );
  expect(existsSync(db)).toBe(false);
  expect(await refusal([URL_OF_NOBODY, ...args, '--strict'])).toContain('something else listens there');
});

test('an address that is not of this machine is said', async () => {
  const args = ['--listen', '203.0.113.9:0', '--db', tempStore()];
  expect(await refusal([URL_OF_NOBODY, ...args])).toMatch(
    /Cannot listen on 203\.0\.113\.9:0: .*EADDRNOTAVAIL/,
  );
});

const NO_PEM = join(ROOT, 'package.json');
const WRONG: [args: string[], complaint: RegExp][] = [
  [['http://'], /Expected the URL of an MCP server, got `http:\/\/`\. Example: https:/],
  [
    ['ftp://127.0.0.1/mcp'],
    /Expected a URL with http:\/\/ or https:\/\/, or the server’s command after `--`, got `ftp:/,
  ],
  [
    ['localhost:9/mcp'],
    /Expected a URL with its scheme, got `localhost:9\/mcp`\. Try: tapedeck record http:\/\/localhost:9\/mcp/,
  ],
  [['127.0.0.1:9'], /Try: tapedeck record http:\/\/127\.0\.0\.1:9\n/],
  [['[::1]:9'], /Try: tapedeck record http:\/\/\[::1\]:9\n/],
  [[URL_OF_NOBODY, 'http://b'], /Expected either a URL or a command/],
  [[URL_OF_NOBODY, '--', 'node'], /Expected either a URL or a command/],
  [
    [URL_OF_NOBODY, '--listen', 'nonsense'],
    /Expected host:port after `--listen`, got `nonsense`\. Examples:/,
  ],
  [[URL_OF_NOBODY, '--listen', '127.0.0.1:65536'], /Expected host:port after `--listen`/],
  [[URL_OF_NOBODY, '--listen', ''], /Expected a value after `--listen`/],
  [[URL_OF_NOBODY, '--grace', 'long'], /Expected seconds after `--grace`, got `long`\. Example: --grace 30/],
  [[URL_OF_NOBODY, '--tls-cert', NO_PEM], /Expected `--tls-cert` and `--tls-key` together/],
  [
    [URL_OF_NOBODY, '--tls-cert', NO_PEM, '--tls-key', '/nowhere/key.pem'],
    /Expected a PEM file after `--tls-key`, but it cannot be read: ENOENT/,
  ],
  [
    [URL_OF_NOBODY, '--tls-cert', NO_PEM, '--tls-key', NO_PEM],
    /Expected a certificate after `--tls-cert` and its key after `--tls-key`, both as PEM: .*no start line/,
  ],
  [['--listen', '8808', '--', 'node'], /`--listen` goes with a URL, not with a command/],
];
test.each(WRONG)('a wrong command line is answered in words: %j', async (args, complaint) => {
  expect(await refusal(args, { TAPEDECK_DB: tempStore() })).toMatch(complaint);
});

test('a certificate and the key of another one are refused', async () => {
  const [one, another] = [makeCertificate(), makeCertificate()];
  const key = join(tempFolder(), 'key.pem');
  writeFileSync(key, another.key);
  expect(await refusal([URL_OF_NOBODY, '--tls-cert', one.file, '--tls-key', key])).toMatch(
    /and its key after `--tls-key`, both as PEM: .*mismatch/,
  );
});

test('a password in the URL is refused, and not repeated', async () => {
  const said = await refusal(['http://me:pass-word@127.0.0.1:9/mcp']);
  expect(said).toMatch(/Expected a URL without user and password/);
  expect(said).not.toContain('pass-word');
});

test('of an option that is given twice the last one counts', async () => {
  const upstream = await startServer((_request, response) => void response.end('{}'));
  const unused = join(tempFolder(), 'unused.db');
  const options = [
    ['--db', unused],
    ['--name', 'wrong'],
    ['--grace', 'wrong'],
    ['--max-queue', 'wrong'],
    ['--listen', 'wrong'],
  ].flat();
  const db = tempStore();
  const run = tapedeck([
    'record',
    ...options,
    ...recordArgs(upstream.url, db).slice(1),
    ...['--name', 'right', '--grace', '1', '--max-queue', '1mb'],
  ]);
  const listening = /listening on (\S+)/;
  await expect.poll(() => run.stderr(), { timeout: 20_000 }).toMatch(listening);
  await fetch(listening.exec(run.stderr())?.[1] ?? '');
  run.child.kill('SIGTERM');
  expect(await run.ended).toMatchObject({ code: 0 });
  expect(query(db, 'SELECT name FROM session')).toEqual([{ name: 'right' }]);
  expect(existsSync(unused)).toBe(false);
});

test('with --strict nothing is forwarded where the store cannot be opened', async () => {
  const file = join(tempFolder(), 'plain');
  writeFileSync(file, '');
  const run = tapedeck(recordArgs(URL_OF_NOBODY, join(file, 'x.db'), ['--strict']));
  const { code, stderr } = await run.ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(/^tapedeck: .*Stopping, because of --strict\.\n$/);
});

test('one line says where clients are to go, and that others could', async () => {
  const server = createServer();
  const port = await listenOn(server);
  server.close();
  const recording = await recordUrl('http://127.0.0.1:9/some/path?x=1', {
    args: ['--listen', `0.0.0.0:${port}`],
  });
  expect(recording.url.href).toBe(`http://127.0.0.1:${port}/some/path?x=1`);
  const lines = recording.run.stderr().split('\n');
  expect(lines).toHaveLength(3);
  expect(lines[0]).toMatch(/WARNING: listening beyond this machine: whoever reaches 0\.0\.0\.0/);
  expect(lines[1]).toContain(
    'for http://127.0.0.1:9/some/path?x=1; put the first URL into the client’s config',
  );
  await recording.stop();
  expect(recording.run.stdout().length).toBe(0);
});

test('from the moment on that it says where it listens it can be stopped', async () => {
  for (let round = 0; round < scale(5, 2); round += 1) {
    const run = tapedeck(recordArgs(URL_OF_NOBODY, tempStore()));
    run.child.stderr.once('data', () => run.child.kill('SIGTERM'));
    expect(await run.ended).toMatchObject({ code: 0, signal: null });
  }
});
