import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import { startInProcess } from '../support/in-process.ts';
import { importForeign, linesOf, OTHER_TOOLS, otherTool, sessionOf, textOf } from '../support/other-tools.ts';
import { inFull, scale } from '../support/scale.ts';
import { FAKE_SECRETS } from '../support/secrets.ts';
import {
  listSessions,
  showFrames,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
} from '../support/tapedeck.ts';

const CASSETTE = '{"type":"header","cassetteVersion":2,"startedAt":"2026-08-19T07:35:20Z"}';
const FRAME = '{"type":"frame","t":1,"dir":"c2s","frame":{"jsonrpc":"2.0","method":"a"}}';
const SNOOP =
  '{"session_id":"a","seq":1,"ts":"2026-08-08T20:08:11Z","direction":"c2s","transport":"stdio","raw":{}}';
const PORTER = '{"jsonrpc":"2.0","_meta":{"dir":"send","server":"a","ts":"2026-05-16T12:00:00Z"}}';
const VCR = textOf('agent-vcr-typescript.vcr');
/** The line on which its second interaction begins. */
const SECOND = VCR.slice(0, VCR.indexOf('"sequence": 1')).split('\n').length - 1;

function vcrWith(change: (document: Record<string, never>) => void): string {
  const document = JSON.parse(VCR);
  change(document);
  return JSON.stringify(document, null, 2);
}

