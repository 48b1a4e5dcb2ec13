import { StreamableHTTPClientTransport as SecondTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport as SecondStdio } from '@modelcontextprotocol/client/stdio';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { describe, expect, test } from 'vitest';
import { startHttpMock } from '../support/http-mock.ts';
import { recordUrlInProcess } from '../support/http-record.ts';
import { firstHttp, talkToDualEra, talkToEverything } from '../support/official-clients.ts';
import { storeOnce } from '../support/once.ts';
import { exchangesOf, talkOf } from '../support/same-recording.ts';
import { inFull, sample } from '../support/scale.ts';
import { EVERYTHING, startDualEraServer, startEverything } from '../support/servers.ts';
import { BIN, listSessions, tempStore } from '../support/tapedeck.ts';

/** Lets a client talk through a recorder, and gives the store. */
async function recorded(
  upstream: string | URL,
  talk: (url: URL) => Promise<unknown>,
  db = tempStore(),
): Promise<string> {
  const recorder = await recordUrlInProcess(String(upstream), { db });
  await talk(recorder.url);
  await recorder.stop();
  return db;
}

/** Lets a client talk to the replay of a recording, through a recorder, and gives the store of that. */
async function recordedAgain(
  db: string,
  talk: (url: URL) => Promise<unknown>,
  sessions: readonly string[] = ['latest'],
): Promise<string> {
  const { url, misses, notices } = await startHttpMock(db, { sessions });
  const again = await recorded(url, talk);
  expect([misses, notices]).toEqual([[], []]);
  return again;
}

const everythingHttp = (url: URL) => talkToEverything(firstHttp(url) as Transport);
const everythingSse = (url: URL) => talkToEverything(new SSEClientTransport(url));
const dualEra = (mode: 'legacy' | 'auto') => (url: URL) => talkToDualEra(new SecondTransport(url), mode);

const RECORDINGS = {
  'Streamable HTTP': storeOnce(async (db) =>
    recorded(await startEverything('streamableHttp'), everythingHttp, db),
  ),
  'HTTP+SSE': storeOnce(async (db) => recorded(await startEverything('sse'), everythingSse, db)),
  stdio: storeOnce((db) => recordedStdio([process.execPath, EVERYTHING, 'stdio'], db)),
};
const DUAL_ERA = {
  legacy: storeOnce(async (db) => recorded(await startDualEraServer(), dualEra('legacy'), db)),
  auto: storeOnce(async (db) => recorded(await startDualEraServer(), dualEra('auto'), db)),
};

/** Lets a client talk to a command through a recorder. */
async function recordedStdio(command: readonly string[], db = tempStore()): Promise<string> {
  const args = [BIN, 'record', '--db', db, '--', ...command];
  await talkToEverything(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }));
  return db;
}

const replayOf = (db: string) => [process.execPath, BIN, 'replay', 'latest', '--db', db];

describe('the recording of a replay is the recording, exchange by exchange', () => {
  test.each(
    sample([
      ['server-everything by Streamable HTTP', 'Streamable HTTP', everythingHttp],
      ['server-everything by HTTP+SSE', 'HTTP+SSE', everythingSse],
    ] as const),
  )('%s', async (_name, transport, talk) => {
    const db = await RECORDINGS[transport]();
    const again = await recordedAgain(db, talk);
    expect(await exchangesOf(again)).toEqual(await exchangesOf(db));
    expect(talkOf(again)).toEqual(talkOf(db));
  });

  inFull.each(['legacy', 'auto'] as const)(
    'the server of both eras, to a client in mode %s',
    async (mode) => {
      const db = await DUAL_ERA[mode]();
      const again = await recordedAgain(db, dualEra(mode));
      expect(await exchangesOf(again)).toEqual(await exchangesOf(db));
      expect(talkOf(again)).toEqual(talkOf(db));
    },
  );
});

describe('the recording of a replay is the recording, call by call', () => {
  test.each(sample(Object.keys(RECORDINGS) as (keyof typeof RECORDINGS)[]))(
    '%s, over stdio',
    async (transport) => {
      const db = await RECORDINGS[transport]();
      const again = await recordedStdio(replayOf(db));
      expect(talkOf(again)).toEqual(talkOf(db));
    },
  );

  test('stdio, over Streamable HTTP', async () => {
    const db = await RECORDINGS.stdio();
    expect(talkOf(await recordedAgain(db, everythingHttp))).toEqual(talkOf(db));
  });

  inFull('the 2026-07-28 era by HTTP, over stdio, and over HTTP again', async () => {
    const db = await DUAL_ERA.auto();
    const again = tempStore();
    const args = [BIN, 'record', '--db', again, '--', ...replayOf(db)];
    await talkToDualEra(new SecondStdio({ command: process.execPath, args, stderr: 'ignore' }), 'auto');
    // Over stdio the client asks for the era in a process of its own.
    const sessions = (await listSessions(again)).map(({ session }) => session).toReversed();
    expect(sessions).toHaveLength(2);
    expect(talkOf(again, sessions)).toEqual(talkOf(db));
    expect(talkOf(await recordedAgain(again, dualEra('auto'), sessions))).toEqual(talkOf(db));
  });
});
