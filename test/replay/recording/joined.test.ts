import { join } from 'node:path';
import {
  Client as SecondClient,
  StreamableHTTPClientTransport as SecondTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, test } from 'vitest';
import { startHttpMock } from '../../support/http-mock.ts';
import { recordUrlInProcess } from '../../support/http-record.ts';
import { modernMeta } from '../../support/messages.ts';
import { send } from '../../support/send.ts';
import { startDualEraServer } from '../../support/servers.ts';
import { importSaid, replay, type SaidLine } from '../../support/stdio-replay.ts';
import { listSessions, ROOT, tapedeckInProcess, tempStore } from '../../support/tapedeck.ts';

const call = (id: number, name: string) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, _meta: { progressToken: id } },
  });
const answer = (id: number, text: string) => JSON.stringify({ jsonrpc: '2.0', id, result: { text } });
const progress = (token: number, step: number) =>
  `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${step}}}`;
const NEWS = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';

const MONDAY: readonly SaidLine[] = [
  ['stdout', NEWS.replace('tools', 'prompts')],
  ['stdin', call(1, 'a')],
  ['stdout', answer(1, 'first a')],
  ['stdin', call(2, 'never answered')],
];
const TUESDAY: readonly SaidLine[] = [
  ['stdin', call(2, 'b')],
  ['stdout', progress(2, 1)],
  ['stdout', answer(2, 'of b')],
  ['stdout', NEWS],
  ['stdin', call(1, 'a')],
  ['stdout', answer(1, 'second a')],
];

async function recordBoth(): Promise<string> {
  const db = await importSaid('monday', MONDAY);
  return importSaid('tuesday', TUESDAY, db);
}

test('several recordings are replayed as one, in the order in which they are named', async () => {
  const db = await recordBoth();
  const asked = [call(7, 'a'), call(8, 'b'), call(9, 'a')];
  const { answers, stderr } = await replay(db, asked, [], ['monday', 'tuesday']);
  const others = answers.filter((line) => line !== NEWS);
  expect(answers).toContain(NEWS);
  expect(others.filter((line) => !line.includes('"progress"')).toSorted()).toEqual(
    [
      NEWS.replace('tools', 'prompts'),
      answer(7, 'first a'),
      answer(8, 'of b'),
      answer(9, 'second a'),
    ].toSorted(),
  );
  expect(others.indexOf(progress(8, 1))).toBeLessThan(others.indexOf(answer(8, 'of b')));
  expect(stderr).toBe('tapedeck: 1 of 4 recorded calls were never asked for\n');

  const reversed = await replay(db, asked, [], ['tuesday', 'monday']);
  expect(reversed.answers).toEqual(expect.arrayContaining([answer(7, 'second a'), answer(9, 'first a')]));
});

test('a miss names the session of the nearest call, and its frame there', async () => {
  const db = await recordBoth();
  const asked = [call(7, 'never answered'), call(8, 'b').replace('"_meta"', '"x":1,"_meta"')];
  const { answers, stderr } = await replay(db, asked, [], ['monday', 'tuesday']);
  const data = answers.flatMap((line) => JSON.parse(line).error?.data ?? []);
  expect(data[0]).toMatchObject({ reason: 'never-answered', seq: 4, session: 'monday' });
  expect(data[1].nearest[0]).toMatchObject({ seq: 1, n: 0, session: 'tuesday' });
  expect(stderr).toContain('it was recorded (frame 4 of monday)');
  expect(stderr).toContain('frame 1 of tuesday');
});

test('a client without a session id that varies what it says of itself is replayed whole', async () => {
  const db = tempStore();
  const ask = (url: URL, id: number, client: string, method: string, name?: string) =>
    send(url, {
      body: {
        id,
        method,
        params: {
          ...(name !== undefined && { name, arguments: {} }),
          _meta: modernMeta({ 'io.modelcontextprotocol/clientInfo': { name: client, version: '1' } }),
        },
      },
      headers: {
        'MCP-Protocol-Version': '2026-07-28',
        'Mcp-Method': method,
        ...(name !== undefined && { 'Mcp-Name': name }),
      },
    });
  async function talk(url: URL): Promise<unknown[]> {
    const seen: unknown[] = [];
    for (const [i, [client, method, name]] of [
      ['ada', 'server/discover'],
      ['ada', 'tools/list'],
      ['bob', 'tools/call', 'test_simple_text'],
      ['eve', 'tools/call', 'test_error_handling'],
    ].entries()) {
      const { status, text, ended } = await ask(url, i, client ?? '', method ?? '', name);
      await ended;
      seen.push([status, text()]);
    }
    return seen;
  }

  const recorder = await recordUrlInProcess(await startDualEraServer(), { db });
  const recorded = await talk(recorder.url);
  await recorder.stop();
  const sessions = (await listSessions(db)).map(({ session }) => session).toReversed();
  expect(sessions).toHaveLength(3);
  const { url, misses } = await startHttpMock(db, { sessions });
  expect(await talk(url)).toEqual(recorded);
  expect(misses).toEqual([]);
});

test('recordings of both eras together serve clients of both', async () => {
  const db = tempStore();
  const files = ['everything-http', 'modern-http'].map((name) => join(ROOT, `recordings/${name}.ndjson`));
  expect((await tapedeckInProcess(['import', ...files, '--db', db])).code).toBe(0);
  for (const sessions of [
    ['everything-http', 'modern-http'],
    ['modern-http', 'everything-http'],
  ]) {
    const { url, misses } = await startHttpMock(db, { sessions });
    const older = new Client({ name: 'older', version: '1' });
    await older.connect(new StreamableHTTPClientTransport(url) as Transport);
    expect(older.getServerVersion()?.name).toBe('mcp-servers/everything');
    expect((await older.listTools()).tools[0]?.name).toBe('echo');
    await older.close();
    const newer = new SecondClient({ name: 'newer', version: '2' }, { versionNegotiation: { mode: 'auto' } });
    await newer.connect(new SecondTransport(url));
    expect([newer.getProtocolEra(), newer.getServerVersion()?.name]).toEqual(['modern', 'dual-era']);
    await newer.close();
    expect(misses).toEqual([]);
  }
});
