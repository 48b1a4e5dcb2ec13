import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { parseSync } from 'rolldown/utils';
import { expect, test } from 'vitest';
import { ROOT } from './support/tapedeck.ts';

const SRC = join(ROOT, 'src');

/**
 * What each room may import from, besides itself and errors.ts. A file belongs to the longest prefix of its path that stands
 * here; so does the file that it imports. Types count. A name on the right covers its sub-rooms, unless they stand here too.
 */
const MAY_IMPORT: Record<string, string> = {
  protocol: '',
  'protocol/wire': 'protocol',
  'protocol/json': 'protocol',
  'protocol/redact': 'protocol protocol/wire protocol/json',
  'protocol/message': 'protocol protocol/wire protocol/json protocol/redact',
  'protocol/http': 'protocol protocol/wire protocol/json protocol/message',

  net: 'protocol protocol/http',
  capture: 'protocol',
  'capture/stdio': 'capture protocol protocol/wire protocol/json protocol/message',
  'capture/http': 'capture net protocol protocol/wire protocol/json protocol/message protocol/http',
  'capture/forward':
    'capture capture/http net protocol protocol/wire protocol/json protocol/message protocol/http',
  talk: 'capture capture/stdio net protocol protocol/wire protocol/json protocol/message protocol/http',

  'store/file': 'protocol protocol/wire protocol/json protocol/message protocol/http protocol/redact',
  'store/read': 'PROTOCOL store/file',
  'store/write': 'PROTOCOL store/file store/read',
  'store/keep': 'PROTOCOL store/file store/read store/write',
  'store/sample': 'protocol protocol/wire protocol/message store/file store/write',
  'store/record': 'PROTOCOL store/file store/read store/write store/keep store/sample',

  'inspect/filter': 'PROTOCOL STORE',
  'inspect/sample': 'STORE inspect/filter',
  'inspect/verdict': 'PROTOCOL STORE',
  'inspect/figures': 'PROTOCOL STORE inspect/filter inspect/verdict',
  'inspect/view': 'PROTOCOL STORE inspect/filter inspect/verdict inspect/figures',
  'inspect/run/run.ts': '',
  'inspect/run':
    'PROTOCOL STORE inspect/filter inspect/verdict inspect/figures inspect/view inspect/run/run.ts',
  'inspect/schema': 'protocol/json',
  'inspect/check/beyond/provider-rules.ts': 'protocol/json inspect/schema',
  'inspect/check':
    'PROTOCOL STORE inspect/filter inspect/verdict inspect/figures inspect/view inspect/schema inspect/check/beyond/provider-rules.ts',
  'inspect/check/beyond': 'PROTOCOL inspect/schema inspect/check inspect/check/beyond/provider-rules.ts',
  'inspect/check/modern': 'PROTOCOL STORE inspect/verdict inspect/view inspect/schema inspect/check',
  'inspect/check/verdict':
    'PROTOCOL STORE inspect/filter inspect/verdict inspect/figures inspect/view inspect/schema inspect/check',
  'inspect/check/check.ts':
    'PROTOCOL STORE inspect/filter inspect/verdict inspect/figures inspect/view inspect/schema inspect/check inspect/check/beyond inspect/check/modern inspect/check/verdict',
  inspect:
    'PROTOCOL STORE inspect/filter inspect/verdict inspect/figures inspect/view inspect/schema inspect/check inspect/check/check.ts',

  'replay/http': 'PROTOCOL STORE talk',
  'replay/recording': 'PROTOCOL STORE talk replay/http',
  'replay/match': 'PROTOCOL STORE talk replay/http replay/recording',
  'replay/play': 'PROTOCOL STORE talk replay/http replay/recording replay/match',
  'replay/live': 'PROTOCOL STORE talk replay/http replay/recording replay/match replay/play',
  replay: 'PROTOCOL STORE talk replay/http replay/recording replay/match replay/play replay/live',
  'replay/serve':
    'PROTOCOL STORE net talk replay/http replay/recording replay/match replay/play replay/live replay',
  'replay/verify':
    'PROTOCOL STORE talk replay/http replay/recording replay/match replay/play replay/live replay replay/serve',
  'replay/stub': 'PROTOCOL STORE talk inspect/schema replay/match replay/recording replay replay/verify',

  'export/format.ts': 'PROTOCOL STORE',
  'export/parts.ts': 'PROTOCOL STORE',
  'export/text': 'PROTOCOL STORE export/format.ts export/parts.ts',
  'export/otlp': 'PROTOCOL STORE export/format.ts export/parts.ts',
  'export/foreign': 'PROTOCOL STORE export/text',
  export: 'PROTOCOL STORE export/format.ts export/parts.ts export/text export/otlp',

  fault: 'PROTOCOL STORE inspect/filter replay/match replay/recording',
  'fault/http': 'PROTOCOL STORE net fault',

  clients: 'PROTOCOL STORE version.ts',
  config: 'PROTOCOL STORE INSPECT',
  sources: 'PROTOCOL STORE capture talk INSPECT REPLAY EXPORT engine/read version.ts',
  kit: 'PROTOCOL STORE net capture talk INSPECT REPLAY EXPORT fault fault/http sources config version.ts',

  engine: 'PROTOCOL STORE INSPECT',
  'engine/read': 'PROTOCOL STORE INSPECT engine',

  ship: 'PROTOCOL STORE engine',
  record: 'PROTOCOL STORE capture config version.ts',

  ci: 'PROTOCOL INSPECT',

  admin: 'PROTOCOL STORE net',

  web: 'PROTOCOL STORE INSPECT REPLAY EXPORT net version.ts web/api.ts',
  'web/fast': 'PROTOCOL STORE INSPECT REPLAY EXPORT net version.ts web/api.ts web',
  'web/report': 'PROTOCOL STORE INSPECT EXPORT version.ts web/api.ts web web/fast',
  'web/slow': 'PROTOCOL STORE INSPECT REPLAY EXPORT net version.ts web/api.ts web web/fast web/report',
  'web/api.ts': 'inspect/run/run.ts',
  mcp: 'PROTOCOL INSPECT net version.ts web mcp/read',
  'mcp/read': 'PROTOCOL STORE INSPECT REPLAY EXPORT version.ts web',
  'web/page/look': '',
  'web/page/shell': 'web/api.ts web/page/look',
  'web/page/list': 'web/api.ts web/page/look web/page/shell',
  'web/page/json': 'PAGE_PARTS',
  'web/page/frame': 'PAGE_PARTS web/page/json web/page/menus',
  'web/page/session': 'PAGE_PARTS web/page/frame web/page/menus',
  'web/page/live': 'PAGE_PARTS web/page/frame web/page/session',
  'web/page/sessions': 'PAGE_PARTS',
  'web/page/search': 'PAGE_PARTS',
  'web/page/compare': 'PAGE_PARTS',
  'web/page/stats': 'PAGE_PARTS',
  'web/page/findings': 'PAGE_PARTS',
  'web/page/http': 'PAGE_PARTS web/page/menus',
  'web/page/menus': 'PAGE_PARTS',
  'web/page/run': 'PAGE_PARTS',
  'web/page': 'PAGE',

  cli: 'BELOW',
  'cli/config': 'BELOW cli',
  'cli/record': 'BELOW cli cli/config',
  'cli/run': 'BELOW cli cli/config cli/record',
  'cli/play': 'BELOW cli cli/config cli/record',
  'cli/read': 'BELOW cli cli/config cli/play',
  'cli/ci': 'BELOW cli cli/config cli/play cli/read',
  'cli/keep': 'BELOW cli cli/config',
  'cli/fleet': 'BELOW cli cli/config cli/record',
  'cli/wrap': 'BELOW cli cli/config cli/record',
  'cli/view': 'BELOW cli cli/config',
  'cli/first': 'BELOW cli cli/config cli/record cli/wrap',
  'cli/commands.ts':
    'BELOW cli cli/config cli/record cli/run cli/play cli/read cli/ci cli/keep cli/fleet cli/wrap cli/view cli/first',
  'cli/main.ts': 'BELOW cli cli/config cli/record cli/commands.ts',

  'errors.ts': '',
  'version.ts': '',
  'index.ts': 'kit',
};

