/** What is published of `tapedeck mcp`: the registry's description of it, and the links that add it to a client. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { installLinks } from '../../scripts/install-links.js';
import { textOf } from '../support/documents.ts';
import { fixture, ROOT } from '../support/tapedeck.ts';

const read = (file: string) => JSON.parse(readFileSync(file, 'utf8'));

const SERVER = { command: 'npx', args: ['-y', 'mcp-tapedeck', 'mcp'] };

test('server.json keeps to the schema of the registry, and says what the package says', () => {
  const server = read(join(ROOT, 'server.json'));
  const validate = new Ajv().compile(read(fixture('server.schema.json')));
  expect(validate(server), JSON.stringify(validate.errors)).toBe(true);
  const { name, version, mcpName } = read(join(ROOT, 'package.json'));
  const [{ identifier, runtimeHint, runtimeArguments, packageArguments, ...npm }] = server.packages;
  expect([server.name, server.version, npm.version, identifier]).toEqual([mcpName, version, version, name]);
  const words = [runtimeArguments, [{ value: identifier }], packageArguments]
    .flat()
    .map(({ value }) => value);
  expect({ command: runtimeHint, args: words }).toEqual(SERVER);
});

test('each link adds the command that the page shows', () => {
  const links = installLinks();
  const ofVscode = (link: string) => JSON.parse(decodeURIComponent(link.slice(link.indexOf('?') + 1)));
  const ofCursor = (link: string) =>
    JSON.parse(Buffer.from(new URL(link).searchParams.get('config') ?? '', 'base64').toString());
  expect(ofVscode(links.vscode)).toEqual({ name: 'tapedeck', ...SERVER });
  expect(ofVscode(new URL(links.vscodeOnTheWeb).searchParams.get('url') ?? '')).toEqual({
    name: 'tapedeck',
    ...SERVER,
  });
  for (const link of [links.cursor, links.cursorOnTheWeb]) {
    expect(new URL(link).searchParams.get('name')).toBe('tapedeck');
    expect(ofCursor(link)).toEqual(SERVER);
  }
  const page = textOf('docs/agents.md');
  for (const link of [links.vscodeOnTheWeb, links.cursorOnTheWeb]) expect(page).toContain(`](${link})`);
});
