/** What other programs read: each format by its own schema or parser, and recorded text that is no syntax in it. */

import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HEAVY_MODULES, runsHeavy } from '../support/heavy.ts';
import { recordUrl } from '../support/http-record.ts';
import { inFull, scale } from '../support/scale.ts';
import { startEverything } from '../support/servers.ts';
import { ROOT, record, start, tapedeckInProcess, tempFolder, tempStore } from '../support/tapedeck.ts';

const require = createRequire(import.meta.url);

async function imported(name: string): Promise<string> {
  const db = tempStore();
  const { code, stderr } = await tapedeckInProcess([
    'import',
    join(ROOT, 'recordings', `${name}.ndjson`),
    '--db',
    db,
  ]);
  expect(code, stderr).toBe(0);
  return db;
}

async function exported(db: string, format: string, ...more: string[]) {
  const { code, stdout, stderr } = await tapedeckInProcess([
    'export',
    '--format',
    format,
    '--db',
    db,
    ...more,
  ]);
  return { code, stderr, text: stdout.toString() };
}

/** Records these lines of a client, to which `cat` answers with the same. */
async function recordLines(...lines: string[]): Promise<string> {
  const db = tempStore();
  const { child, ended } = record(db, ['cat.js']);
  child.stdin.end(lines.map((line) => `${line}\n`).join(''));
  await ended;
  return db;
}

/** Records a conversation line by line: `>` of the client, `<` of the server. */
async function converse(...lines: string[]): Promise<string> {
  const header =
    readFileSync(join(ROOT, 'recordings/everything-stdio.ndjson'), 'utf8').split('\n', 1)[0] ?? '';
  const frames = lines.map((line) => {
    const channel = line.startsWith('>') ? 'stdin' : 'stdout';
    return JSON.stringify({ ms: 1, channel, message: JSON.parse(line.slice(1)) });
  });
  const folder = tempFolder();
  const file = join(folder, 'flow.ndjson');
  writeFileSync(file, [header, ...frames, ''].join('\n'));
  const db = join(folder, 'r.db');
  const { code, stderr } = await tapedeckInProcess(['import', file, '--db', db]);
  expect(code, stderr).toBe(0);
  return db;
}

function arrowsOf(diagram: string): string[] {
  return diagram
    .split('\n')
    .slice(3, -1)
    .map((line) => line.trim().replace(/ \(\d+ ms\)$/, ''));
}

const progress = (done: number) =>
  `<{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":${done},"total":2}}`;

/** What a conversation is in a diagram. */
const CONVERSATIONS: Record<string, { lines: string[]; arrows: string[] }> = {
  'a request and its answer are two arrows': {
    lines: [
      '>{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
      '<{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
    ],
    arrows: ['Client->>Server: tools/list', 'Server-->>Client: result 0 tools'],
  },
  'a notification is an arrow that nothing comes back for': {
    lines: ['>{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'],
    arrows: ['Client-)Server: notifications/cancelled 1'],
  },
  'an error is a dotted arrow with a cross': {
    lines: [
      '>{"jsonrpc":"2.0","id":2,"method":"unknown/method"}',
      '<{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}',
    ],
    arrows: ['Client->>Server: unknown/method', 'Server--xClient: error -32601 Method not found'],
  },
  'progress stands between a request and its answer': {
    lines: [
      '>{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"long","_meta":{"progressToken":"t"}}}',
      progress(1),
      progress(2),
      '<{"jsonrpc":"2.0","id":3,"result":{"content":[]}}',
    ],
    arrows: [
      'Client->>Server: tools/call long',
      'Server-)Client: notifications/progress 1/2',
      'Server-)Client: notifications/progress 2/2',
      'Server-->>Client: result no content',
    ],
  },
};

/** Calls of tools whose names are syntax of the diagram, or characters at random. */
const ODD_CALLS = [
  'end',
  ';',
  '#',
  '%%{init: {}}%%',
  'a\nClient->>Server: b',
  '<script>',
  '-->>',
  'note over Client: x',
  '\u202e',
  ...fc.sample(fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }), { numRuns: scale(200), seed: 7 }),
].map((name, id) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } }));

test.each(Object.entries(CONVERSATIONS))('%s', async (_name, { lines, arrows }) => {
  const { text } = await exported(await converse(...lines), 'mermaid');
  expect(arrowsOf(text)).toEqual(arrows);
});