/** Names for several rooms at once. */
const GROUPS: Record<string, readonly string[]> = {
  PROTOCOL: subRoomsOf('protocol'),
  STORE: subRoomsOf('store'),
  INSPECT: subRoomsOf('inspect'),
  REPLAY: subRoomsOf('replay'),
  EXPORT: subRoomsOf('export'),
  PAGE: ['web/api.ts', ...subRoomsOf('web/page')],
  /** What all screens of the page share. */
  PAGE_PARTS: ['web/api.ts', 'web/page/look', 'web/page/shell', 'web/page/list'],
  BELOW: Object.keys(MAY_IMPORT).filter((room) => !/^(?:cli(?:\/|$)|index|web\/page)/.test(room)),
};

/** What the protocol may take from outside: bytes, and libraries that are as pure as itself, one of them when it is needed. */
const PURE = ['node:buffer', 'node:zlib', 'eventsource-parser', 're2js', 'node:module'];

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));
const sources = new Map(files.map((file) => [file, readFileSync(join(SRC, file), 'utf8')]));
const imports = new Map(files.map((file) => [file, importedFiles(file)]));

function subRoomsOf(room: string): string[] {
  return Object.keys(MAY_IMPORT).filter((name) => name === room || name.startsWith(`${room}/`));
}

function specifiersOf(file: string): string[] {
  const source = sources.get(file) ?? '';
  return [...source.matchAll(/(?:from|import\()\s*'([^']+)'/g)].map((match) => match[1] ?? '');
}

function importedFiles(file: string): string[] {
  const own = specifiersOf(file).filter((path) => path.startsWith('.'));
  return own.map((path) => relative(SRC, resolve(SRC, dirname(file), path)));
}

function roomOf(file: string): string {
  const rooms = Object.keys(MAY_IMPORT).filter((room) => file === room || file.startsWith(`${room}/`));
  return rooms.toSorted((a, b) => b.length - a.length)[0] ?? `no room for ${file}`;
}

test('imports run one way only, by the table of rooms', () => {
  for (const [file, imported] of imports) {
    const room = roomOf(file);
    const named = (MAY_IMPORT[room] ?? '').split(' ').flatMap((name) => GROUPS[name] ?? [name]);
    for (const target of imported)
      expect([room, 'errors.ts', ...named], `${file} imports ${target}`).toContain(roomOf(target));
  }
});

test('the table itself has no circle', () => {
  const above = new Map<string, readonly string[]>(
    Object.entries(MAY_IMPORT).map(([room, text]) => [
      room,
      text.split(' ').flatMap((name) => GROUPS[name]?.filter((one) => one !== room) ?? name),
    ]),
  );
  expect(circleIn(above)).toBeNull();
});

test('no files import each other in a circle', () => {
  expect(circleIn(imports)).toBeNull();
});

/** The first circle of the graph, as a path that ends where it begins. */
function circleIn(graph: ReadonlyMap<string, readonly string[]>): string | null {
  const done = new Set<string>();
  function follow(node: string, path: readonly string[]): string | null {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node].join(' → ');
    if (done.has(node)) return null;
    for (const next of graph.get(node) ?? []) {
      const circle = follow(next, [...path, node]);
      if (circle !== null) return circle;
    }
    done.add(node);
    return null;
  }
  for (const node of graph.keys()) {
    const circle = follow(node, []);
    if (circle !== null) return circle;
  }
  return null;
}

