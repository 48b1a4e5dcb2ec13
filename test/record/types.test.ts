/** The published types of `mcp-tapedeck/record`, in projects of all kinds. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { inFull } from '../support/scale.ts';
import { installPacked } from '../support/stranger.ts';
import { ROOT, start, tempStore } from '../support/tapedeck.ts';

/** Every public name, beside both lines of the SDK. */
const CONSUMER = `
import { createServer } from 'node:http';
import { Client as SecondClient, StreamableHTTPClientTransport as SecondHttp } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StdioServerTransport as SecondStdio } from '@modelcontextprotocol/server/stdio';
import {
  type Door, type ErrorCode, type HandlerRecordingOptions, type RecordableTransport, type RecordedFetch, recordedFetch,
  type RecordedHandler, recordedHandler, type RecordedStdio, type RecordedTransport, recordedTransport,
  type RecordingOptions, recordStdio, type StdioRecordingOptions, TapedeckError,
} from 'mcp-tapedeck/record';

export async function use(url: URL): Promise<void> {
  const all: RecordingOptions = {
    name: 'a', labels: { env: 'test' }, db: 'a.db', durable: true, maxFrame: '64mb', maxQueue: '64mb', olderThan: '30d',
    maxSize: '2gb', maxSessions: 100, keepErrors: true, packAfter: '7d', redact: ['$..card'] as const, redactRule: ['t=/T-[0-9]+/'],
    noRedactRule: ['jwt'], noRedact: false, capture: 'meta', onTrouble: (text: string) => void text.length,
  };
  const more: StdioRecordingOptions = { ...all, stdin: process.stdin, stdout: process.stdout };
  const stdio: RecordedStdio = recordStdio(more);
  new StdioServerTransport(stdio.stdin, stdio.stdout);
  new SecondStdio(recordStdio().stdin, recordStdio().stdout);
  const recorded: RecordedFetch<typeof fetch> = recordedFetch(fetch, all);
  await new Client({ name: 'a', version: '1' }).connect(new StreamableHTTPClientTransport(url, { fetch: recorded }) as never);
  await new SecondClient({ name: 'a', version: '1' }).connect(new SecondHttp(url, { fetch: recordedFetch(fetch) }));
  const own: HandlerRecordingOptions = { ...all, path: '/mcp' };
  const handler: RecordedHandler = recordedHandler((request, response) => response.end(request.url), own);
  createServer(handler).listen(0);
  const [near] = InMemoryTransport.createLinkedPair();
  const transport: RecordedTransport<InMemoryTransport> = recordedTransport(near, all);
  await new Client({ name: 'a', version: '1' }).connect(transport);
  await new SecondClient({ name: 'a', version: '1' }).connect(recordedTransport(new SecondHttp(url)));
  const any: RecordableTransport = near;
  recordedTransport(any);
  await transport.flush();
  const doors: Door[] = [stdio, recorded, handler];
  await using door = doors[0] as Door;
  await door.flush();
  await door.close();
  const error: unknown = null;
  const code: ErrorCode | null = error instanceof TapedeckError ? error.code : null;
  void code;
  // @ts-expect-error There is no such capture.
  recordStdio({ capture: 'some' });
  // @ts-expect-error No transport.
  recordedTransport({ send: 1 });
}
`;

const OPTIONS = {
  target: 'es2022',
  strict: true,
  noEmit: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  types: ['node'],
};

/** The declarations of everybody else are checked once, which takes most of the time. */
const KINDS: Record<string, object> = {
  node16: { module: 'node16', moduleResolution: 'node16', skipLibCheck: false },
  nodenext: {
    lib: ['es2022', 'esnext.disposable'],
    module: 'nodenext',
    moduleResolution: 'nodenext',
    skipLibCheck: true,
  },
  bundler: { module: 'preserve', moduleResolution: 'bundler', skipLibCheck: true },
};

