/** Which frames are kept without their payloads: those that the filter would select, and those of which nobody can say. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FIELD_NAMES } from '../../../src/inspect/filter/fields.ts';
import { parseFilter } from '../../../src/inspect/filter/filter.ts';
import { readFrameRule } from '../../../src/inspect/filter/frame-rule.ts';
import { selectFrames } from '../../../src/inspect/filter/sql.ts';
import { PLAIN_PROFILE } from '../../../src/protocol/redact/profile.ts';
import { createMetaRedactor } from '../../../src/protocol/redact/redactor.ts';
import { openSpool, openStore, type Store } from '../../../src/store/file/open.ts';
import { createDigest } from '../../../src/store/file/secret.ts';
import { spoolPath } from '../../../src/store/file/spool.ts';
import { eachBareFrame, eachFrame } from '../../../src/store/read/frames.ts';
import { findSession } from '../../../src/store/read/sessions.ts';
import type { HttpItem } from '../../../src/store/record/http-items.ts';
import { createMetaFor } from '../../../src/store/sample/meta-for.ts';
import { reindexSession } from '../../../src/store/write/index.ts';
import { createTakeIn } from '../../../src/store/write/take-in.ts';
import { anyFilter, anySession, FILTERED_AT, recordingOf } from '../../support/filters.ts';
import {
  answered,
  asked,
  EVENT_STREAM,
  ended,
  eventOf,
  JSON_TYPE,
  type Recording,
  rpc,
  STOPPED,
  startRecording,
} from '../../support/http-store.ts';
import { modernMeta } from '../../support/messages.ts';
import { scale } from '../../support/scale.ts';
import { FAKE_JWT, FAKE_KEY, storeHolds } from '../../support/secrets.ts';
import { saveIntake, stdioIntake } from '../../support/spools.ts';
import { tempStore } from '../../support/tapedeck.ts';
import { importText } from '../../support/text-recording.ts';

const ASKABLE = ['method', 'tool', 'prompt', 'resource', 'kind', 'id', 'dir', 'channel', 'size', 'text'];

const ruleOrNull = (filter: string) => {
  try {
    return readFrameRule([filter]);
  } catch {
    return null;
  }
};

/** Answers to no request, of which a filter about calls cannot be asked. */
function strayAnswers(store: Store): number[] {
  const sql = `SELECT DISTINCT seq FROM message WHERE kind IN ('result', 'error') AND relation IS NOT 'reply'`;
  return store.prepare<[], number>(sql).pluck().all();
}

test('of random sessions, frames are kept without payloads that the same filter selects once they are stored', {
  timeout: 120_000,
}, async () => {
  let [selected, passed] = [0, 0];
  await fc.assert(
    fc.asyncProperty(
      anySession,
      fc.array(anyFilter, { minLength: 20, maxLength: 20 }),
      async (one, filters) => {
        const store = openStore(tempStore());
        await importText(store, recordingOf(one));
        const session = findSession(store, 'latest');
        const stray = strayAnswers(store);
        for (const text of filters) {
          const rule = ruleOrNull(text);
          if (rule === null) continue;
          const isMetaOnly = createMetaFor(rule)();
          const frames = [...eachBareFrame(store, session.number)];
          const found = frames.filter((frame) => isMetaOnly(frame)).map(({ seq }) => seq);
          const only = selectFrames(store, parseFilter(text, FILTERED_AT));
          const bySql = [...eachFrame(store, session, only)].map(({ seq }) => seq);
          const isOfCalls = /method|tool|prompt|resource|id[=!~]/.test(text);
          const expected = new Set([...bySql, ...(isOfCalls ? stray : [])]);
          expect(found, text).toEqual([...expected].toSorted((a, b) => a - b));
          selected += bySql.length;
          passed += frames.length - found.length;
        }
        store.close();
      },
    ),
    { numRuns: scale(120, 12) },
  );
  expect(Math.min(selected, passed)).toBeGreaterThan(scale(300, 20));
});

