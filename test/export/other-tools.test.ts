import { describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import {
  importedStore,
  importForeign,
  linesOf,
  OTHER_TOOLS,
  sessionOf,
  talkIn,
  textOf,
} from '../support/other-tools.ts';
import { tempStore } from '../support/tapedeck.ts';
import { contentOf, exportText, importText } from '../support/text-recording.ts';

const HANDSHAKE = ['> initialize 0', '< answer 0', '> notifications/initialized'];
const CONVERSATION = [
  ...HANDSHAKE,
  '> tools/list 1',
  '< answer 1',
  '> tools/call 2',
  '< answer 2',
  '> tools/call 3',
  '< notifications/progress',
  '< notifications/progress',
  '< answer 3',
  '> tools/call 4',
  '< sampling/createMessage 0',
  '> answer 0',
  '< answer 4',
  '> tools/call 5',
  '< answer 5',
];
const BIG = '"structuredContent":{"sum":12345678901234567890,"b":1,"a":2}';

function micros(time: string): number {
  return Date.parse(time) * 1000;
}

describe('mcp-cassette', () => {
  test('a cassette of stdio is one session, with its command, its times and its stray lines', async () => {
    const { store, ids } = await importedStore('cassette-stdio.jsonl');
    const [id = ''] = ids;
    expect(ids).toHaveLength(1);
    const lines = linesOf(store, id);
    expect(talkIn(lines)).toEqual(CONVERSATION.toSpliced(4, 0, '< calculator is ready'));
    expect(lines.slice(0, 6).map(({ at }) => at)).toEqual([4, 85, 86, 90, 91, 92]);
    expect(lines[4]).toMatchObject({ flags: 'crlf' });
    expect(sessionOf(store, id)).toMatchObject({
      ...{ name: null, transport: 'stdio', ended_at: null, end_reason: null, dropped: 0, cwd: null },
      started_at: micros('2026-08-19T07:35:20.250Z'),
      target: "node 'calculator server.mjs' --token '[REDACTED:keyctx:9f86d081]'",
      exchanges: 7,
      unanswered: 0,
      labels: {
        imported: 'mcp-cassette',
        recorder: 'mcp-cassette@0.5.0',
        transport: 'stdio',
        'redacted-by': 'mcp-cassette',
      },
    });
    store.close();
  });

  test('of one over HTTP the streams, written when they ended, are put where their messages came', async () => {
    const { store, ids } = await importedStore('cassette-http.jsonl');
    const lines = linesOf(store, ids[0] ?? '');
    expect(talkIn(lines)).toEqual([
      ...HANDSHAKE,
      '> tools/list 1',
      '< answer 1',
      '< notifications/tools/list_changed',
      '> tools/call 2',
      '< answer 2',
      '> tools/call 3',
      '< notifications/progress',
      '> tools/call 4',
      '< sampling/createMessage 0',
      '> answer 0',
      '< answer 4',
      '< notifications/progress',
      '< answer 3',
      '> tools/call 5',
      '< answer 5',
      '> tools/call 6',
      '< answer 6',
    ]);
    // What a later replay has added follows at its own distances.
    expect(lines.slice(-4).map(({ at }) => at)).toEqual([280, 281, 281, 293]);
    expect(sessionOf(store, ids[0] ?? '')).toMatchObject({
      target: 'https://calculator.example/mcp',
      labels: { transport: 'http' },
      exchanges: 8,
      unanswered: 0,
    });
    store.close();
  });

  test('version 1 is read too, and one cassette behind another is a session of its own', async () => {
    const header =
      '{"type":"header","cassetteVersion":1,"recorder":"a","startedAt":"2026-08-15T14:02:44.380Z"}';
    const frame = '{"type":"frame","t":4,"dir":"c2s","frame":{"jsonrpc":"2.0","id":1,"method":"ping"}}';
    const store = openStore(tempStore());
    const ids = await importForeign(store, [header, frame, header, frame, frame, ''].join('\n'));
    expect(ids.map((id) => linesOf(store, id).length)).toEqual([1, 2]);
    store.close();
  });

  test('lines of an unknown type are left out, as the format asks for, and counted', async () => {
    const header = '{"type":"header","cassetteVersion":2,"startedAt":"2026-08-15T14:02:44Z"}';
    const notes: string[] = [];
    const store = openStore(tempStore());
    await importForeign(store, `${header}\n{"type":"mark"}\n{"type":"mark","t":1}\n`, { notes });
    expect(notes).toEqual(['lines left out, of the unknown type "mark": 2']);
    store.close();
  });
});

describe('mcpsnoop', () => {
  test('each session of the file is one, with its own command, its stderr, and what was dropped', async () => {
    const { store, ids } = await importedStore('mcpsnoop.jsonl');
    const [calculator = '', remote = ''] = ids;
    expect(ids).toHaveLength(2);
    expect(talkIn(linesOf(store, calculator))).toEqual(
      CONVERSATION.toSpliced(1, 0, '! calculator: ready & waiting', '! ', '< calculator v2 <beta>'),
    );
    expect(sessionOf(store, calculator)).toMatchObject({
      name: 'calculator',
      target: 'node calculator.mjs --precise',
      started_at: micros('2026-08-08T20:08:11Z'),
      dropped: 2,
      labels: { imported: 'mcpsnoop', session: 'calculator-4711-0a1b2c3d4e5f', transport: 'stdio' },
    });
    expect(talkIn(linesOf(store, remote).slice(0, 4))).toEqual([...HANDSHAKE, '> tools/call 1']);
    expect(sessionOf(store, remote)).toMatchObject({ name: 'remote', target: '', command: null, dropped: 0 });
    store.close();
  });

  test('what it has cut or masked is marked so, and answers without a message are counted', async () => {
    const notes: string[] = [];
    const store = openStore(tempStore());
    const [, remote = ''] = await importForeign(store, textOf('mcpsnoop.jsonl'), { notes });
    expect(linesOf(store, remote).at(-1)).toMatchObject({
      flags: 'truncated',
      text: expect.stringMatching(/"ty$/),
    });
    const rules =
      'SELECT r.seq, rules FROM frame_redaction AS r JOIN session ON number = session WHERE id = ?';
    expect(store.prepare(rules).all(remote)).toEqual([{ seq: 4, rules: 'mcpsnoop' }]);
    expect(notes).toEqual(['lines left out, of HTTP without a message: 1']);
    store.close();
  });

  test('a page that an HTTP server gave in place of a message is no line of the conversation', async () => {
    const event = '{"session_id":"a","ts":"2026-08-08T20:08:11Z","direction":"s2c","transport":"http"';
    const store = openStore(tempStore());
    const [id = ''] = await importForeign(store, `${event},"seq":1,"status":401,"text":"<html>"}\n`);
    expect([linesOf(store, id), sessionOf(store, id)['dropped']]).toEqual([[], 0]);
    store.close();
  });

  test('numbers that come in another order are not taken for losses', async () => {
    const event = (seq: number) =>
      `{"session_id":"a","seq":${seq},"ts":"2026-08-08T20:08:11Z","direction":"s2c","transport":"http","raw":1}\n`;
    const store = openStore(tempStore());
    const [id = ''] = await importForeign(store, event(2) + event(1) + event(5));
    expect(sessionOf(store, id)).toMatchObject({ frames: 3, dropped: 2 });
    store.close();
  });
});

describe('mcporter', () => {
  test('each connection to a server is a session, and its messages lack what was put into them', async () => {
    const { store, ids } = await importedStore('mcporter.ndjson');
    const sessions = ids.map((id) => sessionOf(store, id));
    expect(sessions.map(({ name }) => name)).toEqual(['calculator', 'linear', 'calculator']);
    expect(sessions.map(({ started_at }) => started_at)).toEqual(
      [0, 3, 400].map((ms) => micros('2026-05-16T12:00:00Z') + ms * 1000),
    );
    expect(sessions[0]).toMatchObject({ target: '', command: null, labels: { imported: 'mcporter' } });
    const [first = [], second = [], third = []] = ids.map((id) => linesOf(store, id));
    expect([talkIn(first), talkIn(second)]).toEqual([CONVERSATION, ['> initialize 0', '< answer 0']]);
    expect(talkIn(third)).toEqual(['> initialize 0', '< answer 0']);
    expect([...first, ...second, ...third].filter(({ text }) => /"dir"|lifecycle/.test(text))).toEqual([]);
    store.close();
  });

  test('`_meta` is taken out wherever it stands', async () => {
    const meta = '"_meta":{"dir":"send","server":"a","ts":"2026-05-16T12:00:00.000Z"}';
    const store = openStore(tempStore());
    const forms = [
      `{${meta},"jsonrpc":"2.0"}`,
      `{"jsonrpc":"2.0",${meta},"id":1.0}`,
      `{ "jsonrpc" : "2.0" , ${meta} }`,
    ];
    const [id = ''] = await importForeign(store, forms.join('\n'));
    expect(linesOf(store, id).map(({ text }) => text)).toEqual([
      '{"jsonrpc":"2.0"}',
      '{"jsonrpc":"2.0","id":1.0}',
      '{ "jsonrpc" : "2.0" }',
    ]);
    store.close();
  });
});

describe('agent-vcr', () => {
  test("Python's: in the order of time, notifications before their answer, and no null that was not said", async () => {
    const { store, ids } = await importedStore('agent-vcr-python.vcr');
    const lines = linesOf(store, ids[0] ?? '');
    expect(talkIn(lines)).toEqual([
      '> initialize 0',
      '< answer 0',
      '> tools/list 1',
      '< answer 1',
      '> tools/call 2',
      '< answer 2',
      '> tools/call 3',
      '> tools/call 4',
      '< answer 4',
      '< notifications/progress',
      '< notifications/progress',
      '< answer 3',
      '> tools/call 5',
      '< answer 5',
    ]);
    expect(lines[2]?.text).toBe('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
    expect(lines[8]?.text).toBe(
      '{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"2 \\u2013 zwei"}]}}',
    );
    expect(lines[13]?.text).toBe(
      '{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"Unknown tool: subtract","data":null}}',
    );
    const latencies = 'SELECT latency FROM message WHERE latency IS NOT NULL ORDER BY seq';
    expect(store.prepare(latencies).pluck().all()).toEqual([0, 28100, 8750, 3500, 180000, 250]);
    expect(sessionOf(store, ids[0] ?? '')).toMatchObject({
      // Without a zone: taken for UTC.
      started_at: micros('2026-02-08T10:30:00.123Z') + 456,
      command: '["python","servers/calculator.py","--präzise"]',
      labels: {
        ...{ env: 'test', purpose: 'fixture', session_id: 'f3b1' },
        ...{ imported: 'agent-vcr', transport: 'stdio' },
      },
    });
    store.close();
  });

  test("TypeScript's, and the same on one line", async () => {
    const { store, ids } = await importedStore('agent-vcr-typescript.vcr');
    const talk = [
      '> initialize 0',
      '< answer 0',
      '> tools/list 1',
      '< answer 1',
      '> tools/call 2',
      '< answer 2',
    ];
    const lines = linesOf(store, ids[0] ?? '');
    expect(talkIn(lines)).toEqual(talk);
    const oneLine = JSON.stringify(JSON.parse(textOf('agent-vcr-typescript.vcr')));
    const [again = ''] = await importForeign(store, oneLine);
    expect(linesOf(store, again)).toEqual(lines);
    store.close();
  });

  test('a command that is given as a line stays a line', async () => {
    const store = openStore(tempStore());
    const text = textOf('agent-vcr-typescript.vcr').replace('"node"', '"node server.js"');
    const [id = ''] = await importForeign(store, text);
    expect(sessionOf(store, id)).toMatchObject({ command: null, target: 'node server.js calculator.mjs' });
    store.close();
  });

  test('tags of any type are labels, and none hides where the session comes from', async () => {
    const store = openStore(tempStore());
    const text = textOf('agent-vcr-typescript.vcr').replace(
      '"tags": {}',
      '"tags": {"run":7,"on":null,"os":["a"],"imported":"no"}',
    );
    const [id = ''] = await importForeign(store, text);
    expect(sessionOf(store, id)['labels']).toEqual({
      ...{ run: '7', os: '["a"]' },
      ...{ imported: 'agent-vcr', transport: 'stdio' },
    });
    store.close();
  });

  test('what was never answered has no answer', async () => {
    const document = JSON.parse(textOf('agent-vcr-typescript.vcr'));
    document.session.interactions[1].response = null;
    const store = openStore(tempStore());
    const [id = ''] = await importForeign(store, JSON.stringify(document));
    expect(sessionOf(store, id)).toMatchObject({ frames: 5, unanswered: 1 });
    store.close();
  });
});

test.each(OTHER_TOOLS.filter((name) => !name.endsWith('.vcr')))(
  '%s: messages are what stands in the file, byte for byte',
  async (name) => {
    const { store, ids } = await importedStore(name);
    const lines = ids.flatMap((id) => linesOf(store, id)).filter(({ flags }) => flags === null);
    const messages = lines.filter(({ text }) => text.startsWith('{"jsonrpc"'));
    // Without its last brace: a member may have been taken out before it.
    for (const { text } of messages) expect(textOf(name)).toContain(text.slice(0, -1));
    store.close();
  },
);

test.each(OTHER_TOOLS.filter((name) => !name.includes('typescript')))(
  '%s: large numbers and the order of members stay',
  async (name) => {
    const { store, ids } = await importedStore(name);
    const lines = linesOf(store, ids[0] ?? '');
    expect(lines.filter(({ text }) => text.includes(BIG))).toHaveLength(1);
    store.close();
  },
);

test.each(OTHER_TOOLS)('%s: exported, imported and exported again it is the same', async (name) => {
  const { store, ids } = await importedStore(name);
  for (const id of ids) {
    const text = exportText(store, id);
    const copy = openStore(tempStore());
    const again = await importText(copy, text);
    expect(exportText(copy, again)).toBe(text);
    expect(contentOf(copy, again)).toEqual(contentOf(store, id));
    copy.close();
  }
  store.close();
});

test.each(OTHER_TOOLS)(
  '%s is the same with a mark before it, CR LF, blank lines and in single bytes',
  async (name) => {
    const { store, ids } = await importedStore(name);
    const strange = Buffer.from(`\ufeff\n\n${textOf(name).replaceAll('\n', '\r\n')}\n\n`);
    const copy = openStore(tempStore());
    const again = await importForeign(copy, strange, { pieceBytes: 1 });
    expect(again.map((id) => linesOf(copy, id))).toEqual(ids.map((id) => linesOf(store, id)));
    copy.close();
    store.close();
  },
);

test('a name that is given stands in place of that in the file', async () => {
  const store = openStore(tempStore());
  const ids = await importForeign(store, textOf('mcporter.ndjson'), { name: 'mine' });
  expect(ids.map((id) => sessionOf(store, id)['name'])).toEqual(['mine', 'mine', 'mine']);
  store.close();
});
