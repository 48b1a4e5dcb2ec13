import { expect, test } from 'vitest';
import { parseMessages } from '../../../src/protocol/message/message.ts';
import {
  createLiveRecorder,
  type LiveRecorderOptions,
  MODES,
  planMode,
} from '../../../src/replay/live/recorder.ts';
import { createMatching } from '../../../src/replay/match/matching.ts';
import { createMock } from '../../../src/replay/mock.ts';
import { readRecording } from '../../../src/replay/recording/recording.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { findSession } from '../../../src/store/read/sessions.ts';
import type { LiveEvents, OutgoingMessage } from '../../../src/talk/server.ts';
import { tempStore } from '../../support/tapedeck.ts';
import { importText } from '../../support/text-recording.ts';

/** A deck in this process: its client, its server, its tape. */
async function openTestDeck(recorded: readonly object[] = [], options: Partial<LiveRecorderOptions> = {}) {
  const store = openStore(tempStore());
  const session = {
    basis: 'stdio-process',
    transport: 'stdio',
    target: 'x',
    startedAt: '2026-01-01T00:00:00Z',
  };
  const lines = [{ tapedeck: 1, session }, ...recorded].map((line) => `${JSON.stringify(line)}\n`);
  await importText(store, lines.join(''));
  const recording = readRecording(store, findSession(store, 'latest'));
  const matching = createMatching(recording, { repeat: 'error', ignore: [], ignoreTool: [] });

  const sent: OutgoingMessage[] = [];
  let events: LiveEvents | null = null;
  let connections = 0;
  let clock = 0;
  const blocks: string[][] = [];
  const calls: (string | null)[][] = [];
  const deck = createLiveRecorder({
    played: recording,
    connect(own) {
      connections += 1;
      events = own;
      return {
        send: async (message) => void sent.push(message),
        transport: () => 'stdio',
        agreed() {},
        close: async () => {},
      };
    },
    tape: {
      add: ({ frames }) => void blocks.push(frames.map(({ payload }) => payload.toString())),
      finish: async () => {},
      discard: async () => void blocks.splice(0),
    },
    form: { type: 'stdio' },
    replaces: false,
    keepsFailures: false,
    timeoutMs: 60_000,
    now: () => {
      clock += 1;
      return clock;
    },
    onCall: ({ topic: asked, outcome }, why) => void calls.push([asked?.method ?? null, outcome, why]),
    ...options,
  });
  const mock = createMock({
    recording,
    matching,
    speed: 'fast',
    events: { onRefusal() {}, onNotice() {} },
    live: deck.live,
  });
  const heard: unknown[] = [];
  const client = mock.createClient((json) => void heard.push(JSON.parse(json.toString())));
  return {
    deck,
    blocks,
    calls,
    heard,
    sent,
    connections: () => connections,
    /** Settles when the server has been sent as many messages. */
    async say(message: object | string, sentThen: number) {
      const text = typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message });
      const json = Buffer.from(text);
      const [parsed] = parseMessages(json);
      if (parsed === undefined) throw new Error('no message');
      client.receive(parsed, json, { send: (answer) => void heard.push(JSON.parse(answer.toString())) });
      await expect.poll(() => sent.length).toBe(sentThen);
    },
    answer: (text: object) => events?.onPayload(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...text }))),
    die: (why: string) => events?.onClosed(why),
  };
}

const idOf = ({ id }: OutgoingMessage) => Number(id);

test('what each mode plays and asks', () => {
  const plans = MODES.map((mode) => [mode, planMode(mode, true), planMode(mode, false)]);
  const [play, ask, both] = [
    { plays: true, asks: false },
    { plays: false, asks: true },
    { plays: true, asks: true },
  ];
  expect(plans).toEqual([
    ['none', play, play],
    ['once', play, ask],
    ['new_episodes', both, ask],
    ['all', ask, ask],
  ]);
});

test('calls are added in the order in which they were asked, whichever is answered first', async () => {
  const { deck, blocks, heard, sent, say, answer } = await openTestDeck();
  await say({ id: 'a', method: 'same' }, 1);
  await say({ id: 'b', method: 'same' }, 2);
  const [first = 0, second = 0] = sent.map(idOf);
  answer({ id: second, result: { n: 2 } });
  expect(blocks).toEqual([]);
  answer({ id: first, result: { n: 1 } });
  expect(heard).toEqual([
    { jsonrpc: '2.0', id: 'b', result: { n: 2 } },
    { jsonrpc: '2.0', id: 'a', result: { n: 1 } },
  ]);
  expect(blocks.map(([, answered]) => JSON.parse(answered ?? '').result.n)).toEqual([1, 2]);
  await deck.finish();
});

