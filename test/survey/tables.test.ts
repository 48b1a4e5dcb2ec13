/** The tables of docs/clients.md: that they say what recordings say, and nothing that was not recorded. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import { textOf } from '../support/documents.ts';
import {
  body,
  callOf,
  closed,
  head,
  httpSession,
  type Line,
  posted,
  replies,
  resultOf,
  says,
  stdioSession,
} from '../support/hand-made.ts';
import { tapedeckInProcess, tempStore } from '../support/tapedeck.ts';
import { importText } from '../support/text-recording.ts';
import { readClient, tablesOf } from './behaviour.js';
import { withTables } from './page.js';

/** The tables of the client with these text recordings, as `run.js` reads them. */
async function tablesOfTexts(...texts: string[]): Promise<string> {
  const db = tempStore();
  const store = openStore(db);
  for (const text of texts) await importText(store, text);
  store.close();
  const lines = async (...args: string[]) => {
    const { stdout } = await tapedeckInProcess([...args, '--json', '--db', db]);
    const texts = stdout.toString().split('\n');
    return texts.filter((line) => line !== '').map((line) => JSON.parse(line));
  };
  const sessions = [];
  for (const facts of (await lines('list')).reverse())
    sessions.push({
      facts,
      frames: await lines('show', facts.session),
      exchanges: facts.transport === 'stdio' ? [] : await lines('show', facts.session, '--http'),
    });
  return tablesOf([readClient(sessions)]);
}

/** The cells of the row below each heading, by the heading's words. */
function cellsOf(tables: string): Record<string, string> {
  const cells: Record<string, string> = {};
  for (const table of tables.split(/^### .*\n\n/m).slice(1)) {
    const [head = [], , row = []] = table.split('\n').map((line) => line.slice(2, -2).split(' | '));
    head.forEach((name, i) => {
      cells[name] = row[i] ?? '';
    });
  }
  return cells;
}

const hello = (info: object, more: object = {}): Line[] => [
  says(1, {
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: info, ...more },
  }),
  replies(2, resultOf(0, { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's' } })),
  says(3, { method: 'notifications/initialized' }),
];

test('docs/clients.md says of the first client what its recording says', async () => {
  const recorded = readFileSync(join(import.meta.dirname, 'sdk-1.ndjson'), 'utf8');
  const page = textOf('docs/clients.md').split('\n');
  const tables = await tablesOfTexts(recorded);
  // What is the same over both stands in one row.
  const lines = page.map((one) => one.replace('| HTTP, stdio |', '| HTTP |'));
  for (const line of tables.split('\n').filter((one) => one !== '')) expect(lines).toContain(line);
});

test('what was recorded is told: who asks for what, what it cancels, pings, lists and pages', async () => {
  const lines = [
    ...hello({ name: 'c', version: '2' }, { capabilities: { roots: { listChanged: true }, sampling: {} } }),
    says(10, { id: 1, method: 'tools/list' }),
    replies(11, resultOf(1, { tools: [], nextCursor: 'b' })),
    says(12, { id: 2, method: 'tools/list', params: { cursor: 'b' } }),
    replies(13, resultOf(2, { tools: [] })),
    says(14, { id: 3, method: 'prompts/list' }),
    replies(15, resultOf(3, { prompts: [], nextCursor: 'b' })),
    replies(20, { id: 'p', method: 'ping' }),
    says(21, { id: 'p', result: {} }),
    says(30, callOf(4, 'progress', {}, { _meta: { progressToken: 4 } })),
    replies(31, resultOf(4)),
    says(40, callOf(5, 'endless')),
    says(45, { method: 'notifications/cancelled', params: { requestId: 5, reason: 'enough' } }),
    says(50, callOf(6, 'endless')),
  ];
  expect(cellsOf(await tablesOfTexts(stdioSession(lines, { endReason: 'client-closed' })))).toMatchObject({
    over: 'stdio',
    handshake: '`initialize`, `notifications/initialized`',
    'asks for': '`2025-11-25`',
    'speaks then': '`2025-06-18`',
    declares: '`roots` (`listChanged`), `sampling`',
    'calls itself': '`c 2`',
    lists: '`tools/list`, 2 pages, then `prompts/list`, the first page only',
    'progress token': 'on calls of `progress`',
    'a `ping` of the server': 'answered',
    'a call that never ends': '`notifications/cancelled` (`enough`); nothing is sent',
    'at the end': 'closes stdin',
  });
});

