/** An engine beyond loopback must be the one that it claims to be. These ask 127.0.0.1 as if it were one. */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { connectEngine, readAddress } from '../../src/engine/connect.ts';
import { withEngine } from '../support/engine.ts';
import { startPostgres } from '../support/postgres.ts';
import { inFull } from '../support/scale.ts';
import { tapedeckInProcess, tempFolder } from '../support/tapedeck.ts';

const CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' });
}

/** An authority, and what signs with it: the paths of a key and a certificate for these names. */
function newAuthority(
  folder: string,
  name: string,
): { ca: string; sign(names: string): { key: string; cert: string } } {
  const [ca, caKey] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  openssl('req', '-x509', ...CURVE, '-days', '2', '-subj', `/CN=${name}`, '-keyout', caKey, '-out', ca);
  let count = 0;
  return {
    ca,
    sign(names) {
      count += 1;
      const [key, request, cert, extra] = ['key', 'csr', 'crt', 'ext'].map((end) =>
        join(folder, `${name}-${count}.${end}`),
      ) as [string, string, string, string];
      openssl('req', ...CURVE, '-subj', '/CN=engine', '-keyout', key, '-out', request);
      writeFileSync(extra, `subjectAltName=${names}\n`);
      openssl(
        'x509',
        '-req',
        '-in',
        request,
        '-CA',
        ca,
        '-CAkey',
        caKey,
        '-CAcreateserial',
        '-days',
        '2',
        '-extfile',
        extra,
        '-out',
        cert,
      );
      return { key, cert };
    },
  };
}

withEngine('a certificate', () => {
  inFull('is taken if it is of a known authority and of this name, and refused otherwise', async () => {
    const folder = tempFolder();
    const [ours, theirs] = [newAuthority(folder, 'ours'), newAuthority(folder, 'theirs')];
    const server = await startPostgres({ auth: 'scram-sha-256' });
    onTestFinished(server.remove);
    server.sql("CREATE ROLE host1 LOGIN PASSWORD 'planted-password'");
    const use = async ({ key, cert }: { key: string; cert: string }) => {
      for (const [from, to] of [
        [key, 'server.key'],
        [cert, 'server.crt'],
      ] as const) {
        copyFileSync(from, join(server.data, to));
        chmodSync(join(server.data, to), 0o600);
        server.own(join(server.data, to));
      }
      server.sql('ALTER SYSTEM SET ssl = on');
      server.sql('SELECT pg_reload_conf()');
      // New connections have it once the server has read it.
      await expect.poll(() => server.sql('SHOW ssl')).toBe('on');
    };
    const passwords = join(folder, 'passwords');
    writeFileSync(passwords, `*:*:*:host1:planted-password\n`, { mode: 0o600 });
    const env = { PGPASSFILE: passwords, PGSSLROOTCERT: ours.ca };
    const url = server.url('postgres', 'host1');
    const verified = `${url}?sslmode=verify-full`;
    const run = async (address: string, more: Record<string, string> = env) =>
      (await tapedeckInProcess(['engine', 'migrate', '--to', address], { env: more })).stderr;

    expect(await run(verified)).toMatch(/lets us do nothing: The server does not support SSL/);
    await use(ours.sign('IP:127.0.0.1,DNS:localhost'));
    await expect.poll(() => run(verified)).toContain('is not set up yet');
    const client = await connectEngine(readAddress(verified, env));
    const { rows } = await client.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()');
    expect(rows).toEqual([{ ssl: true }]);
    await client.end();

    const strangers = { ...env, PGSSLROOTCERT: theirs.ca };
    expect(await run(verified, strangers)).toMatch(/lets us do nothing: .*PGSSLROOTCERT names the authority/);
    expect(await run(verified, { PGPASSFILE: passwords })).toMatch(/PGSSLROOTCERT names the authority/);
    expect(await run(`${url}?sslmode=require`, strangers)).toContain('is not set up yet');
    await use(ours.sign('IP:192.0.2.1,DNS:engine.example'));
    await expect.poll(() => run(verified)).toMatch(/does not match certificate's altnames/);
    expect(await run(verified.replace('127.0.0.1', 'localhost'))).toMatch(
      /does not match certificate's altnames/,
    );

    writeFileSync(passwords, `*:*:*:host1:another\n`);
    expect(await run(`${url}?sslmode=require`)).toMatch(
      /lets us do nothing: password authentication failed .*28P01/,
    );
  });
});
