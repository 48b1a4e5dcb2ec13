import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseFilter } from '../../../src/inspect/filter/filter.ts';
import { eachHit, type SearchHit } from '../../../src/inspect/search.ts';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { createSearchIndex } from '../../../src/store/keep/search-index.ts';
import { forgetSessions, openSideFile, scrubSideFile } from '../../../src/store/keep/side-file.ts';
import { eachFrame } from '../../../src/store/read/frames.ts';
import { inFull, scale } from '../../support/scale.ts';
import { tempStore } from '../../support/tapedeck.ts';
import { importText } from '../../support/text-recording.ts';

/** A session whose frames are lines of stderr. Gives its id. */
function addSession(
  store: Store,
  lines: readonly string[],
  startedAt = '2026-11-20T10:00:00.000000Z',
): Promise<string> {
  const session = { basis: 'stdio-process', transport: 'stdio', target: 'x', command: ['x'], startedAt };
  const frames = lines.map((text) => JSON.stringify({ ms: 1, channel: 'stderr', text }));
  return importText(store, [JSON.stringify({ tapedeck: 1, session }), ...frames, ''].join('\n'));
}

/** The texts that are found with the index, brought up to date before. */
function find(store: Store, filter: string, limit = Number.POSITIVE_INFINITY): string[] {
  const side = openSideFile(store);
  const index = createSearchIndex(side, store);
  for (const _ of index.catchUp());
  const found = textsOf(store, [...eachHit(store, parseFilter(filter, 0), index, limit, () => {})]);
  side.close();
  return found;
}

/** The same, all frames read. */
function scan(store: Store, filter: string): string[] {
  const all = eachHit(store, parseFilter(filter, 0), null, Number.POSITIVE_INFINITY, () => {});
  return textsOf(store, [...all]);
}

function textsOf(store: Store, findings: readonly SearchHit[]): string[] {
  return findings.flatMap(({ session, only }) =>
    [...eachFrame(store, session, only)].map(({ payload }) => payload.toString()),
  );
}

function indexedBytes(store: Store): Buffer {
  const ends = ['', '-wal'].map((end) => `${store.name}.index${end}`).filter((file) => existsSync(file));
  return Buffer.concat(ends.map((file) => readFileSync(file)));
}

test.each([
  ['tape', ['a Tape_deck/path.ts']],
  ['TAPE_DECK', ['a Tape_deck/path.ts']],
  ['deck/path.t', ['a Tape_deck/path.ts']],
  ['日本', ['ここは日本です']],
  ['日', ['ここは日本です']],
  ['です', ['ここは日本です']],
  ['ὁδός', ['ὉΔΌΣ']],
  ['straße', ['STRASSE Straße']],
  ['ts', ['a Tape_deck/path.ts']],
  ['"say \\"hi\\""', ['she did say "hi" \0 twice']],
  ['twice', ['she did say "hi" \0 twice']],
  ['nowhere', []],
  ['tape path', ['a Tape_deck/path.ts']],
  ['tape 日本', []],
  ['(nowhere or 日本) not tape', ['ここは日本です']],
  ['text~/t.pe/i', ['a Tape_deck/path.ts']],
])('searching %s finds %j', async (filter, texts) => {
  const store = openStore(tempStore());
  await addSession(store, ['a Tape_deck/path.ts', 'ここは日本です', 'ὉΔΌΣ', 'STRASSE Straße']);
  await addSession(store, ['she did say "hi" \0 twice', '']);
  expect(find(store, filter)).toEqual(texts);
  store.close();
});

test('the index never misses what reading all frames finds', { timeout: 60_000 }, async () => {
  const piece = fc.constantFrom(
    'a',
    'B',
    'ab',
    'é',
    'É',
    'İ',
    'ß',
    '日',
    '本',
    'Σ',
    'ς',
    ' ',
    '_',
    '😀',
    '"',
    '\0',
    'abc',
  );
  const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''));
  const word = fc
    .array(piece, { minLength: 1, maxLength: 4 })
    .map((pieces) => pieces.join('').replaceAll('\0', 'n'));
  await fc.assert(
    fc.asyncProperty(
      fc.array(text, { minLength: 1, maxLength: 12 }),
      fc.array(word, { minLength: 8, maxLength: 8 }),
      async (texts, words) => {
        const store = openStore(tempStore());
        await addSession(store, texts);
        for (const one of words) {
          const filter = `"${one.replaceAll('"', '\\"')}"`;
          expect(find(store, filter), filter).toEqual(scan(store, filter));
        }
        store.close();
      },
    ),
    { numRuns: scale(25, 6) },
  );
});

