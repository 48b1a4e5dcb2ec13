import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, record, tapedeckInProcess, tempFolder, tempStore, until } from '../../support/tapedeck.ts';

const STDIO = join(ROOT, 'recordings/everything-stdio.ndjson');

async function diff(...args: string[]) {
  const { code, stdout, stderr } = await tapedeckInProcess(['diff', ...args]);
  return { code, stderr, text: stdout.toString() };
}

const say = (message: object) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;

/** Records the same conversation with one version of a server. */
async function recordVersion(db: string, version: string, extra: object[] = []): Promise<void> {
  const { child, stdout, ended } = record(db, ['versions.js', version], ['--name', `v${version}`]);
  const asked: object[] = [
    {
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
    },
    { method: 'tools/list' },
    { method: 'tools/call', params: { name: 'greet', arguments: { name: 'Ada' } } },
    ...extra,
  ];
  for (const [id, message] of asked.entries()) {
    child.stdin.write(say({ id, ...message }));
    await until('an answer', () => stdout().toString().includes(`"id":${id},`));
  }
  child.stdin.end();
  await ended;
}

test('what two versions of a server offer and answer is told, and the exit code says so', async () => {
  const db = tempStore();
  await recordVersion(db, '1', [{ method: 'tools/call', params: { name: 'delete', arguments: { at: 1 } } }]);
  await recordVersion(db, '2', [{ method: 'tools/call', params: { name: 'delete', arguments: { at: 2 } } }]);
  const { code, text } = await diff('v1', 'v2', '--db', db);
  expect(code).toBe(1);
  expect(text).toContain('tool greet changed, breaking');
  expect(text).toContain('tool gone removed, breaking');
  expect(text).toContain('tool new added, not breaking');
  expect(text).toMatch(/^differs +tools\/call greet \(a #\d+, b #\d+\): the result differs in 1 place$/m);
  expect(text).toContain('/content/0/text changed: a "Hello", b "Good day"');
  expect(text).toMatch(/^other arguments {2}tools\/call delete/m);
  expect(text).toContain('/arguments/at changed: a 1, b 2');
  expect(text).toMatch(/^tools\/call greet +1 +1 /m);

  const ignoring = await diff(
    'v1',
    'v2',
    '--db',
    db,
    '--ignore-tool',
    'delete:$.at',
    '--ignore-result',
    'greet:$',
  );
  expect(ignoring.text).not.toMatch(/^(differs|other arguments)/m);
  expect(ignoring.code).toBe(1);
});

test('a session is equal to itself, and to itself in another order with other ids', async () => {
  expect(await diff(STDIO, STDIO)).toMatchObject({ code: 0, stderr: '' });
  const db = tempStore();
  await recordVersion(db, '1', [{ method: 'ping' }, { method: 'tools/list' }]);
  const again = record(db, ['versions.js', '1'], ['--name', 'again']);
  const asked = [
    { method: 'tools/call', params: { arguments: { name: 'Ada' }, name: 'greet' } },
    { method: 'tools/list' },
    {
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'd', version: '2' } },
    },
    { method: 'tools/list' },
    { method: 'ping' },
  ];
  again.child.stdin.end(asked.map((message, i) => say({ id: `x${i}`, ...message })).join(''));
  await again.ended;
  const { code, text } = await diff('v1', 'again', '--db', db);
  expect(text).toMatch(/^5 calls equal$/m);
  expect(code).toBe(0);
});

test('what only one session has is told, and --json says the same for programs', async () => {
  const shorter = join(tempFolder(), 'shorter.ndjson');
  const lines = readFileSync(STDIO, 'utf8').split('\n');
  writeFileSync(
    shorter,
    lines.filter((line) => !line.includes('"tools/list"') && !line.includes('"tools":[')).join('\n'),
  );
  const { code, text } = await diff(STDIO, shorter, '--json');
  expect(code).toBe(1);
  const items = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(items.filter(({ type, verdict }) => type === 'call' && verdict !== 'equal')).toMatchObject([
    { verdict: 'only in a', method: 'tools/list', b: null, differences: [] },
  ]);
  expect(items.at(-1)).toEqual({ type: 'summary', isEqual: false, notCompared: ['tool'] });
  expect(items.find(({ type, method }) => type === 'timing' && method === 'initialize').a.count).toBe(1);
  expect((await diff(STDIO, shorter)).text).toContain('the tools are not compared');
});

test('a session that is not there is refused', async () => {
  expect(await diff(STDIO, 'nowhere', '--db', tempStore())).toMatchObject({ code: 2, text: '' });
});