test('whatever a name is made of, the diagram renders and says it on one line', async () => {
  const { text } = await exported(await recordLines(...ODD_CALLS), 'mermaid');
  const arrows = arrowsOf(text);
  expect(arrows.length).toBe(2 * ODD_CALLS.length);
  for (const arrow of arrows) expect(arrow).toMatch(/^(Client|Server)-+>?>?[)x]?(Server|Client): /);
});

test.runIf(runsHeavy)('Mermaid itself reads every one of these diagrams', async () => {
  const file = pathToFileURL(join(HEAVY_MODULES, 'mermaid/dist/mermaid.core.mjs')).href;
  const { default: mermaid } = await import(file);
  const stores = [await recordLines(...ODD_CALLS)];
  for (const { lines } of Object.values(CONVERSATIONS)) stores.push(await converse(...lines));
  for (const db of stores) {
    const { text } = await exported(db, 'mermaid');
    expect(await mermaid.parse(text)).toMatchObject({ diagramType: 'sequence' });
  }
  await expect(mermaid.parse('sequenceDiagram\nClient->>Server')).rejects.toThrow();
});

test('an HTTP archive fits its schema and holds the events of streams', async () => {
  const schemas = require('har-schema') as Record<string, { $id: string }>;
  const ajv = new Ajv({ strict: false, validateFormats: false });
  ajv.addMetaSchema(require('ajv/dist/refs/json-schema-draft-06.json'));
  for (const schema of Object.values(schemas)) ajv.addSchema(schema);
  const validate = ajv.getSchema('har.json#');
  if (validate === undefined) throw new Error('no schema');

  for (const name of ['everything-http', 'modern-http']) {
    const { code, text } = await exported(await imported(name), 'har');
    expect(code).toBe(0);
    const har = JSON.parse(text);
    expect(validate(har), JSON.stringify(validate.errors)).toBe(true);
    expect(har.log.entries.length).toBeGreaterThan(3);
    const stream = har.log.entries.find((entry: object) => '_eventSourceMessages' in entry);
    expect(stream._eventSourceMessages.some(({ data }: { data: string }) => data?.includes('jsonrpc'))).toBe(
      true,
    );
    expect(stream.response.content.text).toContain('data: {');
  }
});

test('HTTP formats refuse a session that came over stdio, and say what to take', async () => {
  const db = await imported('everything-stdio');
  for (const format of ['har', 'curl']) {
    const { code, stderr, text } = await exported(db, format);
    expect([code, text]).toEqual([2, '']);
    expect(stderr).toMatch(/stdio\. Take --format ndjson/);
  }
});

test('the script of curl commands gives curl each request as it was, and runs nothing else', async () => {
  const folder = tempFolder();
  const log = join(folder, 'log');
  const fake = `#!${process.execPath}
const fs = require('node:fs');
fs.appendFileSync(${JSON.stringify(log)}, JSON.stringify(process.argv.slice(2)) + '\\n');
`;
  writeFileSync(join(folder, 'curl'), fake);
  chmodSync(join(folder, 'curl'), 0o755);
  const evil = 'it\'s $(touch owned) `touch owned` "; touch owned; #';
  const source = readFileSync(join(ROOT, 'recordings/everything-http.ndjson'), 'utf8').replaceAll(
    'Hello',
    JSON.stringify(evil).slice(1, -1),
  );
  writeFileSync(join(folder, 'evil.ndjson'), source);
  const db = join(folder, 'r.db');
  await tapedeckInProcess(['import', join(folder, 'evil.ndjson'), '--db', db]);
  const { text } = await exported(db, 'curl');
  writeFileSync(join(folder, 'run.sh'), text);

  const env = { PATH: `${folder}${delimiter}${process.env['PATH']}` };
  const { code, stderr } = await start('sh', [join(folder, 'run.sh')], { env, cwd: folder }).ended;
  expect([code, stderr]).toEqual([0, '']);
  const calls = readFileSync(log, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as string[]);
  const bodies = calls
    .map((words) => words[words.indexOf('--data-binary') + 1] ?? '')
    .filter((body) => body.includes('jsonrpc'));
  const asked = source
    .split('\n')
    .filter((line) => line.includes('"request"') && line.includes('"message"'))
    .map((line) => JSON.stringify(JSON.parse(line).message));
  expect(bodies).toEqual(asked);
  expect(calls.every((words) => words.at(-1)?.startsWith('http://127.0.0.1:'))).toBe(true);
  expect(() => readFileSync(join(folder, 'owned'))).toThrow();
});

