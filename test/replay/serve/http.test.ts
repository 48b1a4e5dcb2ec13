import {
  Client as SecondClient,
  StreamableHTTPClientTransport as SecondTransport,
} from '@modelcontextprotocol/client';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, test } from 'vitest';
import { startHttpMock } from '../../support/http-mock.ts';
import { recordUrlInProcess } from '../../support/http-record.ts';
import { type Seen, talkToDualEra, talkToEverything } from '../../support/official-clients.ts';
import { inFull } from '../../support/scale.ts';
import { EVERYTHING, startDualEraServer, startEverything } from '../../support/servers.ts';
import { BIN, tempStore } from '../../support/tapedeck.ts';

async function recordByStdio(db: string): Promise<Seen> {
  const args = [BIN, 'record', '--db', db, '--', process.execPath, EVERYTHING, 'stdio'];
  return talkToEverything(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }));
}

const streamable = (url: URL) => new StreamableHTTPClientTransport(url) as Transport;

test('a recorded Streamable HTTP session is replayed to clients at once and again', async () => {
  const db = tempStore();
  const recorder = await recordUrlInProcess(await startEverything('streamableHttp'), { db });
  const recorded = await talkToEverything(streamable(recorder.url));
  await recorder.stop();
  expect(recorded.progress).toHaveLength(3);
  expect(recorded.asked).toHaveLength(1);

  const { url, misses } = await startHttpMock(db);
  expect(url.pathname).toBe('/mcp');
  expect(await talkToEverything(streamable(url))).toEqual(recorded);
  const both = await Promise.all([talkToEverything(streamable(url)), talkToEverything(streamable(url))]);
  expect(both).toEqual([recorded, recorded]);
  expect(misses).toEqual([]);
});

inFull('a recorded HTTP+SSE session is replayed over HTTP+SSE', async () => {
  const db = tempStore();
  const recorder = await recordUrlInProcess(await startEverything('sse'), { db });
  const recorded = await talkToEverything(new SSEClientTransport(recorder.url));
  await recorder.stop();

  const { url, misses } = await startHttpMock(db);
  expect(url.pathname).toBe('/sse');
  const both = [1, 2].map(() => talkToEverything(new SSEClientTransport(url)));
  expect(await Promise.all(both)).toEqual([recorded, recorded]);
  expect(misses).toEqual([]);
});

inFull('a recorded stdio session is replayed over Streamable HTTP', async () => {
  const db = tempStore();
  const recorded = await recordByStdio(db);
  const { url, misses } = await startHttpMock(db);
  expect(await talkToEverything(streamable(url))).toEqual(recorded);
  expect(await talkToEverything(streamable(url))).toEqual(recorded);
  expect(misses).toEqual([]);
});

for (const mode of ['legacy', 'auto'] as const) {
  (mode === 'auto' ? test : inFull)(
    `a session of the second client generation is replayed to it, mode ${mode}`,
    async () => {
      const db = tempStore();
      const recorder = await recordUrlInProcess(await startDualEraServer(), { db });
      const recorded = await talkToDualEra(new SecondTransport(recorder.url), mode);
      await recorder.stop();
      expect(JSON.stringify(recorded)).toContain('LLM response: Forty-two.');

      const { url, misses, recording } = await startHttpMock(db);
      expect(recording.session.era).toBe(mode === 'auto' ? 'modern' : 'legacy');
      expect(await talkToDualEra(new SecondTransport(url), mode)).toEqual(recorded);
      expect(await talkToDualEra(new SecondTransport(url), mode)).toEqual(recorded);
      expect(misses).toEqual([]);
    },
  );
}

test('a client that probes for the newer era falls back where the recording is of the older one', async () => {
  const db = tempStore();
  const recorder = await recordUrlInProcess(await startEverything('streamableHttp'), { db });
  await talkToEverything(streamable(recorder.url));
  await recorder.stop();
  const { url, misses } = await startHttpMock(db);
  const client = new SecondClient(
    { name: 'another', version: '1.0.0' },
    { versionNegotiation: { mode: 'auto' } },
  );
  await client.connect(new SecondTransport(url));
  expect(client.getNegotiatedProtocolVersion()).toBe('2025-11-25');
  await client.close();
  expect(misses).toEqual([]);
});

test('a client that was recorded falling back to the older era falls back again', async () => {
  async function talk(url: URL): Promise<unknown> {
    const client = new SecondClient(
      { name: 'second', version: '1.0.0' },
      { versionNegotiation: { mode: 'auto' } },
    );
    await client.connect(new SecondTransport(url));
    const seen = [
      client.getNegotiatedProtocolVersion(),
      await client.callTool({ name: 'echo', arguments: { message: 'hällo' } }),
    ];
    await client.close();
    return seen;
  }

  const db = tempStore();
  const recorder = await recordUrlInProcess(await startEverything('streamableHttp'), { db });
  const recorded = await talk(recorder.url);
  await recorder.stop();
  const { url, misses, recording } = await startHttpMock(db);
  expect(recording.session.era).toBe('dual');
  expect(await talk(url)).toEqual(recorded);
  expect(misses).toEqual([]);
});
