import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { openRecording, recordingPath } from 'mcp-tapedeck';
import { warmest } from '../weather/warmest.js';

/** npm runs tests in the package's folder. */
const upstream = { command: 'node', args: ['../weather/server.js'] };

let deck;
let client;

beforeEach(async () => {
  const { testPath, currentTestName } = expect.getState();
  const recording = recordingPath(testPath, currentTestName);
  deck = await openRecording(recording, { upstream });
  client = new Client({ name: 'planner', version: '1.0.0' });
  // The real server speaks stdio; the recorded one can answer over HTTP all the same.
  const { url } = await deck.listen();
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
});

/** Of a test that got this far, what it recorded is stored. */
async function finish() {
  await client.close();
  deck.assertNoMisses();
  await deck.close();
}

// After a failed test nothing is stored; after `finish` this does nothing.
afterEach(() => deck.discard());

test('the warmest of three cities is found', async () => {
  expect(await warmest(client, ['Bern', 'Lagos', 'Oslo'])).toBe('Lagos');
  deck.assertCalled('tools/call temperature', { arguments: { city: 'Lagos' } }, { times: 1 });
  await finish();
});

test('a city without a station is an error', async () => {
  await expect(warmest(client, ['Atlantis'])).rejects.toThrow('no weather station');
  expect(deck.calls.at(-1)).toMatchObject({ target: 'temperature', outcome: 'tool-error' });
  await finish();
});
