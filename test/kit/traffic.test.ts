import { expect, test } from 'vitest';
import { TapedeckError } from '../../src/index.ts';
import { connect, EVERYTHING_STDIO, echo, openDeck } from '../support/kit.ts';

function complaint(check: () => void): { code: string; message: string } {
  try {
    check();
  } catch (error) {
    expect(error).toBeInstanceOf(TapedeckError);
    return error as TapedeckError;
  }
  throw new Error('it did not throw');
}

test('filters are asked of what the clients of a test said and heard', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  const client = await connect(deck.transport());
  await echo(client, 'Hello, tape.');
  deck.assertTraffic({
    expect: ['tool=echo status=ok', 'kind=result text~"Echo: Hello, tape."', 'client=tester'],
    forbid: ['tool=get-sum', 'status~error'],
    max: 'tool=echo dur<1m size<10kb',
  });
  const { code, message } = complaint(() =>
    deck.assertTraffic({ expect: 'tool=get-sum', forbid: 'tool=echo' }),
  );
  expect(code).toBe('assertion');
  expect(message.split('\n')).toEqual([
    expect.stringMatching(/^Expected a frame with tool=get-sum, got none among \d+\.$/),
    'Expected no frame with tool=echo, got 1 otherwise:',
    expect.stringMatching(/^ {2}#\d+ client: tools\/call echo, ok after .+ ms, \d+ B$/),
  ]);
});

test('what nobody answered from the recording is traffic like any other', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  const client = await connect(deck.transport());
  await expect(client.callTool({ name: 'delete' })).rejects.toThrow();
  deck.assertTraffic({ expect: 'tool=delete status=error' });
  expect(complaint(() => deck.assertTraffic({ forbid: 'code<0 or code>0' })).message).toContain(
    'tools/call delete, error',
  );
});

test('several clients are one traffic: one of them has what is expected, none what is forbidden', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  const [first, second] = [await connect(deck.transport()), await connect(deck.transport())];
  await first.listTools();
  await echo(second, 'Hello, tape.');
  deck.assertTraffic({ expect: ['tool=echo', 'method=tools/list'] });
  expect(complaint(() => deck.assertTraffic({ forbid: 'tool=echo' })).message).toMatch(
    /^ {2}client 2 #\d+ client: tools\/call echo/m,
  );
});

test('over HTTP it is the same, each message once', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  const { url } = await deck.listen();
  const { StreamableHTTPClientTransport } = await import(
    '@modelcontextprotocol/sdk/client/streamableHttp.js'
  );
  const client = await connect(new StreamableHTTPClientTransport(new URL(url)) as never);
  await echo(client, 'Hello, tape.');
  const { message } = complaint(() => deck.assertTraffic({ forbid: 'tool=echo kind=result' }));
  expect(message.split('\n')).toHaveLength(2);
  expect(message).toContain('result of tools/call echo, ok');
});

test('a wrong filter, or none at all, is the caller’s mistake', async () => {
  const deck = await openDeck(EVERYTHING_STDIO);
  expect(complaint(() => deck.assertTraffic({ max: 'dur>2s' }))).toMatchObject({ code: 'usage' });
  expect(complaint(() => deck.assertTraffic({}))).toMatchObject({ code: 'usage' });
  deck.command();
  expect(complaint(() => deck.assertTraffic({ expect: 'tool=echo' })).message).toContain(
    'keeps its messages to itself',
  );
});