/** By what is wrong: the text, and what is said of it. */
const REFUSED: Record<string, [text: string | Buffer, line: number, said: RegExp]> = {
  'an empty file': ['', 1, /expected a text recording, .*mcp-cassette, mcpsnoop, mcporter, agent-vcr/],
  'a page': ['# A page\n', 1, /expected a text recording/],
  'JSON of another kind': ['{"a":1}\n', 1, /expected a text recording/],
  'a list': ['[1]\n', 1, /expected a text recording/],
  'deep nesting that is nothing': [`{"a":${'['.repeat(200_000)}\n`, 1, /expected a text recording/],
  'a newer cassette': [
    CASSETTE.replace('2,', '3,'),
    1,
    /written by a newer mcp-cassette \(version 3, the newest known is 2\)/,
  ],
  'a cassette of no version': [CASSETTE.replace('2,', '0,'), 1, /expected the header of a cassette/],
  'a cassette without a start': [
    '{"type":"header","cassetteVersion":2}',
    1,
    /expected `startedAt` in the line, got none/,
  ],
  'a start that is no time': [
    CASSETTE.replace('07:35', '27:35'),
    1,
    /expected a time like .* as `startedAt`, got "2026-08-19T27:35:20Z"/,
  ],
  'an unknown direction': [
    `${CASSETTE}\n${FRAME.replace('c2s', 'up')}`,
    2,
    /expected "c2s" or "s2c" as `dir` in the line, got "up"/,
  ],
  'a frame without a direction': [
    `${CASSETTE}\n{"type":"frame","t":1,"frame":{}}`,
    2,
    /expected `dir` in the line, got none/,
  ],
  'a frame that is no object': [
    `${CASSETTE}\n{"type":"frame","t":1,"dir":"c2s","frame":"{}"}`,
    2,
    /expected an object as `frame` in the line, got "{}"/,
  ],
  'a frame that is null': [
    `${CASSETTE}\n{"type":"frame","t":1,"dir":"c2s","frame":null}`,
    2,
    /expected `frame` in the line, got none/,
  ],
  'a time of another type': [
    `${CASSETTE}\n${FRAME.replace('"t":1', '"t":"1"')}`,
    2,
    /expected a number as `t` in the line, got "1"/,
  ],
  'a time without end': [
    `${CASSETTE}\n${FRAME.replace('"t":1', '"t":1e300')}`,
    2,
    /expected a time between 1970 and 2255/,
  ],
  'chunks that are no list': [
    `${CASSETTE}\n{"type":"chunks","t":1,"dir":"s2c","chunks":{}}`,
    2,
    /expected an array of objects as `chunks`/,
  ],
  'a stray line that is no text': [
    `${CASSETTE}\n{"type":"raw","t":1,"dir":"s2c","data":1}`,
    2,
    /expected a string as `data`/,
  ],
  'a cassette that is cut off': [
    `${CASSETTE}\n${FRAME}\n${FRAME.slice(0, 50)}`,
    3,
    /got a line that breaks off .*is the file cut off\?/,
  ],
  'bytes that are no UTF-8': [Buffer.from(`${CASSETTE}\n"\xff"\n`, 'latin1'), 2, /expected UTF-8/],
  'a line of another file': [`${SNOOP}\n${CASSETTE}\n`, 2, /expected `direction` in the line, got none/],
  'a direction of no event': [
    SNOOP.replace('c2s', 'sideways'),
    1,
    /expected "c2s" or "s2c" or "stderr" or "meta" as `direction`/,
  ],
  'an event without a time': [SNOOP.replace('"ts"', '"at"'), 1, /expected `ts` in the line, got none/],
  'a time in a zone that is none': [
    SNOOP.replace('11Z', '11+25:00'),
    1,
    /expected a time like .*got "2026-08-08T20:08:11\+25:00"/,
  ],
  'a time before 1970': [SNOOP.replace('2026', '0001'), 1, /expected a time like/],
  'a number of an event that is none': [
    SNOOP.replace('"seq":1', '"seq":-1'),
    1,
    /expected a whole number from 0 on as `seq`/,
  ],
  'a message without a server': [
    PORTER.replace('"server":"a",', ''),
    1,
    /expected `server` in `_meta`, got none/,
  ],
  'a message with something else as its `_meta`': [
    '{"jsonrpc":"2.0","_meta":7}',
    1,
    /expected an object as `_meta` in the line, got 7/,
  ],
  'a message of unknown direction': [
    `${PORTER}\n${PORTER.replace('send', 'sent')}`,
    2,
    /expected "send" or "recv" or "lifecycle" as `dir` in `_meta`, got "sent"/,
  ],
  'a first message without a time': [PORTER.replace('"ts"', '"at"'), 1, /expected `ts` in `_meta`, got none/],
  'a newer .vcr': [
    VCR.replace('"1.0.0"', '"2.1.0"'),
    1,
    /written by a newer agent-vcr \(format 2.1.0, the newest known is 1\)/,
  ],
  'a .vcr of another format': [
    VCR.replace('"1.0.0"', '"new"'),
    1,
    /expected format 1.0.0 as `format_version`/,
  ],
  'a .vcr that is cut off': [
    VCR.slice(0, VCR.indexOf('"sequence": 1')),
    SECOND + 1,
    /expected JSON, got a file that breaks off in column/,
  ],
  'a .vcr with a wrong byte': [
    VCR.replace('"sequence": 1,', '"sequence": 1;'),
    SECOND + 1,
    /expected JSON, got something else in column 22/,
  ],
  'more behind a .vcr': [
    `${VCR}\n{}`,
    VCR.split('\n').length + 1,
    /expected the end of the file after the recording, got more/,
  ],
  'a .vcr without a session': [
    vcrWith((document) => delete document['session']),
    1,
    /expected `session` in the file, got none/,
  ],
  'interactions that are no list': [
    vcrWith(({ session }: Record<string, Record<string, unknown>>) => {
      (session as Record<string, unknown>)['interactions'] = 'none';
    }),
    21,
    /expected an array of objects as `interactions` in `session`, got "none"/,
  ],
  'an interaction without its time': [
    VCR.replace('"timestamp": "2026-02-09T05:11:32.190Z"', '"at": 1'),
    SECOND,
    /expected `timestamp` in the interaction, got none/,
  ],
  'a latency below nothing': [
    VCR.replace('"latency_ms": 50', '"latency_ms": -50'),
    SECOND,
    /expected a number from 0 on as `latency_ms` in the interaction, got -50/,
  ],
};

