import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { blocksOf } from '../support/documents.ts';
import { IS_FULL, inFull } from '../support/scale.ts';
import { installPacked } from '../support/stranger.ts';
import { ROOT, start } from '../support/tapedeck.ts';

/** Every public name, used as its documentation has it. */
const CONSUMER = `
import { Client as SecondClient } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import {
  type Call, type CallName, type CallOutcome, type Deck, type DeckOptions, type DeckTransport, type ErrorCode,
  type ExpectedParams, type FileUrl, type JsonRpcMessage, type Listening, type Miss, openRecording, type RecordedCall,
  type RecordMode, recordingPath, type ServerCommand, TapedeckError, type DeckAnswer, type MatchedCall,
  type ServerAnswer, type ServerError, type ServerResult, type StoredMessage,
  type TrafficAssertions,
} from 'mcp-tapedeck';

export async function use(path: string | URL): Promise<void> {
  const mode: RecordMode = 'none';
  const file: FileUrl = new URL('file:///a.ndjson');
  void file;
  const options: DeckOptions = { mode, ignore: ['$.a'] as const, repeat: 'last', speed: 2, db: undefined };
  const more: DeckOptions = {
    redactRule: ['ticket=/TCK-[0-9]+/'], redact: ['$..card'], noRedactRule: ['jwt'],
    anyValue: ['$.arguments.now'], anyOrder: ['search:$.tags'], pruneUnused: true, maxAge: '90d',
    matchBy: ({ target, params }: MatchedCall) => (target === 'search' ? { params } : undefined),
    beforeStoring: (stored: StoredMessage, { from }) => (from === 'client' ? { ...stored, params: {} } : stored),
  };
  void more;
  await using deck: Deck = await openRecording(path, options);
  const failure: ServerError = { error: { code: -32000, message: 'not now' } };
  const success: ServerResult = { result: { content: [] } };
  const answer: DeckAnswer = (one): ServerAnswer | undefined => (one.target === null ? failure : success);
  deck.override('tools/call echo', answer, { params: { arguments: { a: 1 } }, times: 2 });
  await deck.discard();
  const transport: DeckTransport = deck.transport();
  await new Client({ name: 'a', version: '1' }).connect(transport);
  await new SecondClient({ name: 'a', version: '1' }).connect(deck.transport());
  const command: ServerCommand = deck.command();
  new StdioClientTransport(deck.command());
  new StdioClientTransport({ ...command, stderr: 'ignore' });
  const { url }: Listening = await deck.listen();
  new URL(url);
  const calls: readonly Call[] = deck.calls;
  const unused: readonly RecordedCall[] = deck.unused;
  const misses: readonly Miss[] = deck.misses;
  const notices: readonly string[] = deck.notices;
  void notices;
  const outcome: CallOutcome | undefined = calls[0]?.outcome ?? misses[0]?.call.outcome;
  const name: CallName = 'tools/call echo';
  const params: ExpectedParams = { arguments: { a: unused.length, outcome } };
  deck.assertCalled(name, params, { times: 2 });
  deck.assertNotCalled(name);
  deck.assertOrder([name, [name, params]]);
  deck.assertAllUsed({ except: [name] });
  deck.assertNoMisses();
  const traffic: TrafficAssertions = { expect: 'tool=echo', forbid: ['status~error'] as const, max: ['dur<2s'] };
  deck.assertTraffic(traffic);
  const message: JsonRpcMessage = { jsonrpc: '2.0' };
  await transport.send(message);
  recordingPath('/a/b.test.ts', 'suite', 'name');
  const error: unknown = null;
  const code: ErrorCode | null = error instanceof TapedeckError ? error.code : null;
  // @ts-expect-error There is no such mode.
  await openRecording(path, { mode: 'sometimes' });
  // @ts-expect-error What was called cannot be set.
  deck.calls = [];
  void code;
}
`;

const WITH_VITEST = `
import type { Deck } from 'mcp-tapedeck';
import { type DeckFixtureOptions, type DeckFixtures, test } from 'mcp-tapedeck/vitest';
import { expectTypeOf } from 'vitest';

test('typed', ({ deck, deckOptions, orphans }) => {
  expectTypeOf(deck).toEqualTypeOf<Deck>();
  expectTypeOf(deckOptions).toEqualTypeOf<DeckFixtureOptions>();
  expectTypeOf(orphans).toEqualTypeOf<DeckFixtures['orphans']>();
});
test.override({ deckOptions: { failOnMiss: false, recording: new URL('file:///a.ndjson') } });
export const mine = test.extend<{ more: number }>({
  more: async ({ deck }, use) => use(deck.calls.length),
});
`;

const OPTIONS = {
  target: 'es2022',
  strict: true,
  noEmit: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
};

/** The declarations of everybody else are checked once, which takes most of the time; in the full run each time. */
const AGAIN = { skipLibCheck: !IS_FULL };