test('what was not exercised says so, and a call that went unanswered was not answered', async () => {
  const silent = [...hello({}), replies(20, { id: 'p', method: 'ping' }), says(30, callOf(1, 'echo'))];
  expect(cellsOf(await tablesOfTexts(stdioSession(silent)))).toMatchObject({
    'calls itself': '',
    lists: 'none',
    'progress token': 'never',
    'a `ping` of the server': 'not answered',
    'a call that never ends': 'not exercised',
  });
});

/** The same request with these headers. */
function withHeaders([first, ...others]: Line[], headers: [string, string][]): Line[] {
  const request = { ...(first?.['request'] as object), headers };
  return [{ ...first, request } as Line, ...others];
}

const answered = (http: number, at: number, message: Record<string, unknown>) =>
  posted(http, at, message, head(at + 1), body(at + 2, resultOf(message['id'])), closed(at + 3));

const ask = (id: unknown, method: string) => ({ id, method });

test('over HTTP it is told which requests a header is on, and what follows a failure', async () => {
  const get = { method: 'GET', path: '/mcp', headers: [['last-event-id', 'e1']], body: { ms: 0, bytes: 0 } };
  const version: [string, string] = ['MCP-Protocol-Version', '2025-06-18'];
  const lines = [
    ...answered(1, 0, ask(1, 'initialize')),
    ...withHeaders(answered(2, 10, ask(2, 'tools/list')), [version]),
    ...withHeaders(posted(3, 20, callOf(3, 'fail'), head(21, 500), closed(22)), [
      version,
      ['Mcp-Name', 'fail'],
    ]),
    ...withHeaders(answered(4, 522, callOf(3, 'fail')), [version, ['Mcp-Name', 'fail']]),
    ...withHeaders(posted(5, 600, callOf(5, 'drop'), closed(601, 'server')), [version, ['Mcp-Name', 'drop']]),
    ...withHeaders(posted(6, 700, callOf(6, 'cut'), head(701, 200, 'text/event-stream'), closed(702)), [
      version,
      ['Mcp-Name', 'cut'],
    ]),
    { at: 902, http: 7, request: get },
    { http: 7, ...head(903, 200, 'text/event-stream') },
    { http: 7, ...closed(904) },
  ];
  expect(cellsOf(await tablesOfTexts(httpSession(lines)))).toMatchObject({
    '`Accept`': 'no',
    '`MCP-Protocol-Version`': '`2025-06-18`, not on `initialize`',
    '`Mcp-Name`': 'yes, on `tools/call`',
    '`Authorization`': 'no',
    'opens a stream by GET': 'no',
    'a call is answered by 500': 'sent again after 0.5 s with the same id',
    'its connection is closed': 'not sent again',
    'its event stream is cut': 'resumed by GET with `Last-Event-ID` after 0.2 s',
    'at the end': 'no `DELETE`',
  });
});

test('what a client calls itself cannot break out of its cell', async () => {
  const name = 'a | b ` c\n| d \u001b[31m'.padEnd(200, 'x');
  const tables = await tablesOfTexts(stdioSession(hello({ name, version: '1' })));
  const rows = tables.split('\n').filter((line) => line.includes('a ? b ? c?? d ?[31m'));
  expect(rows).toHaveLength(1);
  expect(rows[0]?.split(' | ')).toHaveLength(7);
  expect(rows[0]?.length).toBeLessThan(250);
});

test('new tables take the place of the old ones and of nothing else', () => {
  const page = textOf('docs/clients.md');
  const changed = withTables(page, 'new tables');
  expect(changed).toContain('## What they do\n\nnew tables\n\n## How it was found');
  expect(withTables(changed, page.split(/## What they do\n\n|\n\n## How it was/)[1] ?? '')).toBe(page);
  expect(() => withTables('# Another page', '')).toThrow('no place for its tables');
});
