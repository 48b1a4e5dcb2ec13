import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Deck } from 'mcp-tapedeck';
import { test } from 'mcp-tapedeck/vitest';
import { describe, expect } from 'vitest';
import { warmest } from '../weather/warmest.js';

async function connect(deck: Deck): Promise<Client> {
  const client = new Client({ name: 'planner', version: '1.0.0' });
  await client.connect(deck.transport());
  return client;
}

// What is recorded from, where there is no recording yet.
test.override({ deckOptions: { upstream: { command: 'node', args: ['../weather/server.js'] } } });

// Each test has its recording: __recordings__/warmest.test/<suite>.<test>.ndjson
describe.concurrent('the warmest city', () => {
  test('is found among three', async ({ deck }) => {
    const client = await connect(deck);
    expect(await warmest(client, ['Bern', 'Lagos', 'Oslo'])).toBe('Lagos');
    deck.assertOrder([
      'initialize',
      ['tools/call temperature', { arguments: { city: 'Bern' } }],
      ['tools/call temperature', { arguments: { city: 'Lagos' } }],
      ['tools/call temperature', { arguments: { city: 'Oslo' } }],
    ]);
    deck.assertAllUsed();
  });

  test('is not told where a station is missing', async ({ deck }) => {
    const client = await connect(deck);
    await expect(warmest(client, ['Bern', 'Atlantis', 'Oslo'])).rejects.toThrow('no weather station');
    deck.assertNotCalled('tools/call', { arguments: { city: 'Oslo' } });
  });
});

describe('a server that is busy', () => {
  // What another test has recorded.
  const recording = new URL(
    '__recordings__/warmest.test/the-warmest-city.is-found-among-three.ndjson',
    import.meta.url,
  );
  test.override({ deckOptions: { recording } });

  test('can be asked again', async ({ deck }) => {
    const client = await connect(deck);
    deck.override('tools/call temperature', { error: { code: -32000, message: 'Too many requests' } });
    await expect(warmest(client, ['Bern', 'Lagos', 'Oslo'])).rejects.toThrow('Too many requests');
    expect(await warmest(client, ['Bern', 'Lagos', 'Oslo'])).toBe('Lagos');
  });
});

test('every recording has its test', ({ orphans }) => {
  expect(orphans).toEqual([]);
});