const PROJECTS: Record<string, { file: string; source: string; options: object }> = {
  nodenext: {
    file: 'consumer.mts',
    source: CONSUMER,
    options: { module: 'nodenext', moduleResolution: 'nodenext', types: ['node'] },
  },
  bundler: {
    file: 'consumer.ts',
    source: CONSUMER,
    options: { ...AGAIN, module: 'preserve', moduleResolution: 'bundler', types: ['node'] },
  },
};

inFull.each(Object.keys(PROJECTS))('the published types hold in a project with %s', async (name) => {
  const { file, source, options } = PROJECTS[name] ?? { file: '', source: '', options: {} };
  const folder = installPacked(['@modelcontextprotocol/sdk', '@modelcontextprotocol/client', '@types/node']);
  expect(await typeCheck(folder, file, source, options)).toBe('');
});

inFull('the published types of the fixture hold beside those of vitest', async () => {
  const folder = installPacked(['vitest', '@types/node']);
  const options = { ...AGAIN, module: 'nodenext', moduleResolution: 'nodenext', types: ['node'] };
  expect(await typeCheck(folder, 'consumer.mts', WITH_VITEST, options)).toBe('');
});

inFull('the types need neither those of Node nor of browsers', async () => {
  const folder = installPacked([]);
  const source = `import { openRecording } from 'mcp-tapedeck';\nexport const deck = openRecording('a.ndjson');\n`;
  const options = { module: 'nodenext', moduleResolution: 'nodenext', types: [], lib: ['es2022'] };
  expect(await typeCheck(folder, 'consumer.mts', source, options)).toBe('');
});

inFull('the kit can be required from CommonJS', async () => {
  const folder = installPacked([]);
  const source = "process.stdout.write(typeof require('mcp-tapedeck').openRecording)";
  writeFileSync(join(folder, 'consumer.cjs'), source);
  const { stdout } = await start(process.execPath, [join(folder, 'consumer.cjs')]).ended;
  expect(stdout.toString()).toBe('function');
});

inFull('the examples of the test kit’s page are typed', async () => {
  const examples = blocksOf('docs/test-kit.md').filter(({ language }) => language === 'ts');
  const [withVitest, without, ...more] = examples.map(({ text }) => text);
  const folder = installPacked(['vitest', '@types/node', '@modelcontextprotocol/sdk']);
  mkdirSync(join(folder, 'weather'));
  const warmest = 'export function warmest(client: object, cities: readonly string[]): Promise<string>;';
  writeFileSync(join(folder, 'weather/warmest.d.ts'), warmest);
  const options = { module: 'nodenext', moduleResolution: 'nodenext', types: ['node'], skipLibCheck: true };
  mkdirSync(join(folder, 'project'));
  writeFileSync(join(folder, 'project/other.mts'), without ?? 'missing');
  const given = [
    "import { Client } from '@modelcontextprotocol/sdk/client/index.js';",
    "import { openRecording } from 'mcp-tapedeck';",
    'declare const upstream: string, userName: string, tags: string[];',
  ];
  for (const [i, text] of more.entries())
    writeFileSync(join(folder, `project/more-${i}.mts`), [...given, text, 'export { Client };'].join('\n'));
  const source = `import './other.mjs';\n${more.map((_, i) => `import './more-${i}.mjs';\n`).join('')}${withVitest}`;
  expect(await typeCheck(folder, 'consumer.mts', source, options)).toBe('');
});

test('everything public is documented', () => {
  for (const file of ['kit/deck', 'kit/vitest', 'kit/open-recording', 'kit/recording-path']) {
    const lines = readFileSync(join(ROOT, `dist/${file}.d.ts`), 'utf8').split('\n');
    const declared = lines.flatMap((line, i) => (DECLARATION.test(line) ? [i] : []));
    expect(declared.length, file).toBeGreaterThan(0);
    const bare = declared.filter((i) => !lines[i - 1]?.endsWith('*/')).map((i) => lines[i]?.trim());
    expect(bare, file).toEqual([]);
  }
});

/** An exported name, or a member of an exported type. */
const DECLARATION = /^(?:export (?:declare |type )| {4}(?:readonly )?[\w[\].]+\??[:(])/;

async function typeCheck(folder: string, file: string, source: string, options: object): Promise<string> {
  const project = join(folder, 'project');
  mkdirSync(project, { recursive: true });
  writeFileSync(join(project, file), source);
  writeFileSync(join(project, 'package.json'), '{"type":"module"}');
  const config = { compilerOptions: { ...OPTIONS, ...options }, include: [file] };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const { stdout, stderr } = await start(process.execPath, [
    tsc,
    '-p',
    project,
    '--pretty',
    'false',
    '--singleThreaded',
  ]).ended;
  return stdout.toString() + stderr;
}
