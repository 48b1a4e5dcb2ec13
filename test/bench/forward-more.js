// What of the forward proxy has no counterpart in our reverse proxy: TLS on both sides, against the bare library with TLS on both sides;
// and tunnels whose bytes nobody looks at, against a proxy that does nothing but tunnels.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { ratioRow } from './figures.js';
import { countRecorded, measure, openTunnel, TAPEDECK } from './forward.js';
import { startProgram, UPSTREAM } from './http-contestants.js';
import { removeStore } from './stdio.js';

const here = import.meta.dirname;
const BARE_TLS = [process.execPath, join(here, 'http-relay.js')];
const ENDS = [process.execPath, join(here, 'tunnel-ends.js')];
const TUNNEL_BYTES = 512 * 1024 * 1024;

/** Rows without a bound: the contract has none for them. */
export async function benchForwardTls(folder, { httpRounds, httpSeconds, progress }) {
  const { key, cert } = makeCertificate(folder);
  const store = join(folder, 'forward-tls.db');
  const env = { XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder, NODE_EXTRA_CA_CERTS: cert };
  const results = { bare: {}, forward: {} };
  let [asked, recorded] = [0, 0];
  const upstream = await startProgram([...UPSTREAM, key, cert]);
  const url = upstream.url.replace('http:', 'https:');
  const runs = {
    bare: async () => {
      const relay = await startProgram([...BARE_TLS, url, key, cert], env);
      const agent = () => new Agent({ keepAlive: true, ca: readFileSync(cert) });
      return { program: relay, url: relay.url.replace('http:', 'https:'), agent };
    },
    forward: async () => {
      const words = ['--forward', url, '--listen', '127.0.0.1:0', '--db', store];
      const proxy = await startProgram([...TAPEDECK, ...words], env);
      const [command, file] = TAPEDECK;
      const ca = execFileSync(command, [file, 'ca', '--print'], { env: { ...process.env, ...env } });
      return { program: proxy, url, agent: () => agentThrough(proxy.url, ca) };
    },
  };
  try {
    for (let round = 0; round < httpRounds; round += 1) {
      progress(`forward with TLS, round ${round + 1} of ${httpRounds}`);
      const names = Object.keys(runs);
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const { program, url: target, agent } = await runs[name]();
        const figures = await measure(target, agent, program.processor, httpSeconds);
        await program.stop();
        collect(results[name], figures);
        if (name === 'bare') continue;
        asked += figures.requests;
        recorded += countRecorded(store);
        removeStore(store);
      }
    }
  } finally {
    await upstream.stop();
  }
  const rows = ['one', 'many'].flatMap((name) => {
    const what = `forward proxy, TLS on both sides, ${name === 'one' ? '1 connection' : '32 connections'}`;
    const of = { yardstick: 'httpxy with TLS on both sides' };
    const row = (figure, unit, text) =>
      ratioRow(`${what}: ${text}`, results.forward[figure], results.bare[figure], of, unit);
    return [
      row(`${name}Rate`, 'req/s', 'requests/s'),
      row(`${name}Processor`, 'µs', 'processor time a request'),
    ];
  });
  const loss = `Lost with TLS in these runs: ${asked - recorded} of ${asked.toLocaleString('en-US')} requests`;
  return { loss, rows: asked === recorded ? rows : rows.map((row) => ({ ...row, met: 'LOST' })) };
}

export async function benchTunnel(folder, { httpRounds, progress }) {
  const store = join(folder, 'tunnel.db');
  const results = { bare: {}, forward: {} };
  const source = await startProgram([...ENDS, 'source', String(TUNNEL_BYTES)]);
  // Nothing is asked of it: what is not named is what is tunnelled.
  const named = ['--forward', 'http://127.0.0.1:9/mcp', '--listen', '127.0.0.1:0', '--db', store];
  const commands = { bare: [...ENDS, 'bare'], forward: [...TAPEDECK, ...named] };
  try {
    for (let round = 0; round < httpRounds; round += 1) {
      progress(`tunnel round ${round + 1} of ${httpRounds}`);
      const names = Object.keys(commands);
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const proxy = await startProgram(commands[name]);
        const before = proxy.processor();
        const rate = await drain(proxy.url, source.url);
        collect(results[name], {
          rate,
          processor: (proxy.processor() - before) / (TUNNEL_BYTES / 1024 / 1024),
        });
        await proxy.stop();
        removeStore(store);
      }
    }
  } finally {
    await source.stop();
  }
  const of = { yardstick: 'a proxy of tunnels alone' };
  return [
    ratioRow('forward proxy, a blind tunnel', results.forward.rate, results.bare.rate, of, 'MB/s'),
    ratioRow(
      'forward proxy, a blind tunnel: processor time a MB',
      results.forward.processor,
      results.bare.processor,
      of,
      'µs',
    ),
  ];
}

/** Megabytes a second through one tunnel, until all has come. */
async function drain(proxyUrl, targetUrl) {
  const socket = await openTunnel(proxyUrl, new URL(targetUrl).host);
  const began = performance.now();
  let bytes = 0;
  for await (const chunk of socket) bytes += chunk.length;
  if (bytes !== TUNNEL_BYTES) throw new Error(`Expected ${TUNNEL_BYTES} bytes by the tunnel, got ${bytes}.`);
  return bytes / 1024 / 1024 / ((performance.now() - began) / 1000);
}

/** One whose connections have TLS inside a tunnel of the proxy. */
function agentThrough(proxyUrl, ca) {
  const agent = new Agent({ keepAlive: true });
  agent.createConnection = ({ host, port }, done) => {
    openTunnel(proxyUrl, `${host}:${port}`).then(
      (socket) => done(null, connectTls({ socket, ca, host })),
      (error) => done(error),
    );
  };
  return agent;
}

function collect(result, figures) {
  for (const [figure, value] of Object.entries(figures)) {
    result[figure] ??= [];
    result[figure].push(value);
  }
}

function makeCertificate(folder) {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', ...kind, ...names, '-keyout', key, '-out', cert], {
    stdio: 'pipe',
  });
  return { key, cert };
}