test('the protocol does no I/O and knows no clock and no chance', () => {
  for (const file of files.filter((name) => name.startsWith('protocol/'))) {
    const foreign = specifiersOf(file).filter((path) => !path.startsWith('.') && !PURE.includes(path));
    expect(foreign, file).toEqual([]);
    expect(sources.get(file), file).not.toMatch(/Date\.now|performance\.|Math\.random|setTimeout|process\./);
  }
});

test('no folder has more than fifteen files', () => {
  for (const folder of new Set(files.map((file) => dirname(file)))) {
    const inside = files.filter((file) => dirname(file) === folder);
    expect(inside.length, folder).toBeLessThanOrEqual(15);
  }
});

function linesOf(source: string): number {
  return source.split('\n').length - 1;
}

/** At 300 lines the question is whether a file holds two ideas; at 500 it does. */
test('no file has more than 500 lines', () => {
  for (const [file, source] of sources) expect(linesOf(source), file).toBeLessThanOrEqual(500);
});

/** Files that may be small: rows of a table that one file lists, components of the page, the twin of a larger one, what a thread begins with. */
const ROWS_AND_ENTRIES = [
  /^cli\/\w+\//,
  /^inspect\/check\//,
  /^(?:web\/(?:fast|slow)|mcp\/read)\//,
  /^export\//,
  /^store\/record\/(?:worker|stdio-framer)\.ts$/,
  /^web\/page\/(?:screens\.ts|.*\.tsx)$/,
];

