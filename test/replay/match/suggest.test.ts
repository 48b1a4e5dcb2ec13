import fc from 'fast-check';
import { expect, test } from 'vitest';
import { suggestIgnores } from '../../../src/replay/match/suggest.ts';
import { call, keyOf, smallArguments } from '../../support/replay.ts';

test('what differs between two runs of a scenario is suggested, with counts', () => {
  const run = (stamp: number, ids: string[]) => [
    keyOf('tools/list'),
    call('now', { city: 'Bern', stamp }),
    call('now', { city: 'Lima', stamp: stamp + 1 }),
    call('put', { items: ids.map((id) => ({ id, kind: 'a longer text that stays' })) }),
    call('same', { x: 1 }),
    keyOf('prompts/get', { name: 'p', _meta: { 'com.example/run': stamp } }),
  ];
  const { suggestions, unpaired } = suggestIgnores(run(1000, ['a', 'b']), run(2000, ['c', 'd']));
  expect(suggestions.map(({ option, differing, pairs }) => [option, differing, pairs])).toEqual([
    ["--ignore-tool 'now:$.stamp'", 2, 2],
    ["--ignore-tool 'put:$.items[*].id'", 1, 1],
    ['--ignore \'$._meta["com.example/run"]\'', 1, 1],
  ]);
  expect(suggestions[0]?.example).toEqual({ first: '1000', second: '2000' });
  expect(unpaired).toEqual({ first: 0, second: 0 });
});

test('calls in another order are paired by likeness, and those without a counterpart are counted', () => {
  const city = (name: string, stamp: number) => call('now', { city: name, stamp });
  const { suggestions, unpaired } = suggestIgnores(
    [city('Amsterdam', 1), city('Bratislava', 2), city('Chelyabinsk', 3)],
    [city('Bratislava', 8), city('Amsterdam', 9)],
  );
  expect(suggestions.map(({ option, differing }) => [option, differing])).toEqual([
    ["--ignore-tool 'now:$.stamp'", 2],
  ]);
  expect(unpaired).toEqual({ first: 1, second: 0 });
});

test('equal recordings suggest nothing, whatever their order', () => {
  fc.assert(
    fc.property(fc.array(smallArguments, { maxLength: 8 }), (all) => {
      const keys = all.map((args) => call('t', args));
      expect(suggestIgnores(keys, keys.toReversed())).toEqual({
        suggestions: [],
        unpaired: { first: 0, second: 0 },
        isCut: false,
      });
    }),
  );
});