for (const [what, [text, line, said]] of Object.entries(REFUSED)) {
  test(`${what} is refused with its line, and nothing of it is imported`, async () => {
    const store = openStore(tempStore());
    const refused = importForeign(store, text);
    await expect(refused).rejects.toThrow(said);
    await expect(refused).rejects.toThrow(`a.file, line ${line}: `);
    const code = what.startsWith('a newer') ? 'newer' : 'corrupt';
    await expect(refused).rejects.toMatchObject({ name: 'TapedeckError', code });
    expect(store.prepare('SELECT * FROM session').all()).toEqual([]);
    store.close();
  });
}

const HARM = fc.record({
  name: fc.constantFrom(...OTHER_TOOLS),
  at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  removed: fc.integer({ min: 0, max: 40 }),
  put: fc.oneof(
    fc.constantFrom('', '"', '{', '}', ',', '\n', 'null', '-1', '1e999', '[]', '\\', '\u0000', '"type":'),
    fc.string({ maxLength: 3 }),
  ),
  isCut: fc.boolean(),
});

test('whatever happens to a file, it is read or refused in words, and never in part', async () => {
  const store = openStore(tempStore());
  const sessions = store.prepare('SELECT count(*) FROM session').pluck();
  await fc.assert(
    fc.asyncProperty(HARM, async ({ name, at, removed, put, isCut }) => {
      const text = textOf(name);
      const from = Math.floor(at * text.length);
      const harmed = text.slice(0, from) + put + (isCut ? '' : text.slice(from + removed));
      const before = sessions.get() as number;
      const ids = await importForeign(store, harmed).catch((error) => {
        expect(error).toMatchObject({
          name: 'TapedeckError',
          message: expect.stringMatching(/^a\.file, line /),
        });
        return [];
      });
      expect(sessions.get()).toBe(before + ids.length);
    }),
    { numRuns: scale(400) },
  );
  store.close();
});

test('of long sessions in a file that goes wrong at its end nothing is left', async () => {
  const store = openStore(tempStore());
  const other = SNOOP.replace('"a"', '"b"');
  await expect(importForeign(store, `${SNOOP}\n${other}\n`.repeat(2500).concat('{'))).rejects.toThrow(
    'a.file, line 5001: ',
  );
  for (const table of ['session', 'label', 'frame', 'message'])
    expect(store.prepare(`SELECT * FROM ${table}`).all(), table).toEqual([]);
  store.close();
});