test('no small file is only a piece of its one importer', () => {
  for (const [file, source] of sources) {
    const importers = files.filter((other) => imports.get(other)?.includes(file));
    const isPiece = importers.length === 1 && dirname(importers[0] ?? '') === dirname(file);
    if (!isPiece || ROWS_AND_ENTRIES.some((rows) => rows.test(file))) continue;
    expect(linesOf(source), `${file}, of ${importers[0]} alone`).toBeGreaterThanOrEqual(60);
  }
});

test('an exported name exists once', () => {
  const homes = new Map<string, string>();
  for (const [file, source] of sources) {
    const exported = source.matchAll(
      /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|type|interface) (\w+)/gm,
    );
    for (const [, name = ''] of exported) {
      expect(homes.get(name), `${name} of ${file}`).toBeUndefined();
      homes.set(name, file);
    }
  }
});

/** A node of a syntax tree, as far as functions are concerned. */
type SyntaxNode = { type: string; start: number; end: number; id?: { name?: string } | null; body?: unknown };

test('no function has more than sixty lines, its inner functions left out', () => {
  for (const [file, source] of sources) {
    for (const { name, lines } of functionLengths(file, source))
      expect(lines, `${name} in ${file}`).toBeLessThanOrEqual(60);
  }
});

function functionLengths(file: string, source: string): { name: string; lines: number }[] {
  const lengths: { name: string; lines: number }[] = [];
  const lineAt = (offset: number) => source.slice(0, offset).split('\n').length;

  /** Walks a tree; returns how many lines the outermost functions in it take. */
  function visit(node: unknown): number {
    if (Array.isArray(node)) return node.reduce((sum, one) => sum + visit(one), 0);
    if (node === null || typeof node !== 'object') return 0;
    const inner = Object.values(node).reduce((sum: number, one) => sum + visit(one), 0);
    const { type, start, end, id, body } = node as SyntaxNode;
    const isFunction = /^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(type);
    if (!isFunction || body === null) return inner;
    const all = lineAt(end) - lineAt(start) + 1;
    lengths.push({ name: id?.name ?? `the function at line ${lineAt(start)}`, lines: all - inner });
    // An inner arrow function begins on a line of the outer one; a declaration has its lines to itself.
    return type === 'FunctionDeclaration' ? all : all - 1;
  }

  visit(parseSync(file, source).program);
  return lengths;
}
