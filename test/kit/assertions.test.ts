import { expect, test } from 'vitest';
import { type Deck, TapedeckError } from '../../src/index.ts';
import { connect, EVERYTHING_STDIO, echo, openDeck } from '../support/kit.ts';

/** A deck with a client that has listed the tools and called two of them. */
async function played(): Promise<Deck> {
  const deck = await openDeck(EVERYTHING_STDIO);
  const client = await connect(deck.transport());
  await client.listTools();
  await echo(client, 'Hello, tape.');
  await client.callTool({ name: 'get-sum', arguments: { b: 2, a: 1 } });
  return deck;
}

function complaint(check: () => void): string {
  try {
    check();
  } catch (error) {
    expect(error).toBeInstanceOf(TapedeckError);
    expect(error).toMatchObject({ code: 'assertion' });
    return (error as Error).message;
  }
  throw new Error('it did not throw');
}

test('a call is found by its method, its target, and the params that are named', async () => {
  const deck = await played();
  deck.assertCalled('tools/call');
  deck.assertCalled('tools/call', {}, { times: 2 });
  deck.assertCalled('tools/call echo');
  deck.assertCalled('tools/call', { name: 'get-sum', arguments: { a: 1.0, b: 2 } });
  deck.assertCalled('tools/call get-sum', { arguments: { a: 1, b: 2 } }, { times: 1 });
  deck.assertNotCalled('tools/call get-sum', { arguments: { a: 1 } });
  deck.assertNotCalled('prompts/get');
  deck.assertNotCalled('tools/call null');
  deck.assertNotCalled('initialize null');
});

test('a call that was not made is told with how the nearest ones differ', async () => {
  const deck = await played();
  const text = complaint(() =>
    deck.assertCalled('tools/call', { name: 'echo', arguments: { message: 'Hello' } }),
  );
  expect(text).toBe(
    [
      'Expected a call of tools/call with {"name":"echo","arguments":{"message":"Hello"}}, got none.',
      'Call 3 differs:',
      '  /arguments/message: expected "Hello", got "Hello, tape."',
      'Call 4 differs:',
      '  /arguments/message: expected "Hello", got nothing',
      '  /arguments/a: expected nothing, got 1',
      '  /arguments/b: expected nothing, got 2',
      '  /name: expected "echo", got "get-sum"',
      'The calls that were made:',
      expect.stringMatching(/^ {2}1\. initialize \{.*\} {2}ok$/),
      '  2. tools/list  ok',
      '  3. tools/call echo {"name":"echo","arguments":{"message":"Hello, tape."}}  ok',
      '  4. tools/call get-sum {"name":"get-sum","arguments":{"b":2,"a":1}}  ok',
    ]
      .map((line, i) => (typeof line === 'string' ? line : text.split('\n')[i]))
      .join('\n'),
  );
  expect(complaint(() => deck.assertCalled('tools/call echo', {}, { times: 3 }))).toMatch(
    /^Expected 3 calls of tools\/call echo with \{\}, got 1\./,
  );
  expect(complaint(() => deck.assertNotCalled('tools/call echo'))).toMatch(
    /^Expected no call of tools\/call echo, got 1\.\nIt was called as:\n {2}1\. tools\/call echo \{/,
  );
});

test('an order holds with other calls in between, and is told where it breaks', async () => {
  const deck = await played();
  deck.assertOrder([]);
  deck.assertOrder(['initialize', 'tools/call echo', ['tools/call', { arguments: { a: 1, b: 2 } }]]);
  expect(complaint(() => deck.assertOrder(['tools/call get-sum', 'tools/call echo']))).toMatch(
    /^Expected tools\/call echo as number 2 of 2 after tools\/call get-sum \{.*\}: it was call 3, not called again later\./,
  );
  expect(complaint(() => deck.assertOrder(['tools/call echo', 'tools/call echo']))).toMatch(/number 2 of 2/);
  expect(complaint(() => deck.assertOrder(['prompts/get']))).toMatch(/: it was not called\./);
});

test('what was never asked for is listed, unless it is excepted', async () => {
  const deck = await played();
  const text = complaint(() => deck.assertAllUsed());
  expect(text).toMatch(
    /^4 recorded calls were never asked for\.\nframe 13: tools\/call get-sum \{"name":"get-sum","arguments":\{"a":"one"\}\}\n/,
  );
  const except = ['tools/call get-sum', 'tools/call trigger-long-running-operation', 'prompts/get'];
  expect(complaint(() => deck.assertAllUsed({ except }))).toMatch(/^1 recorded call was never asked for\.\n/);
  deck.assertAllUsed({ except: ['tools/call', 'prompts/get'] });
});

test('misses are listed with every difference, and nothing in them can drive a terminal', async () => {
  const deck = await played();
  const client = await connect(deck.transport());
  await echo(client, 'red \u001b[31m').catch(() => {});
  await client.readResource({ uri: 'x:y' }).catch(() => {});
  const text = complaint(() => deck.assertNoMisses());
  expect(text).toMatch(/^2 calls have no answer in the recording\.\n/);
  expect(text).toContain(
    '    /arguments/message changed: recorded "Hello, tape.", live "red \\u001b[31m"\n    would match with: ignoreTool: [\'echo:$.message\']',
  );
  expect(text).toContain('resources/read "x:y": never recorded.');
  expect(text).not.toContain('\u001b');
  expect(complaint(() => deck.assertCalled('x\u001b'))).not.toContain('\u001b');
});