inFull('messages of 10 MB, and nested as deep as one likes, are read whole', async () => {
  const store = openStore(tempStore());
  const long = `{"jsonrpc":"2.0","method":"a","params":{"text":"${'x'.repeat(10_000_000)}"}}`;
  const deep = `{"jsonrpc":"2.0","method":"b","params":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  const [message, meta] = [long.slice(0, -1), PORTER.slice(PORTER.indexOf('"_meta"'))];
  const [porter = ''] = await importForeign(store, `${message},${meta}\n`, { pieceBytes: 65_536 });
  expect(linesOf(store, porter)).toHaveLength(1);
  expect(sessionOf(store, porter)).toMatchObject({ bytes: long.length });
  const [snoop = ''] = await importForeign(store, `${SNOOP.replace('{}', deep)}\n`, { pieceBytes: 65_536 });
  expect(linesOf(store, snoop).map(({ text }) => text === deep)).toEqual([true]);
  const nested = VCR.replace('"params": {\n            "name"', `"params": {"deep":${deep},"name"`);
  const [vcr = ''] = await importForeign(store, nested, { pieceBytes: 65_536 });
  expect(sessionOf(store, vcr)).toMatchObject({ frames: 6, exchanges: 3 });
  store.close();
});

test('the command prints an id a session, says what was left out, and takes a format by its name', async () => {
  const db = tempStore();
  const run = await tapedeckInProcess(['import', otherTool('mcpsnoop.jsonl'), '--db', db]);
  expect(run.code).toBe(0);
  expect(run.stdout.toString()).toMatch(/^[0-9a-f]{12}\n[0-9a-f]{12}\n$/);
  expect(run.stderr).toMatch(/^tapedeck: .*mcpsnoop\.jsonl: lines left out, of HTTP without a message: 1\n$/);
  const forced = ['import', '--db', db, '--format'];
  const known = await tapedeckInProcess([...forced, 'agent-vcr', otherTool('agent-vcr-python.vcr')]);
  expect(known).toMatchObject({ code: 0, stderr: '' });
  const wrong = await tapedeckInProcess([...forced, 'mcporter', otherTool('cassette-stdio.jsonl')]);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('expected a message of mcporter') });
  const unknown = await tapedeckInProcess([...forced, 'har', otherTool('mcporter.ndjson')]);
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('"agent-vcr"') });
  expect(await listSessions(db)).toHaveLength(3);
});

test('empty and missing files are refused whatever they are said to be', async () => {
  const folder = tempFolder();
  const [db, empty] = [join(folder, 'r.db'), join(folder, 'empty')];
  writeFileSync(empty, '\n');
  for (const format of ['mcp-cassette', 'mcpsnoop', 'mcporter', 'agent-vcr']) {
    const { code, stderr } = await tapedeckInProcess(['import', empty, '--format', format, '--db', db]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`expected a recording of ${format}, got an empty`),
    ]);
  }
  const none = await tapedeckInProcess(['import', join(folder, 'none.vcr'), '--db', db]);
  expect(none).toMatchObject({ code: 2, stderr: expect.stringMatching(/none\.vcr cannot be read: ENOENT/) });
  expect([existsSync(db), await listSessions(db)]).toEqual([true, []]);
});

test('stdin is recognised too', async () => {
  for (const name of OTHER_TOOLS) {
    const db = tempStore();
    const { child, ended } = startInProcess(['import', '-', '--db', db]);
    child.stdin.end(textOf(name));
    expect((await ended).code).toBe(0);
  }
});

test('show says where a session comes from, and does not make up how it ended', async () => {
  const db = tempStore();
  // In a process of its own: as long as that runs, sessions without an end are its open ones.
  await tapedeck(['import', otherTool('mcporter.ndjson'), '--db', db]).ended;
  const text = (await tapedeckInProcess(['show', 'linear', '--db', db])).stdout.toString();
  expect(text).toMatch(/target +unknown\n/);
  expect(text).toMatch(/ended +unknown\n/);
  expect(text).toMatch(/imported +from mcporter: messages as it kept them, not the bytes that passed\n/);
  expect(await listSessions(db)).toMatchObject([{ endReason: 'unknown', endedAt: null }, {}, {}]);
});

test('what another tool has left in the clear can be masked', async () => {
  const db = tempStore();
  const { child, ended } = tapedeck(['import', '-', '--db', db]);
  const [{ text = '' } = {}] = FAKE_SECRETS.filter(({ rule }) => rule === 'github-token');
  child.stdin.end(
    `${SNOOP.replace('{}', JSON.stringify({ jsonrpc: '2.0', method: 'a', params: { text } }))}\n`,
  );
  const id = (await ended).stdout.toString().trim();
  expect((await showFrames(db, id))[0]?.text).toContain(text);
  const masked = await tapedeckInProcess(['redact', id, '--db', db]);
  expect(masked).toMatchObject({ code: 0, stderr: '' });
  expect((await showFrames(db, id))[0]?.text).toContain('[redacted:github-token:');
});

test('check misses nothing that a tool does not keep', async () => {
  const db = tempStore();
  await tapedeck(['import', otherTool('agent-vcr-typescript.vcr'), '--db', db]).ended;
  const { code, stdout } = await tapedeckInProcess(['check', '--db', db]);
  expect([code, stdout.toString()]).toEqual([0, expect.stringContaining('is from another tool')]);
});
