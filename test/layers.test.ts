import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './support/tapedeck.ts';

const SRC = join(ROOT, 'src');

/** What the protocol may take from outside: bytes, and a parser that is as pure as itself. */
const PURE = ['node:buffer', 'eventsource-parser'];

/** Which folders of src each folder may import from, besides itself and src/errors.ts. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  protocol: [],
  capture: ['protocol'],
  store: ['protocol'],
  inspect: ['protocol', 'store'],
  replay: ['protocol', 'store'],
  export: ['protocol', 'store'],
  clients: ['protocol', 'store'],
  kit: ['protocol', 'capture', 'store', 'inspect', 'replay', 'export', 'version.ts'],
  cli: ['protocol', 'capture', 'store', 'inspect', 'replay', 'export', 'clients', 'kit', 'version.ts'],
  'index.ts': ['kit'],
};

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));

function importsOf(file: string): string[] {
  const source = readFileSync(join(SRC, file), 'utf8');
  return [...source.matchAll(/(?:from|import\()\s*'([^']+)'/g)].map((match) => match[1] ?? '');
}

test('imports run one way only', () => {
  for (const file of files) {
    const [folder = ''] = file.split('/');
    for (const imported of importsOf(file).filter((path) => path.startsWith('.'))) {
      const target = relative(SRC, resolve(SRC, file, '..', imported));
      const [targetFolder = ''] = target.split('/');
      const allowed = [folder, 'errors.ts', ...(MAY_IMPORT[folder] ?? [])];
      expect(allowed, `${file} imports ${target}`).toContain(targetFolder);
    }
  }
});

test('the protocol does no I/O and knows no clock and no chance', () => {
  for (const file of files.filter((name) => name.startsWith('protocol/'))) {
    const foreign = importsOf(file).filter((path) => !path.startsWith('.') && !PURE.includes(path));
    expect(foreign, file).toEqual([]);
    expect(readFileSync(join(SRC, file), 'utf8'), file).not.toMatch(
      /Date\.now|performance\.|Math\.random|setTimeout|process\./,
    );
  }
});

test('a folder is a stage of the flow, and no file is longer than 300 lines', () => {
  const folders = readdirSync(SRC).filter((name) => statSync(join(SRC, name)).isDirectory());
  const rooms = Object.keys(MAY_IMPORT).filter((name) => !name.endsWith('.ts'));
  expect(folders.toSorted()).toEqual(rooms.toSorted());
  for (const file of files) {
    expect(readFileSync(join(SRC, file), 'utf8').split('\n').length, file).toBeLessThanOrEqual(300);
  }
});
