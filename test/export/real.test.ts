import { readdirSync, readFileSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openForReading, openStore } from '../../src/store/file/open.ts';
import { inFull } from '../support/scale.ts';
import {
  listSessions,
  ROOT,
  showFrames,
  start,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
} from '../support/tapedeck.ts';
import { contentOf, exportText, importText } from '../support/text-recording.ts';

const RECORDINGS = join(ROOT, 'recordings');
const NAMES = ['everything-http', 'everything-stdio', 'modern-http'];

inFull('real sessions by stdio and HTTP, of both eras, survive export and import whole', async () => {
  const db = tempStore();
  const folder = tempFolder();
  const { code, stderr } = await start(
    process.execPath,
    [join(ROOT, 'test/demo/make-recordings.js'), folder],
    {
      env: { TAPEDECK_DB: db },
    },
  ).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(readdirSync(folder).toSorted()).toEqual(NAMES.map((name) => `${name}.ndjson`));

  const recorded = openForReading(db);
  const copy = openStore(tempStore());
  for (const name of NAMES) {
    const text = readFileSync(join(folder, `${name}.ndjson`), 'utf8');
    await importText(copy, text);
    expect(exportText(copy, name)).toBe(text);
    expect(contentOf(copy, name)).toEqual(contentOf(recorded, name));
  }
  recorded.close();
  copy.close();
});

test('the commands export and import through files and pipes', async () => {
  const db = tempStore();
  const files = NAMES.map((name) => join(RECORDINGS, `${name}.ndjson`));
  const imported = await tapedeckInProcess(['import', ...files, '--db', db]);
  expect(imported).toMatchObject({ code: 0, stderr: '' });
  const ids = imported.stdout.toString().trim().split('\n');
  const listed = await listSessions(db);
  expect(listed.map(({ session }) => session).toSorted()).toEqual(ids.toSorted());
  expect(listed.map(({ name }) => name).toSorted()).toEqual(NAMES);

  const out = join(tempFolder(), 'out.ndjson');
  expect(await tapedeckInProcess(['export', 'modern-http', '--db', db, '-o', out])).toMatchObject({
    code: 0,
  });
  const text = readFileSync(out, 'utf8');
  expect(text).toBe(readFileSync(join(RECORDINGS, 'modern-http.ndjson'), 'utf8'));
  expect((await tapedeckInProcess(['export', ids[2] ?? '', '--db', db])).stdout.toString()).toBe(text);

  const piped = tapedeck(['import', '-', '--name', 'by pipe', '--db', db]);
  piped.child.stdin.end(text);
  const { code, stdout } = await piped.ended;
  expect(code).toBe(0);
  const [newest] = (await listSessions(db)).filter(({ session }) => session === stdout.toString().trim());
  expect(newest).toMatchObject({ name: 'by pipe', protocolVersion: '2026-07-28', unanswered: 0 });
  expect(await showFrames(db, 'by pipe')).toHaveLength(newest?.frames ?? 0);
});

test('the recordings that are checked in are what the format says, and name no machine', async () => {
  const store = openStore(tempStore());
  expect(
    readdirSync(RECORDINGS)
      .filter((name) => name.endsWith('.ndjson'))
      .toSorted(),
  ).toEqual(NAMES.map((name) => `${name}.ndjson`));
  for (const name of NAMES) {
    const text = readFileSync(join(RECORDINGS, `${name}.ndjson`), 'utf8');
    await importText(store, text);
    expect(exportText(store, name)).toBe(text);
    for (const place of [ROOT, homedir()]) expect(text).not.toContain(`"${place}`);
    expect(text).not.toMatch(new RegExp(`"[^"]*\\b${hostname()}\\.[a-z]`));
    expect(text).not.toMatch(/"(?:file:\/\/)?\/(?:home|root|tmp|usr|Users|work|var)\//);
  }
  store.close();
});
