import { rmSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/clients/config.ts';
import { countOwnWords } from '../../src/clients/launcher.ts';
import { meaningOf } from '../../src/clients/source.ts';
import { makeConfig, type TestConfig } from '../support/configs.ts';
import { IS_FULL, sample } from '../support/scale.ts';
import { BIG, CORPUS, type Sample } from './corpus.ts';

const toRow = ({ client, what, content }: Sample) => [`${client}: ${what}`, client, content] as const;
const SAMPLES = sample(CORPUS).map(toRow);
const ALL_SAMPLES = [...sample(CORPUS), ...(IS_FULL ? BIG : [])].map(toRow);
/** What was wrapped by hand before is not put back without the copy: nothing else tells it from what `wrap` did. */
const NOT_HANDMADE = sample(CORPUS.filter(({ what }) => !what.startsWith('wrapped by hand'))).map(toRow);

function configOf({ target, read }: TestConfig) {
  return readConfig(
    read()
      .toString()
      .replace(/^\ufeff/, ''),
    target.format,
    target.sections,
  );
}

test.each(ALL_SAMPLES)(
  '%s: wrapped and unwrapped it is byte for byte the same',
  async (title, client, content) => {
    const config = makeConfig(client, content);
    const before = config.read();
    const { rows } = await config.wrap();
    const hasWrapped = rows.some(({ outcome }) => outcome === 'wrapped');
    // There is nothing left to wrap where the only entry is wrapped already.
    expect(hasWrapped).toBe(!title.includes('wrapped by hand before, alone'));
    expect(config.read().equals(before)).toBe(!hasWrapped);
    // Whatever an entry was started with comes after tapedeck's own words, in the same order.
    const entries = configOf(config).entries;
    for (const { entry, outcome } of rows) {
      const now = entries.find(({ path }) => isDeepStrictEqual(path, entry.path));
      if (entry.server.kind !== 'stdio' || now?.server.kind !== 'stdio') continue;
      const own = countOwnWords(now.server.words);
      expect(own).toBeGreaterThan(0);
      if (outcome === 'wrapped') expect(now.server.words.slice(own)).toEqual(entry.server.words);
      else expect(now.server.words).toEqual(entry.server.words);
    }
    config.unwrap();
    expect(config.read().equals(before)).toBe(true);
    expect(config.keeper.all()).toEqual([]);
  },
);

const HANDMADE = CORPUS.filter(({ what }) => what.startsWith('wrapped by hand')).map(toRow);

test.each(HANDMADE)('%s: it is left so, unless it is named', async (_, client, content) => {
  const config = makeConfig(client, content);
  const before = config.read();
  await config.wrap();
  config.unwrap();
  expect(config.read().equals(before)).toBe(true);
  expect(config.keeper.all()).toEqual([]);
  config.unwrap(['by hand']);
  expect(config.read().toString()).not.toContain('"tapedeck"');
});

test.each(SAMPLES)('%s: wrapped twice it is wrapped once', async (_, client, content) => {
  const config = makeConfig(client, content);
  const before = config.read();
  await config.wrap();
  const once = config.read();
  const { rows } = await config.wrap();
  expect(rows.filter(({ outcome }) => outcome === 'wrapped')).toEqual([]);
  expect(config.read().equals(once)).toBe(true);
  config.unwrap();
  expect(config.read().equals(before)).toBe(true);
});

test.each(SAMPLES)('%s: wrapped one by one and unwrapped one by one', async (_, client, content) => {
  const config = makeConfig(client, content);
  const before = config.read();
  const names = [...new Set(configOf(config).entries.map(({ name }) => name))];
  for (const name of names) await config.wrap([name]);
  const wrapped = config.read();
  config.unwrap();
  expect(config.read().equals(before)).toBe(true);
  await config.wrap();
  expect(config.read().equals(wrapped)).toBe(true);
  // What was wrapped by hand before is not asked for.
  const handmade = ['by hand', 'by npx'];
  for (const name of names.toReversed()) if (!handmade.includes(name)) config.unwrap([name]);
  expect(config.read().equals(before)).toBe(true);
});

test.each(NOT_HANDMADE)('%s: without the copy it means the same afterwards', async (_, client, content) => {
  const config = makeConfig(client, content);
  const meaning = (one: TestConfig) => meaningOf(configOf(one).root, new Set());
  const meant = meaning(config);
  await config.wrap();
  for (const { file } of config.keeper.all()) {
    rmSync(`${config.keeper.folderOf(file)}/original.${config.target.format}`);
  }
  config.unwrap();
  const emptyLists = /\[\s*\["args",\s*\{"list":\[\]\}\]|,\["args",\{"list":\[\]\}\]/g;
  const withoutEmpty = (value: unknown) => JSON.stringify(value).replaceAll(emptyLists, '');
  expect(withoutEmpty(meaning(config))).toBe(withoutEmpty(meant));
});