test('what came since the last search is found, the newest first, and not more than asked for', async () => {
  const store = openStore(tempStore());
  await addSession(store, ['needle one', 'hay'], '2026-11-20T10:00:00.000000Z');
  expect(find(store, 'needle')).toEqual(['needle one']);
  await addSession(store, ['needle two', 'needle three'], '2026-11-20T11:00:00.000000Z');
  expect(find(store, 'needle')).toEqual(['needle two', 'needle three', 'needle one']);
  expect(find(store, 'needle', 1)).toEqual(['needle three']);
  store.close();
});

test('a frame that is stored in parts is found, wherever the text stands in it', async () => {
  const store = openStore(tempStore());
  const large = `${'x'.repeat(1024 * 1024 - 3)}needle${'y'.repeat(1024 * 1024)}`;
  await addSession(store, ['hay', large]);
  expect(find(store, 'needle')).toEqual([large]);
  store.close();
});

test('the index is private, and holds no text', async () => {
  const store = openStore(tempStore());
  await addSession(store, ['the secret word is swordfish']);
  expect(find(store, 'swordfish')).toHaveLength(1);
  expect(statSync(`${store.name}.index`).mode & 0o777).toBe(0o600);
  expect(indexedBytes(store).includes('swordfish')).toBe(false);
  store.close();
});

test('of a session that is forgotten not even three characters stay behind', async () => {
  const store = openStore(tempStore());
  await addSession(store, ['plain text']);
  const id = await addSession(store, ['zqj']);
  expect(find(store, 'zqj')).toEqual(['zqj']);
  expect(indexedBytes(store).includes('zqj')).toBe(true);
  forgetSessions(store, [id]);
  scrubSideFile(store);
  expect(indexedBytes(store).includes('zqj')).toBe(false);
  expect(find(store, 'plain')).toEqual(['plain text']);
  // It is still in the store, and so comes back with the next search.
  expect(find(store, 'zqj')).toEqual(['zqj']);
  store.close();
});

test('sessions that are gone are forgotten, whoever did not say so, and only they', async () => {
  const store = openStore(tempStore());
  await addSession(store, ['kept']);
  const id = await addSession(store, ['zqj', 'zqj again']);
  find(store, 'zqj');
  store.pragma('foreign_keys = ON');
  store.prepare('DELETE FROM session WHERE id = ?').run(id);
  // The number and the rowids of what is gone are given again.
  await addSession(store, ['other', 'words']);
  expect(find(store, 'words')).toEqual(['words']);
  expect(find(store, 'zqj')).toEqual([]);
  expect(find(store, 'kept')).toEqual(['kept']);
  const side = openSideFile(store);
  expect(side.prepare('SELECT count(*) FROM covered').pluck().get()).toBe(2);
  expect(side.prepare('SELECT count(*) FROM gram').pluck().get()).toBe(3);
  side.close();
  scrubSideFile(store);
  expect(indexedBytes(store).includes('zqj')).toBe(false);
  store.close();
});

inFull(
  'a session that was recorded in turns with another is forgotten, however many turns they took',
  {
    timeout: 30_000,
  },
  async () => {
    const store = openStore(tempStore());
    const ids = [await addSession(store, ['zqj']), await addSession(store, ['other'])];
    store.exec(
      `WITH RECURSIVE turn (n) AS (SELECT 4 UNION ALL SELECT n + 1 FROM turn WHERE n < 80000)
     INSERT INTO frame (session, seq, at, channel, size, payload)
     SELECT n % 2 + 1, n, 1, 'stderr', 5, CAST(printf('%05d', n) AS BLOB) FROM turn ORDER BY n`,
    );
    find(store, 'other');
    forgetSessions(store, ids.slice(0, 1));
    const side = openSideFile(store);
    const covered = side.prepare('SELECT session FROM covered').pluck().all();
    const frames = store.prepare('SELECT rowid FROM frame WHERE session = 2 ORDER BY 1').pluck().all();
    expect(covered).toEqual(ids.slice(1));
    expect(side.prepare('SELECT rowid FROM gram ORDER BY 1').pluck().all()).toEqual(frames);
    side.close();
    store.close();
  },
);

test('an index that is damaged, foreign or gone is made anew', async () => {
  const store = openStore(tempStore());
  await addSession(store, ['needle']);
  find(store, 'needle');
  writeFileSync(
    `${store.name}.index`,
    'no database at all, but long enough to be looked at as if it were one',
  );
  for (const end of ['-wal', '-shm']) rmSync(`${store.name}.index${end}`, { force: true });
  expect(find(store, 'needle')).toEqual(['needle']);
  const side = openSideFile(store);
  side.pragma('user_version = 99');
  side.close();
  expect(find(store, 'needle')).toEqual(['needle']);
  rmSync(`${store.name}.index`);
  expect(find(store, 'needle')).toEqual(['needle']);
  store.close();
});