inFull.each(Object.keys(KINDS))('the published types hold in a project with %s', async (kind) => {
  const folder = installPacked([
    ...['client', 'server', 'sdk'].map((name) => `@modelcontextprotocol/${name}`),
    '@types/node',
  ]);
  const project = join(folder, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'consumer.mts'), CONSUMER);
  const config = { compilerOptions: { ...OPTIONS, ...KINDS[kind] }, include: ['consumer.mts'] };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const run = start(process.execPath, [tsc, '-p', project, '--pretty', 'false', '--singleThreaded']);
  const { stdout, stderr } = await run.ended;
  expect(stdout.toString() + stderr).toBe('');
});

/** Prints what was stored when each block was left, by its end and by an error. */
const USING = `
import Database from 'better-sqlite3';
import { recordedFetch, recordedHandler, recordedTransport, recordStdio } from 'mcp-tapedeck/record';
import { PassThrough } from 'node:stream';

const stored = (): unknown => new Database(process.env['TAPEDECK_DB'] as string)
  .prepare('SELECT name, frames, dropped FROM session WHERE end_reason IS NOT NULL ORDER BY name').all();
async function leave(): Promise<void> {
  await using stdio = recordStdio({ name: 'stdio', stdin: new PassThrough(), stdout: new PassThrough() });
  await using transport = recordedTransport({ send: async (_: object) => {}, close: async () => {} }, { name: 'transport' });
  await using handler = recordedHandler(() => {});
  await using recorded = recordedFetch(async (_: string | URL) => new Response('{}'), { name: 'fetch' });
  stdio.stdout.write('{"id":1}\\n');
  await transport.send({ id: 1 } as never);
  await (await recorded('http://127.0.0.1:1/mcp')).text();
  void handler;
  throw new Error('left');
}
await leave().catch(({ message }) => console.log(message));
console.log(JSON.stringify(stored()));
`;

inFull(
  'await using ends each recording before what follows, as TypeScript compiles it and as Node runs it',
  async () => {
    const folder = installPacked(['@types/better-sqlite3', '@types/node']);
    const file = join(folder, 'using.mts');
    writeFileSync(file, USING);
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const ends =
      '[{"name":"fetch","frames":1,"dropped":0},{"name":"stdio","frames":1,"dropped":0},{"name":"transport","frames":1,"dropped":0}]';
    const major = Number(process.versions.node.split('.')[0]);
    // Node itself has the syntax since 24.
    for (const target of major >= 24 ? ['es2022', 'esnext'] : ['es2022']) {
      const args = [
        tsc,
        file,
        '--target',
        target,
        '--module',
        'nodenext',
        '--lib',
        'esnext',
        '--skipLibCheck',
        '--strict',
        '--types',
        'node',
      ];
      const compiled = await start(process.execPath, [...args, '--ignoreConfig'], { cwd: folder }).ended;
      expect([compiled.code, compiled.stdout.toString()]).toEqual([0, '']);
      const program = readFileSync(join(folder, 'using.mjs'), 'utf8');
      expect(program.includes('await using')).toBe(target === 'esnext');
      const env = { TAPEDECK_DB: tempStore() };
      const { code, stdout, stderr } = await start(process.execPath, ['using.mjs'], { cwd: folder, env })
        .ended;
      expect([code, stderr, stdout.toString()]).toEqual([0, '', `left\n${ends}\n`]);
    }
  },
);

/** An exported name, or a member of an exported type. */
const DECLARATION = /^(?:export (?:declare |type )| {4}(?:readonly )?[\w[\].]+\??[:(])/;

test('everything public is documented', () => {
  for (const file of ['door', 'stdio', 'fetch', 'handler', 'transport']) {
    const lines = readFileSync(join(ROOT, `dist/record/${file}.d.ts`), 'utf8').split('\n');
    const declared = lines.flatMap((line, i) => (DECLARATION.test(line) ? [i] : []));
    expect(declared.length, file).toBeGreaterThan(0);
    const bare = declared.filter((i) => !lines[i - 1]?.endsWith('*/')).map((i) => lines[i]?.trim());
    expect(bare, file).toEqual([]);
  }
});
