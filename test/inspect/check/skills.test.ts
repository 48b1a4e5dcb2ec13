/** Skills (SEP-2640): their entries, and their files against the recorded bytes. */
import { createHash } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import { ask, client, createSchemas, findingsOf, give, hello, modern, type Step, server } from './session.ts';

const schemas = createSchemas();
afterAll(() => schemas.close());

const SKILLS = 'io.modelcontextprotocol/skills';
const URI = 'skill://a/b/SKILL.md';

const digestOf = (bytes: string | Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const file = (bytes: string | Buffer, uri = URI) => ({
  ...{ uri, digest: digestOf(bytes), size: Buffer.byteLength(bytes) },
});
const entry = (resources: unknown, more: object = {}) => ({
  ...{ uri: URI, frontmatter: { name: 'b', description: 'd' }, resources, ...more },
});

let id = 0;

function answered(method: string, params: object, result: object): Step[] {
  id += 1;
  return [client(ask(id, method, params)), server(give(id, result))];
}
const list = (...skills: unknown[]) => answered('skills/list', {}, { skills });
const get = (skill: unknown) => answered('skills/get', { uri: URI }, { skill });
const read = (content: object, uri = URI) =>
  answered('resources/read', { uri }, { contents: [{ uri, ...content }] });

const start = (extension: unknown = { directoryRead: true }) =>
  hello('2025-11-25', {}, { resources: {}, extensions: { [SKILLS]: extension } });

function found(...said: Step[][]): string[] {
  return findingsOf({ steps: [...start(), ...said.flat()] }, schemas).map(
    ({ rule, side, seen }) => `${rule} ${side}: ${seen}`,
  );
}

const image = Buffer.from([0, 255, 128, 0x0d, 0x0a]);

test('a file is held to its digest and size, as text in UTF-8 and in base64, wherever its entry came from', () => {
  const png = file(image, 'skill://a/b/p.png');
  const both = entry([file('ünd\n'), png]);
  const blob = { blob: image.toString('base64') };
  for (const said of [list, get]) {
    expect(found(said(both), read({ text: 'ünd\n' }), read(blob, png.uri))).toEqual([]);
    const wrong = found(said(both), read({ text: 'und\n' }), read({ blob: 'AAAA' }, png.uri));
    expect(wrong).toEqual([
      expect.stringMatching(/^skill-digest server: 4 bytes of sha256:[0-9a-f]{12}…$/),
      expect.stringMatching(/^skill-digest server: 3 bytes of sha256:/),
    ]);
  }
});

test('a size that is not that of the bytes is told although the digest is right', () => {
  expect(found(list(entry([{ ...file('x'), size: 2 }])), read({ text: 'x' }))).toHaveLength(1);
});

test('files that nobody read, and files of no skill, are not judged', () => {
  expect(found(list(entry([file('x')])), read({ text: 'y' }, 'skill://a/other.md'))).toEqual([]);
  expect(found(read({ text: 'read before its entry' }), list(entry([file('x')])))).toEqual([]);
  expect(found(list(entry('dynamic')), read({ text: 'y' }))).toEqual([]);
});

test('a skill that was updated between its entry and the read is no fault, if the next entry says so', () => {
  const stale = [list(entry([file('old')])), read({ text: 'new' })];
  expect(found(...stale)).toHaveLength(1);
  expect(found(...stale, get(entry([file('new')])), read({ text: 'new' }))).toEqual([]);
  expect(found(...stale, get(entry([file('newer')])))).toHaveLength(1);
});

test('a file in which a secret was replaced is not judged', () => {
  expect(found(list(entry([file('x')])), read({ text: 'key: [redacted:jwt:0123456789ab]' }))).toEqual([]);
});

test.each([
  ['no object', 7, 'an object'],
  [
    'another file than SKILL.md',
    entry([], { uri: 'skill://a/b' }),
    'a URI that ends with /SKILL.md as `uri`',
  ],
  ['no frontmatter', entry([file('x')], { frontmatter: null }), 'an object as `frontmatter`'],
  [
    'no description',
    entry([file('x')], { frontmatter: { name: 'b' } }),
    'a string as `frontmatter.description`',
  ],
  [
    'the name of another folder',
    entry([file('x')], { frontmatter: { name: 'c', description: '' } }),
    'the name of its folder as `frontmatter.name`',
  ],
  ['no files', entry(undefined), 'a list or "dynamic" as `resources`'],
  ['files without SKILL.md', entry([file('x', 'skill://a/b/x')]), 'its own SKILL.md among `resources`'],
  [
    'a file of another skill',
    entry([file('x'), file('x', 'skill://a/c/x')]),
    'a file of this skill as `resources[1]`',
  ],
  ['a file twice', entry([file('x'), file('x')]), 'each file once'],
  [
    'a digest in capitals',
    entry([{ ...file('x'), digest: file('x').digest.toUpperCase() }]),
    'a `uri`, a `digest` and a `size` as `resources[0]`',
  ],
  [
    'a size that no file has',
    entry([{ ...file('x'), size: -1 }]),
    'a `uri`, a `digest` and a `size` as `resources[0]`',
  ],
])('an entry with %s is told of', (_, bad, expected) => {
  const findings = findingsOf({ steps: [...start(), ...list(bad)] }, schemas);
  const told = findings.filter(({ rule }) => rule === 'skill-shape');
  expect(told.map((one) => one.expected.replace(/ in (?:a skill|"[^"]*")$/, ''))).toEqual([expected]);
});

test('entries of nested skills and of any scheme are fine', () => {
  const nested = { ...file('y'), uri: 'github://o/r/b/c/SKILL.md' };
  const outer = entry([{ ...file('x'), uri: 'github://o/r/b/SKILL.md' }, nested], {
    uri: 'github://o/r/b/SKILL.md',
  });
  const inner = { uri: nested.uri, frontmatter: { name: 'c', description: '' }, resources: [nested] };
  expect(found(list(outer, inner), read({ text: 'y' }, nested.uri))).toEqual([]);
});

test('in both eras a client asks only for what the server declared', () => {
  const directory = answered('resources/directory/read', { uri: 'skill://a/b' }, { resources: [] });
  const rulesOf = (steps: Step[]) =>
    findingsOf({ steps }, schemas).map(({ rule, side }) => `${rule} ${side}`);
  expect(rulesOf([...start(), ...directory])).toEqual([]);
  expect(rulesOf([...start({}), ...directory])).toEqual(['skill-undeclared client']);
  expect(rulesOf([...list(), ...directory])).not.toContain('skill-undeclared client');
  const discovered = (capabilities: object) => [
    client(ask('d', 'server/discover', { _meta: modern() })),
    server(
      give('d', {
        ...{ resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities },
        ...{ ttlMs: 0, cacheScope: 'private' },
      }),
    ),
    client(ask('l', 'skills/list', { _meta: modern() })),
    server(give('l', { resultType: 'complete', skills: [], ttlMs: 0, cacheScope: 'private' })),
  ];
  expect(rulesOf(discovered({ resources: {} }))).toEqual(['skill-undeclared client']);
  expect(rulesOf(discovered({ extensions: { [SKILLS]: {} } }))).toEqual(['skill-undeclared server']);
  expect(rulesOf(discovered({ resources: {}, extensions: { [SKILLS]: {} } }))).toEqual([]);
});

test('results of 2026-07-28 say how long they may be kept', () => {
  const asked = (method: string, result: object) => [
    client(ask(method, method, { uri: URI, _meta: modern() })),
    server(give(method, { resultType: 'complete', ...result })),
  ];
  const steps = [
    ...asked('skills/list', { skills: [] }),
    ...asked('skills/get', { skill: entry('dynamic') }),
  ];
  expect(findingsOf({ steps }, schemas).map(({ rule }) => rule)).toEqual(['cache-hint', 'cache-hint']);
});

test('results of the extension have their members', () => {
  expect(found(answered('skills/list', {}, { skills: {} }), answered('skills/get', {}, {}))).toEqual([
    'result-shape server: {}',
    'params-shape client: nothing',
    'result-shape server: nothing',
  ]);
});

test('values of any type where entries and contents should stand are no trouble', () => {
  for (const value of [null, 7, 'x', [null], [[]], { length: 3 }, [{ uri: 7, resources: [{ uri: URI }] }]]) {
    expect(() => found(list(value), answered('skills/get', { uri: URI }, { skill: value }))).not.toThrow();
    expect(() =>
      found(list(entry(value)), answered('resources/read', { uri: URI }, { contents: value })),
    ).not.toThrow();
  }
});
