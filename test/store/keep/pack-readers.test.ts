/** Who reads by other ways than a command that prints sees of a packed store what they saw before it was packed. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { openForReading } from '../../../src/store/file/open.ts';
import {
  RECORDINGS,
  seenInDeck,
  toldToAgent,
  VIEWER_PATHS,
  wholeAnswer,
} from '../../support/other-readers.ts';
import { inFull } from '../../support/scale.ts';
import {
  fixture,
  record,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../../support/tapedeck.ts';
import { startUi, storeOf } from '../../support/ui.ts';

async function pack(db: string, sessions = RECORDINGS.length): Promise<void> {
  const { stdout } = await tapedeckInProcess(['pack', '--json', '--db', db]);
  expect(JSON.parse(stdout.toString())).toMatchObject({ sessions, remains: [] });
  const store = openForReading(db);
  const packed = store.prepare('SELECT count(*) FROM frame WHERE codec IS NOT NULL').pluck().get();
  store.close();
  expect(packed).toBeGreaterThan(sessions * 3);
}

/** A session with a server that answers whatever it is asked. */
async function recordEcho(db: string): Promise<void> {
  const call = (id: number, method: string, params: object) =>
    `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
  const clientInfo = { name: 'client', version: '1' };
  const { child, stdout, ended } = record(db, ['echo.js']);
  child.stdin.write(call(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }));
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  for (let id = 2; id < 8; id += 1)
    child.stdin.write(
      call(id, 'tools/call', { name: 'echo', arguments: { text: `call ${id} `.repeat(100) } }),
    );
  await until('all is answered', () => stdout().toString().split('\n').length === 8);
  child.stdin.end();
  expect(await ended).toMatchObject({ code: 0 });
}

inFull('the viewer answers what it answered before', async () => {
  const plain = await storeOf(...RECORDINGS);
  const packed = join(tempFolder(), 'packed.db');
  copyFileSync(plain, packed);
  await pack(packed);
  const viewers = await Promise.all([plain, packed].map((db) => startUi(db)));
  for (const path of VIEWER_PATHS) {
    const answers = () => Promise.all(viewers.map(async (ui) => wholeAnswer(ui, path)));
    let [before, after] = await answers();
    // A completion has what was found in its time.
    if (path.startsWith('/api/complete?'))
      await until(`the same values of ${path}`, async () => {
        [before, after] = await answers();
        return isDeepStrictEqual(before, after);
      });
    expect(after).toEqual(before);
  }
});

inFull('a test finds in a deck what it found before', async () => {
  const db = await storeOf(...RECORDINGS);
  const before = await seenInDeck('everything-stdio', db);
  await pack(db);
  expect(await seenInDeck('everything-stdio', db)).toEqual(before);
});

inFull('an agent is told what it was told before', async () => {
  const db = await storeOf(...RECORDINGS);
  const before = await toldToAgent(db);
  await pack(db);
  expect(await toldToAgent(db)).toEqual(before);
});

inFull('verify holds a server against it as before', async () => {
  const db = tempStore();
  await recordEcho(db);
  const verified = async () => {
    const server = ['--', process.execPath, fixture('echo.js')];
    const { code, stdout } = await tapedeckInProcess(['verify', 'latest', '--json', '--db', db, ...server]);
    return { code, text: stdout.toString().replaceAll(/"milliseconds":[\d.]+/g, '') };
  };
  const before = await verified();
  expect(before.code).toBe(0);
  expect(before.text.split('\n').length).toBeGreaterThan(5);
  await pack(db, 1);
  expect(await verified()).toEqual(before);
});

inFull('tail begins with the frames that it began with before', async () => {
  const db = tempStore();
  await recordEcho(db);
  const tailed = async () => {
    const { child, stdout, ended } = tapedeck(['tail', 'latest', '--json', '--lines', '20', '--db', db]);
    await until('it shows', () => stdout().toString().split('\n').length === 16);
    child.kill('SIGINT');
    await ended;
    return stdout().toString();
  };
  const before = await tailed();
  await pack(db, 1);
  expect(await tailed()).toBe(before);
});