/** Runs the script of a session with `/bin/sh` and curl itself; returns what they print. */
async function curled(db: string): Promise<string> {
  const file = join(tempFolder(), 'run.sh');
  const { text } = await exported(db, 'curl');
  writeFileSync(file, text);
  const { code, stdout, stderr } = await start('sh', [file]).ended;
  expect([code, stderr]).toEqual([0, '']);
  return stdout.toString();
}

inFull(
  'the script of curl commands takes the session from the server, and does not wait for open streams',
  async () => {
    const url = await startEverything('streamableHttp');
    const { db, url: recorded, stop } = await recordUrl(url);
    const client = new Client({ name: 'c', version: '1' }, { capabilities: { sampling: {} } });
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      role: 'assistant',
      model: 'none',
      content: { type: 'text', text: 'hi there' },
    }));
    const transport = new StreamableHTTPClientTransport(recorded);
    await client.connect(transport as Transport);
    await client.callTool({ name: 'trigger-sampling-request', arguments: { prompt: 'x', maxTokens: 5 } });
    await client.callTool({ name: 'echo', arguments: { message: 'over curl' } });
    await client.close();
    await stop();
    const printed = await curled(db);
    expect(printed).toContain('Echo: over curl');
    expect(printed).toContain('sampling/createMessage');
  },
);

inFull('the script of curl commands posts to where the stream of HTTP+SSE says', async () => {
  const url = await startEverything('sse');
  const { db, url: recorded, stop } = await recordUrl(url);
  const client = new Client({ name: 'c', version: '1' });
  await client.connect(new SSEClientTransport(recorded));
  await client.callTool({ name: 'echo', arguments: { message: 'over curl' } });
  await client.close();
  await stop();
  expect(await curled(db)).toContain('Echo: over curl');
});

test('a report has each exchange in a row and the failures whole, with nothing recorded as markup', async () => {
  const { text } = await exported(await imported('everything-stdio'), 'markdown');
  expect(text).toContain('| 13 | client | tools/call get-sum | tool-error |');
  expect(text).toMatch(/### \\#\d+ prompts\/get no-such-prompt: error/);
  const name = '| a | <img src=x> `x` *y* [z](w)\\n\u001b[31m';
  const db = await recordLines(
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } }),
  );
  const hostile = await exported(db, 'markdown');
  expect(hostile.text).toContain('\\| a \\| \\<img src=x\\> \\`x\\` \\*y\\* \\[z\\](w)');
  expect(hostile.text).not.toContain('\u001b');
});

test('a report shows of a batch the request that failed, and of long names the beginning', async () => {
  const long = 'n'.repeat(1_000_000);
  const call = (id: number, name: string) =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}"}}`;
  const db = await converse(
    `>[${call(1, 'fine')},${call(2, 'bad')}]`,
    '<[{"jsonrpc":"2.0","id":1,"result":{"content":[]}},{"jsonrpc":"2.0","id":2,"error":{"code":7,"message":"no"}}]',
    `>${call(3, long)}`,
  );
  const { text } = await exported(db, 'markdown');
  const [, failure = ''] = text.split('tools/call bad: error\n');
  expect(failure).toMatch(
    /^\nAsked:\n\n```json\n\{\n {2}"name": "bad"\n\}\n```\n\nAnswered:\n\n```json\n\{\n {2}"code": 7/,
  );
  expect(text.length).toBeLessThan(10_000);
});

test('a filter leaves of a session what it holds for, in every format', async () => {
  const http = await imported('everything-http');
  const filter = ['--filter', 'tool=echo'];
  expect(JSON.parse((await exported(http, 'har', ...filter)).text).log.entries).toHaveLength(1);
  expect((await exported(http, 'curl', ...filter)).text.match(/^curl /gm)).toHaveLength(1);
  expect((await exported(http, 'mermaid', ...filter)).text.match(/->>/g)).toHaveLength(2);
  expect((await exported(http, 'markdown', ...filter)).text.match(/^\| \d+ \|/gm)).toHaveLength(1);
  const part = await exported(http, 'ndjson', ...filter);
  const file = join(tempFolder(), 'part.ndjson');
  writeFileSync(file, part.text);
  const { code, stdout } = await tapedeckInProcess(['import', file, '--db', tempStore()]);
  expect([code, stdout.length > 0]).toEqual([0, true]);
  expect(part.text).toContain('echo');
  expect(part.text).not.toContain('get-sum');
});
