/** Clients that others wrote, each with its own way of heeding the environment, through `run` to a server of TLS and to a plain one. */
import { connect } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { HEAVY_MODULES, runsHeavy } from '../support/heavy.ts';
import { listenOn } from '../support/http.ts';
import { query } from '../support/http-record.ts';
import { startEverything } from '../support/servers.ts';
import { BIN, fixture, start, tapedeck, tempFolder, tempStore } from '../support/tapedeck.ts';

type Origin = { url: string; env: Record<string, string> };

/** The official server behind TLS, which only a certificate of its own vouches for; `env` is what tapedeck trusts it by. */
async function startTls(): Promise<Origin> {
  const { port } = new URL(await startEverything('streamableHttp'));
  const { cert, key, file } = makeCertificate();
  const server = createServer({ cert, key }, (client) => {
    const upstream = connect(Number(port), '127.0.0.1');
    client.pipe(upstream).pipe(client);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
  });
  onTestFinished(() => void server.close());
  return { url: `https://localhost:${await listenOn(server)}/mcp`, env: { NODE_EXTRA_CA_CERTS: file } };
}

async function startPlain(): Promise<Origin> {
  return { url: await startEverything('streamableHttp'), env: {} };
}

const INITIALIZE =
  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"by-hand","version":"1"}}}';

const POST_BY_PYTHON = `
import sys, urllib.request
headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
request = urllib.request.Request(sys.argv[1], data=sys.argv[2].encode(), headers=headers)
print(urllib.request.urlopen(request).read().decode())
`;

const POST_BY_FETCH = `
const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
const answer = await fetch(process.argv[1], { method: 'POST', headers, body: process.argv[2] });
console.log(await answer.text());
`;

const HEADERS = ['Content-Type: application/json', 'Accept: application/json, text/event-stream'];

/** Node's own fetch heeds a proxy of its environment from 22.21 and 24 on. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const fetchHeeds = major >= 24 || (major === 22 && minor >= 21);

const CLIENTS: Record<string, { words: (url: string) => string[]; prints: string; isHere?: boolean }> = {
  curl: {
    words: (url) => [
      ...['curl', '--silent', '--show-error', '--fail', '--max-time', '30'],
      ...HEADERS.flatMap((header) => ['--header', header]),
      ...['--data', INITIALIZE, url],
    ],
    prints: '"protocolVersion":"2025-11-25"',
  },
  'Python’s urllib': {
    words: (url) => ['python3', '-c', POST_BY_PYTHON, url, INITIALIZE],
    prints: '"protocolVersion":"2025-11-25"',
  },
  'Node’s fetch': {
    words: (url) => [process.execPath, '--input-type=module', '-e', POST_BY_FETCH, url, INITIALIZE],
    prints: '"protocolVersion":"2025-11-25"',
    isHere: fetchHeeds,
  },
  'the official client of the first line': {
    words: (url) => [process.execPath, fixture('proxied-sdk.js'), '1', url],
    prints: 'Echo: hi\n',
    isHere: fetchHeeds,
  },
  'the official client of the second line': {
    words: (url) => [process.execPath, fixture('proxied-sdk.js'), '2', url],
    prints: 'Echo: hi\n',
    isHere: fetchHeeds,
  },
};

const ORIGINS = { TLS: startTls, 'plain HTTP': startPlain };

/** Nothing of a proxy, or of certificates, that the machine itself may name. */
function environment(more: Record<string, string>): Record<string, string> {
  const proxies = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY', 'ALL_PROXY'];
  const certificates = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS'];
  const none = [...proxies, ...proxies.map((name) => name.toLowerCase()), ...certificates];
  return { ...Object.fromEntries(none.map((name) => [name, ''])), ...more };
}

function expectRecorded(db: string, url: string, requests: number): void {
  expect(query(db, 'SELECT DISTINCT target, dropped FROM session')).toEqual([{ target: url, dropped: 0 }]);
  expect(query(db, 'SELECT * FROM http_exchange WHERE edits IS NOT NULL')).toEqual([]);
  const [counted] = query<{ count: number }>(
    db,
    "SELECT count(*) AS count FROM exchange WHERE outcome = 'ok'",
  );
  expect(counted?.count).toBeGreaterThanOrEqual(requests);
}

describe.each(Object.entries(ORIGINS))('to a server of %s', (_, startOrigin) => {
  test.each(Object.entries(CLIENTS).filter(([, { isHere = true }]) => isHere))(
    '%s keeps the real URL, and is recorded under it',
    async (_, { words, prints }) => {
      const { url, env } = await startOrigin();
      const db = tempStore();
      const direct = await start(words(url)[0] as string, words(url).slice(1), {
        env: environment({ ...env, ...trusting(env) }),
      }).ended;
      expect(direct).toMatchObject({ code: 0, stdout: expect.anything() });
      const run = tapedeck(['run', '--db', db, '--forward', url, '--', ...words(url)], {
        env: environment({ ...env, XDG_DATA_HOME: tempFolder() }),
      });
      const { code, stdout, stderr } = await run.ended;
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout.toString()).toContain(prints);
      expect(stdout.length).toBe(direct.stdout.length);
      expectRecorded(db, url, 1);
    },
  );

  test.runIf(runsHeavy)('mcp-remote bridges a client of stdio through it', async () => {
    const { url, env } = await startOrigin();
    const [db, folder] = [tempStore(), tempFolder()];
    const bridge = [join(HEAVY_MODULES, 'mcp-remote/dist/proxy.js'), url];
    const client = new Client({ name: 'bridged', version: '1.0.0' });
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [
        ...[BIN, 'run', '--db', db, '--forward', url, '--', process.execPath],
        ...[...bridge, '--transport', 'http-only', '--enable-proxy'],
      ],
      env: {
        ...(process.env as Record<string, string>),
        ...environment({ ...env, MCP_REMOTE_CONFIG_DIR: folder, XDG_DATA_HOME: folder }),
      },
      stderr: 'ignore',
    });
    await client.connect(transport);
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'hi' } });
    expect(content).toEqual([{ type: 'text', text: 'Echo: hi' }]);
    await client.close();
    expectRecorded(db, url, 2);
  });
});

/** What each client trusts the server by where it goes to it directly. */
function trusting({ NODE_EXTRA_CA_CERTS: file }: Record<string, string>): Record<string, string> {
  return file === undefined ? {} : { SSL_CERT_FILE: file, CURL_CA_BUNDLE: file };
}
