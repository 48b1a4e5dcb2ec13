import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PLAIN_PROFILE } from '../../../src/protocol/redact/profile.ts';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { createIntake } from '../../../src/store/record/intake.ts';
import {
  answered,
  asked,
  EVENT_STREAM,
  ended,
  JSON_TYPE,
  rpc,
  STOPPED,
  startRecording,
} from '../../support/http-store.ts';
import { inFull, scale } from '../../support/scale.ts';
import { FAKE_KEY, FAKE_SECRETS, storeHolds } from '../../support/secrets.ts';
import {
  fixture,
  record,
  showFrames,
  tapedeck,
  tapedeckInProcess,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

const DIGITS = /(?<=\[redacted:[a-z-]+:)[0-9a-f]{12}/g;

/** A store, and a session of stdio in it that is fed by hand. */
function startStdio() {
  const db = tempStore();
  const store = openStore(db);
  const intake = createIntake(
    {
      ...{ name: null, labels: [], basis: 'stdio-process', transport: 'stdio', target: 'x', command: ['x'] },
      ...{ cwd: null, at: 1, tapedeck: '0', pid: process.pid, parentPid: process.ppid },
    },
    1024 * 1024,
    PLAIN_PROFILE,
    () => {},
    () => {},
  );
  intake.open(store);
  function save(): void {
    intake.save(true);
    intake.confirm();
  }
  return { db, store, intake, save };
}

function textsOf(store: Store): string[] {
  return store
    .prepare<[], string>("SELECT channel || ' ' || CAST(payload AS TEXT) FROM frame ORDER BY channel, seq")
    .pluck()
    .all()
    .map((text) => text.replaceAll(DIGITS, '…'));
}

/** One piece of a text after the other, cut at these places. */
function cutAt(text: string, places: readonly number[]): string[] {
  const sorted = [0, ...places.map((place) => place % text.length).toSorted((a, b) => a - b), text.length];
  return sorted.slice(1).map((end, i) => text.slice(sorted[i], end));
}

const places = fc.array(fc.nat(100_000), { maxLength: 8 });
const planted = fc.shuffledSubarray([...FAKE_SECRETS], { minLength: 1, maxLength: 3 });

test('however lines are cut into chunks, what is stored is the same, and no file has a secret', () => {
  fc.assert(
    fc.property(planted, places, fc.constantFrom(0, 1, 2), (secrets, cuts, channel) => {
      const lines = secrets.flatMap(({ text }) => [
        rpc({
          id: 1,
          method: 'tools/call',
          params: { arguments: { text, nested: JSON.stringify({ text }) } },
        }),
        `a log line with ${text.replaceAll('\n', ' ')}`,
      ]);
      const [whole, cut] = [[], cuts].map((own) => {
        const { db, store, intake, save } = startStdio();
        for (const chunk of cutAt(`${lines.join('\n')}\n`, own)) {
          intake.framer.feed({ kind: channel, owner: 0, at: 2, bytes: Buffer.from(chunk) });
          save();
          for (const { secret } of secrets) expect(storeHolds(db, secret), secret).toBe(false);
        }
        const texts = textsOf(store);
        store.close();
        return texts;
      });
      expect(cut).toEqual(whole);
      expect(whole).toHaveLength(lines.length);
    }),
    { numRuns: scale(60, 15) },
  );
});

test('a line that ends amid a secret is stored without it', async () => {
  const { db, store, intake, save } = startStdio();
  const { text = '' } = FAKE_SECRETS.find(({ rule }) => rule === 'github-token') ?? {};
  intake.framer.feed({ kind: 1, owner: 0, at: 1, bytes: Buffer.from(`{"a":1,"b":"x ${text.slice(0, 20)}`) });
  save();
  expect(store.prepare('SELECT CAST(bytes AS TEXT) AS text FROM unfinished').all()).toEqual([
    { text: '{"a":1,"b":"x ' },
  ]);
  await intake.framer.finish();
  save();
  intake.end(STOPPED);
  expect(textsOf(store)).toEqual(['stdout {"a":1,"b":"x [redacted:github-token:…]']);
  store.close();
  expect(storeHolds(db, text.slice(0, 20))).toBe(false);
});

test('a private key over many lines of stderr is replaced line by line, and what follows is not', () => {
  const { db, store, intake, save } = startStdio();
  const lines = ['before', ...FAKE_KEY.split('\n'), 'after', '{"jsonrpc":"2.0"}'];
  for (const line of lines) intake.framer.feed({ kind: 2, owner: 0, at: 1, bytes: Buffer.from(`${line}\n`) });
  save();
  const key = 'stderr [redacted:private-key:…]';
  expect(textsOf(store)).toEqual([
    'stderr before',
    key,
    key,
    key,
    key,
    key,
    'stderr after',
    'stderr {"jsonrpc":"2.0"}',
  ]);
  store.close();
  for (const line of FAKE_KEY.split('\n').slice(1, 4)) expect(storeHolds(db, line)).toBe(false);
});

test('a private key in lines of base64 on stderr is replaced line by line, and what follows is not', () => {
  const { db, store, intake, save } = startStdio();
  const coded =
    Buffer.from(`${FAKE_KEY}\n`)
      .toString('base64')
      .match(/.{1,76}/g) ?? [];
  const lines = ['before', ...coded.map((line, i) => (i === 0 ? `key: ${line}` : line)), 'after'];
  for (const line of lines) intake.framer.feed({ kind: 2, owner: 0, at: 1, bytes: Buffer.from(`${line}\n`) });
  save();
  const key = 'stderr [redacted:private-key:…]';
  expect(textsOf(store)).toEqual([
    'stderr before',
    'stderr key: [redacted:private-key:…]',
    ...coded.slice(1).map(() => key),
    'stderr after',
  ]);
  store.close();
  for (const line of coded) expect(storeHolds(db, line)).toBe(false);
});

test('a log that only mentions the beginning of a key loses no further lines', () => {
  const { store, intake, save } = startStdio();
  const lines = [`expected ${FAKE_KEY.split('\n')[0]} in the file`, 'so nothing was loaded at all', 'x'];
  for (const line of lines) intake.framer.feed({ kind: 2, owner: 0, at: 1, bytes: Buffer.from(`${line}\n`) });
  save();
  expect(textsOf(store).slice(1)).toEqual(['stderr so nothing was loaded at all', 'stderr x']);
  store.close();
});

inFull('however bodies and events are cut into pieces, no file has a secret', async () => {
  await fc.assert(
    fc.asyncProperty(planted, places, async (secrets, cuts) => {
      const recording = startRecording();
      const holdsNone = () => {
        recording.save(true);
        for (const { secret } of secrets) expect(storeHolds(recording.db, secret), secret).toBe(false);
      };
      const texts = secrets.map(({ text }) => text);
      const call = rpc({ id: 1, method: 'tools/call', params: { name: 'x', arguments: { texts } } });
      const event = `id: 1\ndata: ${rpc({ id: 1, result: { content: texts.map((text) => ({ type: 'text', text })) } })}\n\n`;
      for (const [exchange, headers, answer] of [
        [1, EVENT_STREAM, `: hello\n\n${event}${event}`],
        [2, JSON_TYPE, rpc({ id: 1, result: { texts } })],
      ] as const) {
        const [head, , requestEnd] = asked(exchange, { body: call });
        const [answerHead] = answered(exchange, { headers: [...headers] });
        if (head === undefined || requestEnd === undefined || answerHead === undefined)
          throw new Error('no exchange');
        recording.feed(head);
        for (const piece of cutAt(call, cuts)) {
          recording.feed({ type: 'request-body', exchange, at: 5, bytes: Buffer.from(piece) });
          holdsNone();
        }
        recording.feed(requestEnd, answerHead);
        for (const piece of cutAt(answer, cuts)) {
          recording.feed({ type: 'response-body', exchange, at: 6, bytes: Buffer.from(piece) });
          holdsNone();
        }
        recording.feed(ended(exchange));
        holdsNone();
      }
      const redacted = recording.all('SELECT DISTINCT seq FROM frame_redaction');
      expect(redacted).toHaveLength(5);
      await recording.close();
      recording.store.close();
    }),
    { numRuns: scale(25, 6) },
  );
});

test('what is indexed of a redacted body or event is read from what is stored', async () => {
  const recording = startRecording();
  const { text = '' } = FAKE_SECRETS.find(({ rule }) => rule === 'github-token') ?? {};
  const params = { uri: `file:///${text}` };
  recording.feed(
    ...asked(1, { body: rpc({ id: 1, method: 'resources/read', params }) }),
    ...answered(1, {
      headers: EVENT_STREAM,
      body: `id: ${text}\ndata: ${rpc({ id: 2, method: 'resources/read', params })}\n\n`,
    }),
    ended(1),
  );
  await recording.close();
  const shown = recording.all<{ seen: string }>(
    'SELECT target AS seen FROM message UNION ALL SELECT id FROM sse_event',
  );
  expect(shown.map(({ seen }) => seen.replaceAll(DIGITS, '…'))).toEqual([
    'file:///[redacted:github-token:…]',
    'file:///[redacted:github-token:…]',
    '[redacted:github-token:…]',
  ]);
  recording.store.close();
  expect(storeHolds(recording.db, text)).toBe(false);
});

test('what OAuth passes is stored without its secrets', async () => {
  const recording = startRecording();
  recording.feed(
    ...asked(1, {
      path: '/token',
      headers: ['Content-Type', 'application/x-www-form-urlencoded', 'X-Other', `a ${FAKE_SECRETS[3]?.text}`],
      body: 'grant_type=authorization_code&code=Splx10BeZQQYbYS6W&code_verifier=dBjftJeZ4CVP-mB92K27',
    }),
    ...answered(1, {
      body: '{"access_token":"2YotnFZFEjr1zCsicMWpAA","token_type":"example","expires_in":3600}',
    }),
    ended(1),
  );
  await recording.close();
  for (const secret of [
    'Splx10BeZQQYbYS6W',
    'dBjftJeZ4CVP-mB92K27',
    '2YotnFZFEjr1zCsicMWpAA',
    FAKE_SECRETS[3]?.text ?? '',
  ])
    expect(storeHolds(recording.db, secret), secret).toBe(false);
  expect(textsOf(recording.store)).toEqual([
    'request grant_type=authorization_code&code=[redacted:secret-value:…]&code_verifier=[redacted:secret-value:…]',
    'response {"access_token":"[redacted:secret-value:…]","token_type":"example","expires_in":3600}',
  ]);
});

test('what cannot be decoded is not stored, because nobody can look into it', async () => {
  const recording = startRecording();
  recording.feed(
    ...asked(1, { headers: [...JSON_TYPE, 'Content-Encoding', 'secret-coding'], body: 'whatever' }),
    ...answered(1, { body: rpc({ id: 1, result: {} }) }),
    ended(1),
  );
  await recording.close();
  expect(
    recording.all("SELECT size, flags, length(payload) AS kept FROM frame WHERE channel = 'request'"),
  ).toEqual([{ size: 8, flags: 'truncated undecoded', kept: 0 }]);
});

test('a real server’s arguments, lines and stderr leave no secret in any file, and pass untouched', async () => {
  const db = tempStore();
  const secrets = FAKE_SECRETS.filter(({ text }) => !text.includes('\n'));
  const args = secrets.flatMap(({ text }, i) => (i % 2 === 0 ? ['--api-key', text] : [text]));
  const run = record(db, ['spill.js', ...args]);
  const lines = secrets.map(({ text }, id) =>
    rpc({ id, method: 'tools/call', params: { name: 'a', arguments: { text } } }),
  );
  run.child.stdin.write(`${lines.join('\n')}\n`);
  await until('all is back', () => run.stdout().toString().split('\n').length > lines.length);
  run.child.stdin.end();
  const { stdout, stderr } = await run.ended;
  expect(stdout.toString()).toBe(`${lines.join('\n')}\n`);
  expect(stderr).toContain(secrets[0]?.text);
  for (const { secret } of secrets) expect(storeHolds(db, secret), secret).toBe(false);
  const frames = (await showFrames(db)) as unknown as {
    channel: string;
    redacted: boolean;
    redactedBy?: string[];
  }[];
  // Each line three times, and the arguments.
  expect(frames.filter(({ redacted }) => redacted)).toHaveLength(3 * lines.length + 1);
  expect(frames.find(({ channel }) => channel === 'stdin')?.redactedBy).toEqual([secrets[0]?.rule]);
});

test('with --no-redact secrets are stored; without one rule, what it would find', async () => {
  const text = FAKE_SECRETS.find(({ rule }) => rule === 'github-token')?.text ?? '';
  for (const [options, isStored] of [
    [['--no-redact'], true],
    [['--no-redact-rule', 'github-token'], true],
    [[], false],
  ] as const) {
    const db = tempStore();
    const run = record(db, ['cat.js'], options);
    run.child.stdin.end(`${rpc({ id: 1, method: 'ping', params: { text } })}\n`);
    await run.ended;
    expect(storeHolds(db, text), options.join()).toBe(isStored);
  }
});

test.each([
  [['--redact-rule', 'a=/(/'], 'at character 4'],
  [['--no-redact-rule', 'github'], 'expected the id of a rule'],
  [['--redact', 'card'], 'expected `$`'],
  [['--no-redact', '--redact', '$..card'], 'either `--no-redact` or what to redact'],
])('record %j is refused before the server starts', async (options, why) => {
  const { code, stderr, stdout } = await tapedeck([
    'record',
    '--db',
    tempStore(),
    ...options,
    '--',
    process.execPath,
    fixture('echo.js'),
  ]).ended;
  expect([code, stdout.length]).toEqual([2, 0]);
  expect(stderr).toContain(why);
});

inFull('own rules and paths are heeded', async () => {
  const db = tempStore();
  const run = record(db, ['cat.js'], ['--redact', '$.params.card', '--redact-rule', 'ticket=/TCK-\\d+/']);
  run.child.stdin.end(
    `${rpc({ id: 1, method: 'x', params: { card: { no: 4711471147 }, text: 'see TCK-77007700' } })}\n`,
  );
  await run.ended;
  expect(storeHolds(db, '4711471147')).toBe(false);
  const [frame] = await showFrames(db);
  expect(frame).toMatchObject({ redacted: true, redactedBy: ['path', 'ticket'] });
});

test('with --capture meta no file has any payload, and show, list and replay say so', async () => {
  const db = tempStore();
  const run = record(db, ['echo.js'], ['--capture', 'meta']);
  const lines = ['one-word', 'one-word', 'another-word'].map((text) =>
    rpc({ id: 1, method: 'tools/call', params: { arguments: { text } } }),
  );
  run.child.stdin.end(`${lines.join('\n')}\n`);
  await run.ended;
  for (const word of ['one-word', 'another-word', 'tools/call', 'jsonrpc'])
    expect(storeHolds(db, word), word).toBe(false);
  const frames = await showFrames(db);
  const sent = frames.filter(({ channel }) => channel === 'stdin');
  expect(sent.map(({ size }) => size)).toEqual(lines.map((line) => line.length));
  const [one, again, another] = sent.map(({ text }) => text);
  expect(one).toMatch(/^\[redacted:meta:[0-9a-f]{12}\]$/);
  expect([again === one, another === one]).toEqual([true, false]);
  expect(frames.flatMap(({ messages }) => messages)).toEqual([]);
  const said = async (...args: string[]) => {
    const { stdout, stderr } = await tapedeckInProcess([...args, '--db', db]);
    return stdout + stderr;
  };
  expect(await said('show')).toContain('payloads  none: recorded with --capture meta');
  expect(await said('list')).toContain('(no payloads)');
  expect(await said('list', '--json')).toContain('"capture":"meta"');
  expect(await said('replay', 'latest')).toContain(
    'was recorded with --capture meta: it has sizes and times',
  );
  const file = `${db}.ndjson`;
  await said('export', '--output', file);
  expect(await said('replay', file)).toContain('was recorded with --capture meta');
});

test('with --capture meta the heads of HTTP keep their names, paths and statuses alone', async () => {
  const recording = startRecording({ redaction: { ...PLAIN_PROFILE, capture: 'meta' } });
  recording.feed(
    ...asked(1, {
      path: '/mcp?who=somebody',
      headers: [...JSON_TYPE, 'X-Own', 'own-value'],
      body: rpc({ id: 1, method: 'secret/method' }),
    }),
    ...answered(1, {
      headers: EVENT_STREAM,
      body: `id: event-id\ndata: ${rpc({ id: 1, result: { a: 'result-text' } })}\n\n`,
    }),
  );
  recording.save(true);
  recording.feed(ended(1));
  await recording.close();
  for (const word of ['somebody', 'own-value', 'secret/method', 'event-id', 'result-text', 'jsonrpc'])
    expect(storeHolds(recording.db, word), word).toBe(false);
  expect(recording.all('SELECT method, path, status FROM http_exchange')).toEqual([
    { method: 'POST', path: expect.stringMatching(/^\/mcp\?masked-[0-9a-f]{12}$/), status: 200 },
  ]);
  expect(recording.all('SELECT count(*) AS messages FROM message')).toEqual([{ messages: 0 }]);
});
