/** What providers refuse is a note: once for each tool and provider, however large or hostile a schema is. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { PROVIDER_RULES } from '../../../src/inspect/check/beyond/provider-rules.ts';
import { isOfProvider } from '../../../src/inspect/check/rules.ts';
import { ROOT } from '../../support/tapedeck.ts';
import { listed, tool } from './cases-providers.ts';
import { createSchemas, findingsOf, type Script } from './session.ts';

const schemas = createSchemas();
afterAll(() => schemas.close());

function notesOf(script: Script): string[] {
  const found = findingsOf(script, schemas).filter(({ rule }) => isOfProvider(rule));
  return found.map(({ rule, expected, seen }) => `${rule}: ${expected}: ${seen}`);
}

test('of several rules of one provider the first is told, and the others are named', () => {
  const both = tool('a.b', { 'x y': { type: 'array', exclusiveMinimum: 1, not: {} } }, { oneOf: [{}] });
  expect(notesOf(listed(both)).map((note) => note.replace(/: expected.*/, ''))).toEqual([
    'openai-name: "a.b" named by at most 64 of these characters: "."; against openai-top-level, openai-array-items, openai-strict too',
    'anthropic-name: "a.b" named by at most 128 of these characters: "."; against anthropic-top-level, anthropic-property too',
    'gemini-keyword: "a.b" with the keywords of that `Schema` alone: `oneOf` at the top level, and 2 more',
  ]);
});

test('a tool is told of once in a session, however often it is listed', () => {
  const { steps } = listed(tool('a.b'));
  const again = steps.slice(3);
  expect(notesOf({ steps: [...steps, ...again, ...again] })).toHaveLength(2);
});

test('schemas of any depth, width and circle of references take a bounded time', () => {
  let deep: object = { type: 'array' };
  for (let i = 0; i < 200; i += 1) deep = { type: 'object', properties: { a: deep } };
  const circle = { $ref: '#/properties/a', properties: { a: { $ref: '#' } }, anyOf: [{ $ref: '#' }] };
  const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`p${i}`, { const: i }]));
  const notes = notesOf(listed(tool('deep', { deep }), tool('circle', { circle }), tool('wide', wide)));
  expect(notes.map((note) => note.split(':')[0])).toEqual(['openai-array-items', 'gemini-keyword']);
  expect(notes[0]).toContain(`no \`items\` at /properties/deep/properties/a/properties/a`);
});

test('values of any type where a schema should stand are no trouble', () => {
  for (const value of [null, 7, 'x', [], [[]], true, { a: null }])
    expect(() =>
      notesOf(
        listed({ name: 'odd', inputSchema: value as object }, tool('odd-2', { a: value }, { items: value })),
      ),
    ).not.toThrow();
});

test('the docs list every rule of a provider with its source', () => {
  const page = readFileSync(join(ROOT, 'docs/looking.md'), 'utf8');
  for (const [id, { provider, source }] of Object.entries(PROVIDER_RULES)) {
    const row = page.split('\n').find((line) => line.startsWith(`| \`${id}\``));
    expect(row, id).toContain(provider);
    expect(row, id).toContain(source);
  }
});
