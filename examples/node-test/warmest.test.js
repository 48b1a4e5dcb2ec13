import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { openRecording, recordingPath } from 'mcp-tapedeck';
import { warmest } from '../weather/warmest.js';

const thisFile = fileURLToPath(import.meta.url);

/** A deck, and a client that spawns the recorded server as it would the real one. After a failed test nothing is stored. */
async function connect(t, recording, options) {
  const deck = await openRecording(recordingPath(thisFile, recording), options);
  const client = new Client({ name: 'planner', version: '1.0.0' });
  await client.connect(new StdioClientTransport({ ...deck.command(), stderr: 'ignore' }));
  t.after(async () => {
    await client.close();
    await deck.discard();
  });
  return { client, deck };
}

test('the warmest of three cities is found', async (t) => {
  const { client, deck } = await connect(t, t.name, {
    upstream: { command: 'node', args: ['../weather/server.js'] },
  });
  assert.equal(await warmest(client, ['Bern', 'Lagos', 'Oslo']), 'Lagos');
  deck.assertCalled('tools/call temperature', undefined, { times: 3 });
  deck.assertNoMisses();
  await client.close();
  await deck.close();
});

test('a city that was never asked for is a miss', async (t) => {
  const { client, deck } = await connect(t, 'the warmest of three cities is found', { mode: 'none' });
  await assert.rejects(warmest(client, ['Bern', 'Paris']), /no recorded answer to tools\/call "temperature"/);
  assert.match(deck.misses[0].report, /recorded "Lagos", live "Paris"/);
});