test('new ids are none of the recording, and progress comes back with the client’s own token', async () => {
  const recorded = [
    { channel: 'stdin', message: { jsonrpc: '2.0', id: 41, method: 'a' } },
    { channel: 'stdout', message: { jsonrpc: '2.0', id: 41, result: {} } },
  ];
  const { deck, heard, sent, blocks, say, answer } = await openTestDeck(recorded);
  await say({ id: 1, method: 'b', params: { _meta: { progressToken: 'mine' } } }, 1);
  expect(sent[0]?.json.toString()).toContain('"id":42,');
  expect(sent[0]?.json.toString()).toContain('"progressToken":42');
  answer({ method: 'notifications/progress', params: { progressToken: 42, progress: 1 } });
  answer({ id: 42, result: {} });
  expect(heard[0]).toMatchObject({ params: { progressToken: 'mine', progress: 1 } });
  expect(blocks[0]?.[1]).toContain('"progressToken":42');
  await deck.finish();
});

test('the handshake that was played is made with the server before the first call, and what was set is set', async () => {
  const recorded = [
    {
      channel: 'stdin',
      message: { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } },
    },
    {
      channel: 'stdout',
      message: {
        jsonrpc: '2.0',
        id: 1,
        result: { protocolVersion: '2025-06-18', serverInfo: { name: 's', version: '1' } },
      },
    },
  ];
  const { deck, sent, heard, calls, say, answer, connections } = await openTestDeck(recorded);
  await say(
    { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: { roots: {} } } },
    0,
  );
  await say({ method: 'notifications/initialized' }, 0);
  await say({ id: 2, method: 'logging/setLevel', params: { level: 'debug' } }, 0);
  expect([connections(), heard.length]).toEqual([0, 2]);
  await say({ id: 3, method: 'new' }, 1);
  expect(JSON.parse(sent[0]?.json.toString() ?? '')).toMatchObject({
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: { roots: {} } },
  });
  answer({ id: idOf(sent[0] as OutgoingMessage), result: { protocolVersion: '2025-06-18' } });
  await expect.poll(() => sent.length).toBe(3);
  answer({ id: idOf(sent[2] as OutgoingMessage), result: {} });
  await expect.poll(() => sent.length).toBe(4);
  expect(sent.map(({ method }) => method)).toEqual([
    'initialize',
    'notifications/initialized',
    'logging/setLevel',
    'new',
  ]);
  answer({ id: idOf(sent[3] as OutgoingMessage), result: {} });
  expect(calls).toEqual([['new', 'ok', null]]);
  await deck.finish();
});

test('an error is added once the server has said something more, and withheld where it has ended', async () => {
  const { deck, blocks, calls, sent, say, answer, die } = await openTestDeck();
  const refuse = (i: number) =>
    answer({ id: idOf(sent[i] as OutgoingMessage), error: { code: 1, message: 'no' } });
  await say({ id: 1, method: 'a' }, 1);
  refuse(0);
  expect(calls).toEqual([]);
  answer({ method: 'notifications/message', params: {} });
  expect(calls).toEqual([['a', 'error', null]]);
  await say({ id: 2, method: 'b' }, 2);
  refuse(1);
  die('the server has ended');
  expect(calls[1]).toEqual(['b', 'error', 'its answer was an error, and then the server has ended']);
  expect(blocks[0]?.[1]).toContain('"message":"no"');
  expect(JSON.stringify(blocks)).not.toContain('"method":"b"');
  expect(await deck.finish()).toEqual({ added: 1, withheld: 1, failed: 1, isLeft: false, hasServer: true });
});

test('what could not be found again is not asked', async () => {
  const { deck, heard, say, connections } = await openTestDeck();
  const deep = `${'['.repeat(300)}${']'.repeat(300)}`;
  await say(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"deep":${deep}}}`, 0);
  expect(heard).toMatchObject([{ id: 1, error: { data: { reason: 'unreadable' } } }]);
  expect(connections()).toBe(0);
  await deck.finish();
});

test('a tape that cannot be written costs the record, not the answer', async () => {
  const tape = {
    add() {
      throw new Error('the disk is full');
    },
    finish: async () => {},
    discard: async () => {},
  };
  const { deck, heard, calls, sent, say, answer } = await openTestDeck([], { tape });
  await say({ id: 1, method: 'a' }, 1);
  answer({ id: idOf(sent[0] as OutgoingMessage), result: { n: 1 } });
  expect(heard).toEqual([{ jsonrpc: '2.0', id: 1, result: { n: 1 } }]);
  expect(calls).toEqual([['a', 'ok', 'it cannot be stored: the disk is full']]);
  await expect(deck.finish()).rejects.toThrow('the disk is full');
});
