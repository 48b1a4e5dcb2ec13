/** What operating a recorder takes, what an engine does, and what puts faults in, is loaded where it is asked for, and nowhere else. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { recordUrl } from '../support/http-record.ts';
import { EVERYTHING_STDIO } from '../support/kit.ts';
import { startRawClient, startSessionServer } from '../support/operations.ts';
import { inFull } from '../support/scale.ts';
import { fixture, record, tapedeck, tempFolder, tempStore, until } from '../support/tapedeck.ts';

/**
 * Where a chunk of `dist` has this, it holds a part of the admin port, of what a service manager is told, of what speaks to an engine,
 * of the forward proxy, of faults on purpose, of sampling, of what keeps no payloads, of the filter language or of what reads the
 * configuration anew: a text of each of their parts. `--log json` has no part of its own: one function writes both forms.
 */
const OURS =
  /tapedeck \$\{purpose\}|BEGINS_AS_JSON|keeps no payloads of whole sessions|To look for this text itself|not-reloaded|frames_recorded_total|ship_backlog_|the store is not open|systemd-notify|lets us do nothing|CREATE SCHEMA tapedeck|sample-judge|a CONNECT has no body|faults are put in on purpose|closed on purpose|by a fault on purpose/;

const LIBRARIES = /[\\/](?:prom-client|pg|pg-[a-z-]+|@peculiar)[\\/]/;

function telling(): { env: Record<string, string>; loaded: () => string[] } {
  const file = join(tempFolder(), 'modules');
  const env = {
    NODE_OPTIONS: `--import ${pathToFileURL(fixture('tell-modules.js')).href}`,
    MODULES_TOLD: file,
  };
  return { env, loaded: () => readFileSync(file, 'utf8').split('\n').slice(0, -1) };
}

/** Those of the modules that are ours, or libraries of ours. */
function oursAmong(urls: readonly string[]): string[] {
  expect(urls.some((url) => url.includes('/dist/'))).toBe(true);
  const files = urls.filter((url) => url.startsWith('file:')).map((url) => fileURLToPath(url));
  const own = files.filter((file) => /[\\/]dist[\\/][\w-]+\.js$/.test(file) && existsSync(file));
  return files.filter(
    (file) => LIBRARIES.test(file) || (own.includes(file) && OURS.test(readFileSync(file, 'utf8'))),
  );
}

test('a recorder by stdio loads the admin port with its option alone', async () => {
  const modulesOf = async (options: readonly string[]) => {
    const { env, loaded } = telling();
    const run = record(tempStore(), ['echo.js'], options, { env });
    run.child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    expect((await run.ended).code).toBe(0);
    return oursAmong(loaded());
  };
  expect(await modulesOf([])).toEqual([]);
  expect((await modulesOf(['--admin', '127.0.0.1:0'])).length).toBeGreaterThan(1);
  expect((await modulesOf(['--fault', 'drop p=0'])).length).toBeGreaterThan(1);
});

/** The chunks among these, without what tells one build from another. */
const names = (files: readonly string[]) =>
  [...new Set(files.map((file) => basename(file).replace(/(?:-[\w-]{8})?\.js$/, '')))].toSorted();

inFull('what leaves out sessions or payloads is loaded with its option alone', async () => {
  const modulesOf = async (...options: string[]) => {
    const { env, loaded } = telling();
    const run = record(tempStore(), ['echo.js'], options, { env });
    run.child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    expect((await run.ended).code).toBe(0);
    return names(oursAmong(loaded()));
  };
  expect(await modulesOf('--log', 'json', '--log-level', 'debug')).toEqual([]);
  expect(await modulesOf('--sample', '100%')).toEqual(['sampling']);
  expect(await modulesOf('--meta-for', 'method=ping')).toEqual(['filter', 'frame-rule', 'meta-for']);
});

inFull('and so is what reads the configuration anew, at SIGHUP alone', async () => {
  const server = await startSessionServer();
  const config = join(tempFolder(), 'production.json');
  writeFileSync(config, '{ "sample": { "rate": 0.5, "keep": "status~error" } }');
  const { env, loaded } = telling();
  const recording = await recordUrl(server.url, { env, args: ['--config', config] });
  await (await startRawClient(recording.url)).call('echo');
  const before = ['filter', 'judging', 'sample-judge', 'sampling'];
  await until('it decides', () => names(oursAmong(loaded())).length === before.length);
  expect(names(oursAmong(loaded()))).toEqual(before);
  writeFileSync(config, '{ "sample": { "metaFor": ["tool=echo"] } }');
  recording.run.child.kill('SIGHUP');
  await until('it was read', () => recording.run.stderr().includes('read anew'));
  await recording.stop();
  expect(names(oursAmong(loaded()))).toEqual([...before, 'frame-rule', 'meta-for', 'reload'].toSorted());
});

inFull('so does one by HTTP', async () => {
  const server = await startSessionServer();
  const { env, loaded } = telling();
  const recording = await recordUrl(server.url, { env });
  await (await startRawClient(recording.url)).call('echo');
  await recording.stop();
  expect(oursAmong(loaded())).toEqual([]);
});

test('what speaks to an engine is loaded by a command that does', async () => {
  const modulesOf = async (...words: string[]) => {
    const { env, loaded } = telling();
    await tapedeck(words, { env }).ended;
    return oursAmong(loaded());
  };
  expect(await modulesOf('list', '--db', tempStore())).toEqual([]);
  const modules = await modulesOf('engine', 'init', '--to', 'postgres://127.0.0.1:1/deck');
  expect(modules.filter((file) => /[\\/]pg[\\/]/.test(file))).not.toEqual([]);
  expect(modules.filter((file) => /[\\/]dist[\\/]/.test(file))).not.toEqual([]);
});

/** What `replay` loads until its client has left, or, with `--listen`, until it is stopped. */
async function replayed(...options: string[]): Promise<string[]> {
  const { env, loaded } = telling();
  const run = tapedeck(['replay', EVERYTHING_STDIO, ...options], { env });
  if (options.includes('--listen')) {
    await until('it listens', () => /listening on /.test(run.stderr()));
    run.child.kill('SIGTERM');
  }
  run.child.stdin.end();
  expect((await run.ended).code).toBe(0);
  return oursAmong(loaded());
}

const LISTEN = ['--listen', '127.0.0.1:0'];

test('a mock server loads what puts faults in with its option alone', async () => {
  expect(await replayed()).toEqual([]);
  expect((await replayed('--fault', 'drop p=0')).length).toBeGreaterThan(1);
});

inFull('so does one over HTTP, and a proxy', async () => {
  expect(await replayed(...LISTEN)).toEqual([]);
  expect((await replayed(...LISTEN, '--fault', 'drop p=0')).length).toBeGreaterThan(1);
  const server = await startSessionServer();
  const { env, loaded } = telling();
  const recording = await recordUrl(server.url, { env, args: ['--fault', 'drop p=0'] });
  await recording.stop();
  expect(oursAmong(loaded()).length).toBeGreaterThan(1);
});