test('what only a later frame tells, or is alike in all frames of a session, cannot be asked', () => {
  const askable = FIELD_NAMES.filter((name) => {
    const value = { kind: 'request', dir: 'client', channel: 'stdin', size: '1' }[name as string] ?? 'a';
    return ruleOrNull(`${name}${name === 'text' ? '~' : '='}${value}`) !== null;
  });
  expect(askable).toEqual(ASKABLE);
  const said = (filter: string) => {
    try {
      return readFrameRule([filter]);
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(said('tool=a (dur>2s or kind=error)')).toBe(
    'Expected fields that a frame has as it is stored after `--meta-for`, got `dur` in `tool=a (dur>2s or kind=error)`: it is known only once the request is stored. Fields: method, tool, prompt, resource, kind, id, dir, channel, size, text.',
  );
  expect(said('not name=a')).toContain('`--capture meta` keeps no payloads of whole sessions');
  expect(said(' ')).toContain('got an empty one');
  expect(said('tool=a dur>')).toContain('of the filter, got');
});

const OF_READ = 'tool=read_file';

const call = (id: number, name: string, more: object = {}) =>
  rpc({ id, method: 'tools/call', params: { name, arguments: { text: `asked-${name}` }, ...more } });

const answer = (id: number, text: string) => rpc({ id, result: { content: [{ type: 'text', text }] } });

const META = '[redacted:meta:…]';

const [IN, OUT, ERR] = [0, 1, 2] as const;

type Line = readonly [kind: 0 | 1 | 2, text: string];

/** Lines over stdio, as they are stored with these filters. The last one may have no end. */
async function storedLines(filters: readonly string[], lines: readonly Line[]): Promise<string[]> {
  const store = openStore(tempStore());
  const intake = stdioIntake(PLAIN_PROFILE, 'it', filters);
  intake.open(store);
  for (const [kind, text] of lines)
    intake.framer.feed({ kind, owner: 0, at: 1000, bytes: Buffer.from(text) });
  await intake.framer.finish();
  saveIntake(intake);
  const texts = store
    .prepare<[], string>('SELECT CAST(payload AS TEXT) FROM frame ORDER BY seq')
    .pluck()
    .all();
  store.close();
  return texts.map((text) => text.replaceAll(/[0-9a-f]{12}/g, '…'));
}

const progress = rpc({ method: 'notifications/progress', params: { progressToken: 't', progress: 1 } });
const task = (id: number, method: string) => rpc({ id, method, params: { taskId: 'task-1' } });

const CASES: [what: string, filters: string[], lines: Line[], kept: (string | null)[]][] = [
  [
    'a call with all that belongs to it, and no other',
    [OF_READ],
    [
      [IN, call(1, 'read_file', { _meta: { progressToken: 't' } })],
      [IN, call(2, 'echo')],
      [OUT, progress],
      [OUT, answer(2, 'said')],
      [ERR, 'a line for people'],
      [OUT, answer(1, 'kept back')],
    ],
    [null, call(2, 'echo'), null, answer(2, 'said'), 'a line for people', null],
  ],
  [
    'what is asked about a task of a call',
    [OF_READ],
    [
      [IN, call(1, 'read_file', { task: { ttl: 60_000 } })],
      [OUT, rpc({ id: 1, result: { task: { taskId: 'task-1', status: 'working' } } })],
      [IN, task(2, 'tasks/result')],
      [OUT, answer(2, 'of the task')],
      [IN, rpc({ id: 3, method: 'ping' })],
    ],
    [null, null, null, null, rpc({ id: 3, method: 'ping' })],
  ],
  [
    'answers to what did not pass here, as nobody can say what they answer',
    [OF_READ],
    [
      [OUT, answer(7, 'late')],
      [OUT, rpc({ method: 'notifications/message', params: { level: 'info', data: 'x' } })],
    ],
    [null, rpc({ method: 'notifications/message', params: { level: 'info', data: 'x' } })],
  ],
  [
    'what was to be a message and cannot be read, but not words for people',
    [OF_READ],
    [
      [OUT, '{"jsonrpc":"2.0","id":1,"result":{"mean":NaN}}'],
      [OUT, 'listening on a pipe'],
    ],
    [null, 'listening on a pipe'],
  ],
  ['a message that breaks off', [OF_READ], [[OUT, '{"jsonrpc":"2.0","id":1,"result":{"cont']], [null]],
  [
    'a batch with one such message',
    [OF_READ],
    [[IN, `[${call(1, 'read_file')},${call(2, 'echo')}]`]],
    [null],
  ],
  [
    'what is large, whoever sent it',
    ['size>150', 'channel=stderr'],
    [
      [IN, call(1, 'echo')],
      [OUT, answer(1, 'long '.repeat(40))],
      [ERR, 'a line for people'],
    ],
    [call(1, 'echo'), rpc({ id: 1, result: { payload: META } }), null],
  ],
  [
    'an answer alone, which still says what it answers and how the call ended',
    ['dir=server'],
    [
      [IN, `[${call(1, 'a')},${call(2, 'b')}]`],
      [IN, rpc({ id: 'three', method: 'tools/call', params: { name: 'c' } })],
      [OUT, `[${rpc({ id: 2, error: { code: -1, message: 'hidden' } })},${answer(1, 'hidden')}]`],
      [OUT, rpc({ id: 'three', result: { isError: true, content: [] } })],
      [OUT, answer(4, 'to no request')],
    ],
    [
      `[${call(1, 'a')},${call(2, 'b')}]`,
      rpc({ id: 'three', method: 'tools/call', params: { name: 'c' } }),
      `[${rpc({ id: 2, error: { code: 0, message: META } })},${rpc({ id: 1, result: { payload: META } })}]`,
      rpc({ id: 'three', result: { isError: true, payload: META } }),
      null,
    ],
  ],
  [
    'an answer whose request was not kept either, so that nothing says its id',
    ['size>10'],
    [
      [IN, call(1, 'a')],
      [OUT, answer(1, 'hidden')],
    ],
    [null, null],
  ],
  [
    'all but what is named',
    ['not tool=echo'],
    [
      [IN, call(1, 'echo')],
      [IN, call(2, 'other')],
      [OUT, answer(1, 'said')],
      [ERR, 'a line for people'],
    ],
    [call(1, 'echo'), null, answer(1, 'said'), null],
  ],
  [
    'a text, by what passed before secrets were replaced',
    [`text~${FAKE_JWT.slice(0, 20)}`],
    [
      [ERR, `token ${FAKE_JWT}`],
      [ERR, 'no token'],
    ],
    [null, 'no token'],
  ],
  [
    'the first line of a private key, whose others are still known as such',
    ['text~BEGIN'],
    FAKE_KEY.split('\n').map((line) => [ERR, line]),
    [
      null,
      ...FAKE_KEY.split('\n')
        .slice(1)
        .map(() => '[redacted:private-key:…]'),
    ],
  ],
];
test.each(CASES)('without its payload is kept %s', async (_, filters, lines, kept) => {
  const whole = lines.map(
    ([kind, text], i): Line => [kind, i === lines.length - 1 && text.endsWith('cont') ? text : `${text}\n`],
  );
  expect(await storedLines(filters, whole)).toEqual(kept.map((text) => text ?? META));
});

const HIDDEN = 'hidden-payload';

/** A call of a modern client by HTTP, whose headers repeat what it asks. */
function askedModern(exchange: number, name: string) {
  const headers = [...JSON_TYPE, 'Mcp-Method', 'tools/call', 'Mcp-Name', name, 'Mcp-Param-Text', HIDDEN];
  const body = rpc({
    id: exchange,
    method: 'tools/call',
    params: { name, arguments: { text: HIDDEN }, _meta: modernMeta() },
  });
  return asked(exchange, { headers, body });
}

const hiddenAnswer = (id: number) => ({ id, result: { content: [{ type: 'text', text: HIDDEN }] } });

const payloadsOf = (recording: Recording) =>
  recording.all<{ rules: string | null; size: number; text: string }>(
    `SELECT r.rules, f.size, CAST(f.payload AS TEXT) AS text FROM frame AS f
       LEFT JOIN frame_redaction AS r ON r.session = f.session AND r.seq = f.seq ORDER BY f.seq`,
  );

test('over HTTP no file has such a payload at any moment, in whatever form it comes', async () => {
  const recording = startRecording({ metaFor: [OF_READ], maxFrameBytes: 400 });
  const holdsNone = () => {
    recording.save(true);
    expect(storeHolds(recording.db, HIDDEN)).toBe(false);
  };
  const answers: Parameters<typeof answered>[1][] = [
    { body: rpc(hiddenAnswer(1)) },
    { headers: EVENT_STREAM, body: `: hello\n\n${eventOf(hiddenAnswer(2), `event-${HIDDEN}`)}` },
    { body: rpc({ id: 3, result: { content: [HIDDEN, 'x'.repeat(1000)] } }) },
    {
      headers: [...JSON_TYPE, 'Content-Encoding', 'gzip'],
      body: gzipSync(rpc(hiddenAnswer(4))).subarray(0, 40),
    },
    { status: 500, headers: ['Content-Type', 'text/html'], body: `<p>${HIDDEN}</p>` },
    { body: rpc(hiddenAnswer(6)).slice(0, -5) },
  ];
  for (const [i, given] of answers.entries()) {
    const exchange = i + 1;
    const [head, ...body] = askedModern(exchange, 'read_file');
    recording.feed(head as HttpItem);
    for (const piece of body) {
      recording.feed(piece);
      holdsNone();
    }
    for (const piece of answered(exchange, given)) {
      recording.feed(piece);
      holdsNone();
    }
    recording.feed(ended(exchange, exchange === 6 ? { isComplete: false, closedBy: 'server' } : {}));
    holdsNone();
  }
  recording.feed(
    ...asked(7, { body: call(7, 'echo') }),
    ...answered(7, { body: answer(7, 'said') }),
    ended(7),
  );
  await recording.close();
  holdsNone();
  const frames = payloadsOf(recording);
  expect(frames.filter(({ text }) => !text.startsWith('[redacted:meta:') && text !== '')).toEqual([
    { rules: null, size: expect.any(Number), text: call(7, 'echo') },
    { rules: null, size: expect.any(Number), text: answer(7, 'said') },
  ]);
  expect(frames.filter(({ rules }) => rules === 'meta').length).toBeGreaterThanOrEqual(11);
  expect(recording.all('SELECT * FROM sse_event')).toEqual([]);
  expect(recording.all(`SELECT 1 FROM frame WHERE sha256 IS NOT NULL`)).toEqual([]);
  expect(recording.all('SELECT DISTINCT target FROM message ORDER BY target DESC')).toEqual([
    { target: 'echo' },
    { target: null },
  ]);
  expect(recording.all("SELECT json_extract(redaction, '$.metaFor[0]') AS filter FROM session")).toEqual(
    recording.all('SELECT 1 FROM session').map(() => ({ filter: OF_READ })),
  );
  recording.store.close();
});

test('an event that a server sends again is kept without its payload', async () => {
  const recording = startRecording({ metaFor: [OF_READ] });
  const session = ['Mcp-Session-Id', 'one'];
  const event = eventOf(hiddenAnswer(1), 'e1');
  recording.feed(
    ...asked(1, { headers: [...JSON_TYPE, ...session], body: call(1, 'read_file') }),
    ...answered(1, { headers: [...EVENT_STREAM, ...session], body: event }),
    ended(1),
    ...asked(2, { method: 'GET', headers: [...session, 'Last-Event-ID', 'e0'] }),
    ...answered(2, { headers: [...EVENT_STREAM, ...session], body: event }),
    ended(2),
  );
  await recording.close();
  expect(storeHolds(recording.db, HIDDEN)).toBe(false);
  const [, first, again] = payloadsOf(recording);
  expect(again).toEqual(first);
});

test('an answer by HTTP that is kept without its payload ends its request, in a body and in a stream', async () => {
  const recording = startRecording({ metaFor: ['dir=server', 'channel=sse'] });
  const id = 'three';
  const tool = (name: string) => rpc({ id, method: 'tools/call', params: { name } });
  recording.feed(
    ...asked(1, { body: call(1, 'one') }),
    ...answered(1, { body: rpc(hiddenAnswer(1)) }),
    ended(1),
    ...asked(2, { body: call(2, 'two') }),
    ...answered(2, { headers: EVENT_STREAM, body: eventOf({ id: 2, error: { code: -1, message: HIDDEN } }) }),
    ended(2),
    ...asked(3, { body: tool('three') }),
    ...answered(3, { body: rpc({ id, result: { isError: true, content: [HIDDEN] } }) }),
    ended(3),
    ...asked(4, { body: call(4, 'never answered') }),
  );
  await recording.close();
  expect(storeHolds(recording.db, HIDDEN)).toBe(false);
  const read = () => ({
    outcomes: recording.all('SELECT target, outcome FROM exchange ORDER BY request_seq'),
    facts: recording.all(
      'SELECT sum(exchanges) AS exchanges, sum(errors) AS errors, sum(unanswered) AS unanswered FROM session',
    ),
  });
  const expected = {
    outcomes: [
      { target: 'one', outcome: 'ok' },
      { target: 'two', outcome: 'error' },
      { target: 'three', outcome: 'tool-error' },
      { target: 'never answered', outcome: 'unanswered' },
    ],
    facts: [{ exchanges: 4, errors: 2, unanswered: 1 }],
  };
  expect(read()).toEqual(expected);
  for (const { number } of recording.all<{ number: number }>('SELECT number FROM session'))
    reindexSession(recording.store, number);
  expect(read()).toEqual(expected);
  recording.store.close();
});

test('the hash is of the bytes that passed, before any secret in them was replaced', async () => {
  const recording = startRecording({ metaFor: [OF_READ] });
  const secret = { ...hiddenAnswer(1), result: { content: [FAKE_JWT] } };
  for (const [exchange, body] of [
    [1, hiddenAnswer(1)],
    [2, secret],
    [3, secret],
  ] as const)
    recording.feed(
      ...asked(exchange, { body: call(1, 'read_file') }),
      ...answered(exchange, { body: rpc(body) }),
      ended(exchange),
    );
  await recording.close();
  const redactor = createMetaRedactor(createDigest(recording.store));
  const hashes = [hiddenAnswer(1), secret, secret].map((body) =>
    redactor.payload(Buffer.from(rpc(body)), false, false)?.payload.toString(),
  );
  const frames = payloadsOf(recording);
  expect([1, 3, 5].map((i) => frames[i]?.text)).toEqual(hashes);
  expect(new Set(hashes).size).toBe(2);
  expect(frames.map(({ rules }) => rules)).toEqual(frames.map(() => 'meta'));
});

test('a spool has no such payload either, nor the store that takes it in', () => {
  const db = tempStore();
  const store = openStore(db);
  const spool = openSpool(spoolPath(db, 'one'), false);
  const intake = stdioIntake(PLAIN_PROFILE, 'it', [OF_READ]);
  intake.openSpool(spool);
  const lines = [call(1, 'read_file', { _meta: { hidden: HIDDEN } }), call(2, 'echo')];
  intake.framer.feed({
    kind: IN,
    owner: 0,
    at: 1,
    bytes: Buffer.from(`${lines.join('\n')}\n${call(3, 'read_file')}`),
  });
  saveIntake(intake);
  intake.framer.feed({ kind: OUT, owner: 0, at: 2, bytes: Buffer.from(`${rpc(hiddenAnswer(1))}\n`) });
  saveIntake(intake);
  intake.end(STOPPED);
  for (const file of [spoolPath(db, 'one'), db]) expect(storeHolds(file, HIDDEN)).toBe(false);
  expect(createTakeIn(store, spool).advance(1000)).toBe(true);
  const texts = store
    .prepare<[], string>('SELECT CAST(payload AS TEXT) FROM frame ORDER BY seq')
    .pluck()
    .all();
  expect(texts.map((text) => text.slice(0, 15))).toEqual([
    '[redacted:meta:',
    call(2, 'echo').slice(0, 15),
    '[redacted:meta:',
  ]);
  expect(storeHolds(db, HIDDEN)).toBe(false);
  spool.close();
  store.close();
});

test('filters that change amid a session count for what is stored from then on, and its row names all of them', async () => {
  const recording = startRecording({ metaFor: [OF_READ] });
  const passed = (exchange: number, name: string) => {
    recording.feed(
      ...asked(exchange, { body: call(exchange, name) }),
      ...answered(exchange, { body: answer(exchange, name) }),
      ended(exchange),
    );
    recording.save();
  };
  passed(1, 'read_file');
  passed(2, 'echo');
  const metaFor = ['tool=echo'];
  recording.feed(...asked(3, { body: call(3, 'other') }));
  recording.save();
  recording.intake.setRedaction({ ...PLAIN_PROFILE, metaFor }, createMetaFor(readFrameRule(metaFor)));
  // Whose answer this is, the new rule has not seen.
  recording.feed(...answered(3, { body: answer(3, 'other') }), ended(3));
  passed(4, 'read_file');
  passed(5, 'echo');
  await recording.close();
  expect(payloadsOf(recording).map(({ rules }) => rules)).toEqual(
    [
      ['meta', 'meta'],
      [null, null],
      [null, 'meta'],
      [null, null],
      ['meta', 'meta'],
    ].flat(),
  );
  expect(recording.all("SELECT json_extract(redaction, '$.metaFor') AS filters FROM session")).toEqual([
    { filters: JSON.stringify([OF_READ, 'tool=echo']) },
  ]);
});
