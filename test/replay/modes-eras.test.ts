import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { linesOf, listen } from '../support/modes.ts';
import { inFull } from '../support/scale.ts';
import { startDualEra } from '../support/servers.ts';
import { tapedeckInProcess, tempFolder } from '../support/tapedeck.ts';

type Era = 'legacy' | 'auto';

/** The official client of the second generation, connected. */
async function connect(url: URL, mode: Era) {
  const client = new Client(
    { name: 'second', version: '2.0.0' },
    { capabilities: { sampling: {}, elicitation: {}, roots: {} }, versionNegotiation: { mode } },
  );
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'Forty-two.' },
  }));
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
}

const call = (client: Client, name: string, args = {}) => client.callTool({ name, arguments: args });

async function few(client: Client) {
  return [client.getNegotiatedProtocolVersion(), await call(client, 'test_simple_text')];
}

async function many(client: Client) {
  const progress: number[] = [];
  const onprogress = (one: { progress: number }) => void progress.push(one.progress);
  return [
    ...(await few(client)),
    (await client.listTools()).tools.length,
    await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress }),
    await call(client, 'test_sampling', { prompt: 'The answer?' }),
    await call(client, 'test_input_required_result_elicitation'),
    await call(client, 'no_such_tool').catch(String),
    progress,
  ];
}

/** What the client sees of a replay with these options, and how that ends. */
async function see<T>(args: readonly string[], mode: Era, act: (client: Client) => Promise<T>) {
  const { run, url } = await listen(args);
  const client = await connect(url, mode);
  const seen = await act(client);
  await client.close();
  run.child.kill('SIGTERM');
  const { code, stderr } = await run.ended;
  return { seen, code, stderr };
}

for (const [mode, era, basis] of [
  ['legacy', '2025-11-25', 'session-header'],
  ['auto', '2026-07-28', 'stateless'],
] as const) {
  (mode === 'auto' ? test : inFull)(
    `a client of ${era} is recorded once, gets more by new_episodes, and all of it by none`,
    async () => {
      const { url } = await startDualEra();
      const file = join(tempFolder(), 'it.ndjson');
      const once = await see([file, '--mode', 'once', url.href], mode, few);
      expect(once.seen[0]).toBe(era);
      expect(JSON.parse(linesOf(file)[0] ?? '').session).toMatchObject({ basis, protocolVersion: era });
      const before = readFileSync(file, 'utf8');

      const added = await see([file, '--mode', 'new_episodes', url.href], mode, many);
      expect(JSON.stringify(added.seen)).toContain('LLM response: Forty-two.');
      expect(added.stderr).not.toContain('added: tools/call "test_simple_text"');
      expect(added.stderr).not.toContain('withheld');
      expect(readFileSync(file, 'utf8').startsWith(before)).toBe(true);

      const played = await see([file, '--fail-on-miss'], mode, many);
      expect(played.seen).toEqual(added.seen);
      expect(played.code, played.stderr).toBe(0);
    },
  );
}

test('a subscription that goes live is recorded with its news, however its client ends it', async () => {
  const { url } = await startDualEra();
  const file = join(tempFolder(), 'it.ndjson');
  const { stderr } = await see([file, '--mode', 'once', url.href], 'auto', async (client) => {
    const subscription = await client.listen({ toolsListChanged: true });
    await subscription.close();
  });
  expect(stderr).toContain('added: subscriptions/listen: unanswered');
  const again = await see([file, '--fail-on-miss'], 'auto', async (client) => {
    const subscription = await client.listen({ toolsListChanged: true });
    await subscription.close();
    return 'open';
  });
  expect([again.seen, again.code]).toEqual(['open', 0]);
});

test('a client that closes its connection cancels what it asked live', async () => {
  const { url: upstream } = await startDualEra();
  const file = join(tempFolder(), 'it.ndjson');
  await see([file, '--mode', 'once', upstream.href], 'auto', few);
  const { run, url } = await listen([file, '--mode', 'new_episodes', upstream.href]);
  const client = await connect(url, 'auto');
  const leaving = new AbortController();
  const called = client.callTool(
    { name: 'test_tool_with_progress', arguments: {} },
    { signal: leaving.signal, onprogress: () => leaving.abort() },
  );
  await expect(called).rejects.toThrow();
  await client.close();
  run.child.kill('SIGTERM');
  const { stderr } = await run.ended;
  expect(stderr).toMatch(/withheld: tools\/call "test_tool_with_progress": unanswered; the client/);
});

inFull('what a session by HTTP was given more can be verified and exported as all else', async () => {
  const { url } = await startDualEra();
  const folder = tempFolder();
  const [file, db] = [join(folder, 'it.ndjson'), join(folder, 'store.db')];
  await see([file, '--mode', 'once', url.href], 'legacy', few);
  await see([file, '--mode', 'new_episodes', url.href], 'legacy', many);
  await tapedeckInProcess(['import', file, '--db', db]);
  const { stdout } = await tapedeckInProcess(['export', '--db', db]);
  expect(stdout.toString()).toBe(readFileSync(file, 'utf8'));
  const { code, stdout: said } = await tapedeckInProcess(['verify', file, url.href]);
  expect(said.toString()).toContain('equal    tools/call test_sampling');
  expect(code, said.toString()).toBe(0);
});
