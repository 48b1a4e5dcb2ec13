import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request } from 'node:https';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Certificate, makeCertificate } from '../support/certificate.ts';
import { listenOn, readBody, startProxy, startServer } from '../support/http.ts';
import { ROOT } from '../support/tapedeck.ts';

async function startTlsServer(certificate: Certificate): Promise<string> {
  const server = createServer(certificate, (req: IncomingMessage, res: ServerResponse) => {
    res.end(`secret ${req.url}`);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://localhost:${await listenOn(server)}`;
}

test('an upstream whose certificate nobody vouches for is not reached', async () => {
  const upstream = await startTlsServer(makeCertificate());
  const { capture, waitFor } = await startProxy(upstream);
  const answer = await fetch(capture.url);
  expect(answer.status).toBe(502);
  expect(await answer.text()).toBe(
    `tapedeck: cannot reach ${upstream}: self-signed certificate; start tapedeck with NODE_EXTRA_CA_CERTS=<its CA's file>, or with --insecure\n`,
  );
  expect(await waitFor('end')).toMatchObject({ closedBy: 'proxy' });
});

test('it is reached where one asks for insecurity', async () => {
  const { capture } = await startProxy(await startTlsServer(makeCertificate()), { isInsecure: true });
  expect(await (await fetch(capture.url)).text()).toBe('secret /');
});

test('it is reached where NODE_EXTRA_CA_CERTS vouches for it', async () => {
  const certificate = makeCertificate();
  const upstream = await startTlsServer(certificate);
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: certificate.file };
  const proxy = spawn(process.execPath, [join(ROOT, 'test/fixtures/http-proxy.js'), `${upstream}/mcp`], {
    env,
  });
  onTestFinished(() => void proxy.kill());
  const [line] = (await once(proxy.stdout, 'data')) as [Buffer];
  const url = line.toString().trim();
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
  expect(await (await fetch(url)).text()).toBe('secret /mcp');
  proxy.stdin.end();
  expect(await once(proxy, 'exit')).toEqual([0, null]);
});

test('the proxy itself listens with TLS', async () => {
  const certificate = makeCertificate();
  const upstream = await startServer((_req, res) => {
    res.writeHead(302, { Location: `${upstream.url}/next` }).end('plain');
  });
  const { capture, waitFor } = await startProxy(upstream.url, { tls: certificate });
  expect(capture.url.protocol).toBe('https:');
  const call = request(capture.url, { ca: certificate.cert }).end();
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  expect(answer.headers.location).toBe(`${capture.url.origin}/next`);
  expect((await readBody(answer)).toString()).toBe('plain');
  expect(await waitFor('end')).toMatchObject({ closedBy: 'server' });
});
