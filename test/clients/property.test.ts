import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/clients/config.ts';
import { applyTextEdits, unwrapEdits, wrapEdits } from '../../src/clients/edits.ts';
import { countOwnWords, wrappedWords } from '../../src/clients/launcher.ts';
import { makeConfig } from '../support/configs.ts';
import { scale } from '../support/scale.ts';

/** What may stand between two tokens of JSON with comments. */
const gap = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('', ' ', '\n', '\n  ', '\t', '\r\n    ', '\n\n') },
  { weight: 1, arbitrary: fc.constantFrom('/* c */', '// [c] {"\n', ' /* "a": 1, */ ', '//\r\n') },
);

/** A value's source, with random gaps, trailing commas and escapes. */
function sourceOf(value: fc.JsonValue): fc.Arbitrary<string> {
  if (Array.isArray(value)) return listOf(value.map(sourceOf), '[', ']');
  if (value !== null && typeof value === 'object') {
    const members = Object.entries(value).map(([key, one]) => memberOf(key, sourceOf(one as fc.JsonValue)));
    return listOf(members, '{', '}');
  }
  return fc.constant(JSON.stringify(value));
}

function memberOf(key: string, value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(gap, gap, value).map(([a, b, source]) => `${JSON.stringify(key)}${a}:${b}${source}`);
}

function listOf(items: fc.Arbitrary<string>[], open: string, close: string): fc.Arbitrary<string> {
  const parts = fc.tuple(...items.map((item) => fc.tuple(gap, item, gap)));
  return fc.tuple(parts, gap, fc.boolean()).map(([all, last, hasComma]) => {
    const comma = hasComma && all.length > 0 ? ',' : '';
    return open + all.map(([a, item, b]) => a + item + b).join(',') + comma + last + close;
  });
}

const word = fc.oneof(
  fc.string({ minLength: 1, unit: 'binary' }),
  fc.constantFrom('npx', '--', 'record', '-y'),
);
const command = word.filter((text) => text.trim() !== '');
const stdio = fc.record(
  { command, args: fc.array(word), env: fc.jsonValue() },
  { requiredKeys: ['command'] },
);
const url = fc.record({
  type: fc.constant('http'),
  url: fc.webUrl({ withQueryParameters: true, withFragments: true }),
});
const servers = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.oneof(stdio, stdio, url, fc.jsonValue()), {
  noNullPrototype: true,
});
const content = fc
  .record({ before: fc.jsonValue(), mcpServers: servers, after: fc.jsonValue() }, { noNullPrototype: true })
  .chain((value) => fc.tuple(fc.constantFrom('', '\ufeff'), gap, sourceOf(value as fc.JsonValue), gap))
  .map((parts) => parts.join(''));

test('any JSON with comments is the same after wrapping and unwrapping', async () => {
  await fc.assert(
    fc.asyncProperty(content, async (text) => {
      const config = makeConfig('cursor', text);
      await config.wrap();
      config.unwrap();
      expect(config.read().toString()).toBe(text);
    }),
    { numRuns: scale(300) },
  );
});

test('whatever is not a command or its arguments keeps its bytes, and undoing needs no copy', () => {
  fc.assert(
    fc.property(content, command, (text, launcher) => {
      const source = text.replace(/^\ufeff/, '');
      const { entries } = readConfig(source, 'json', [['mcpServers']]);
      for (const { name, path, server } of entries) {
        if (server.kind !== 'stdio' || countOwnWords(server.words) > 0) continue;
        const own = wrappedWords([launcher, 'tapedeck'], name, null, []);
        const wrapped = applyTextEdits(source, wrapEdits(source, server, own));
        // Taking the launcher's words out of the text again leaves the text.
        const again = readConfig(wrapped, 'json', [['mcpServers']]).entries.find(
          (entry) => JSON.stringify(entry.path) === JSON.stringify(path),
        );
        expect(again?.server.kind).toBe('stdio');
        if (again?.server.kind !== 'stdio') continue;
        expect(again.server.words).toEqual([...own, ...server.words]);
        const undo = unwrapEdits(wrapped, again.server, own.length, server.args !== null);
        expect(applyTextEdits(wrapped, undo)).toBe(source);
      }
    }),
    { numRuns: scale(300) },
  );
});

const tomlGap = fc.constantFrom('', ' ', '\t');
const tomlBreak = fc.constantFrom('\n', '\r\n', ' # c = [1]\n', '\n\n# [mcp_servers.x]\n');
const tomlString = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1 }).map((text) => JSON.stringify(text).replaceAll('\u007f', '')),
  fc.constantFrom("'npx'", "'C:\\x y'", '"""two\nlines"""', "'''a'b'''", '"\\u0041"'),
);
const tomlList = fc
  .tuple(fc.array(fc.tuple(tomlGap, tomlString, tomlGap)), fc.boolean(), tomlBreak, fc.boolean())
  .map(([items, isTall, lineBreak, hasComma]) => {
    const between = isTall ? lineBreak : '';
    const comma = hasComma && items.length > 0 ? ',' : '';
    return `[${between}${items.map(([a, item, b]) => a + item + b).join(`,${between}`)}${comma}${between}]`;
  });
const tomlPairs = fc
  .record({ command: tomlString, args: fc.option(tomlList), isFirst: fc.boolean(), extra: tomlString })
  .map(({ command: source, args, isFirst, extra }) => {
    const list = args === null ? [] : [['args', args] as const];
    const pairs = [['command', source] as const, ['extra', extra] as const];
    return isFirst ? [...list, ...pairs] : [...pairs, ...list];
  });
const tomlServer = fc
  .tuple(
    fc.string({ unit: 'grapheme' }),
    tomlPairs,
    fc.constantFrom('table', 'dotted', 'inline'),
    tomlGap,
    tomlBreak,
  )
  .map(([name, pairs, form, space, lineBreak]) => {
    const key = JSON.stringify(name).replaceAll('\u007f', '');
    const isTall = pairs.some(([, source]) => source.includes('\n'));
    if (form === 'inline' && !isTall) {
      return {
        name,
        text: `${key} = { ${pairs.map(([k, v]) => `${k}${space}=${v}`).join(' , ')} }${lineBreak}`,
      };
    }
    if (form === 'dotted') {
      return { name, text: pairs.map(([k, v]) => `${space}${key}.${k} = ${v}${lineBreak}`).join('') };
    }
    const lines = pairs.map(([k, v]) => `${space}${k} =${space}${v}${lineBreak}`).join('');
    return { name, table: `[mcp_servers.${key}]${lineBreak}${lines}` };
  });
const toml = fc.uniqueArray(tomlServer, { selector: ({ name }) => name }).map((all) => {
  const dotted = all.flatMap((one) => one.text ?? []).join('');
  const tables = all.flatMap((one) => one.table ?? []).join('');
  return `model = "m" # é\n[mcp_servers]\n${dotted}${tables}[last]\nx = 1`;
});

test('any TOML is the same after wrapping and unwrapping', async () => {
  await fc.assert(
    fc.asyncProperty(toml, async (text) => {
      const config = makeConfig('codex', text);
      const { rows } = await config.wrap();
      expect(rows.every(({ outcome }) => outcome !== 'unchanged')).toBe(true);
      config.unwrap();
      expect(config.read().toString()).toBe(text);
    }),
    { numRuns: scale(300) },
  );
});
