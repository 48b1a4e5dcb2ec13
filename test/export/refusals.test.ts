import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import {
  listSessions,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../support/tapedeck.ts';
import { exportText, importText } from '../support/text-recording.ts';

const STDIO =
  '{"tapedeck":1,"session":{"basis":"stdio-process","transport":"stdio","target":"x","startedAt":"2026-11-20T10:00:00Z"}}';
const HTTP = STDIO.replace('stdio-process', 'stateless').replace('"stdio"', '"http"');
const REQUEST = '{"http":1,"request":{"method":"POST","path":"/mcp"}}';

function header(change: string): string {
  return STDIO.replace('"target":"x"', `"target":"x",${change}`);
}

/** By what is wrong: the text, and what is said of it. */
const REFUSED: Record<string, [text: string | Buffer, line: number, said: RegExp]> = {
  'an empty file': ['', 1, /expected the header of a text recording.*got an empty file/],
  'another file': ['# A page\n', 1, /expected the header of a text recording/],
  'JSON of another kind': ['{"jsonrpc":"2.0"}\n', 1, /expected the header of a text recording/],
  'a frame without a header': ['{"channel":"stdin","text":""}\n', 1, /expected the header/],
  'a newer format': [
    '{"tapedeck":2,"session":{}}\n',
    1,
    /written by a newer tapedeck \(format 2, this one knows 1\)/,
  ],
  'an older format': ['{"tapedeck":0,"session":{}}\n', 1, /expected format 1 as `tapedeck`, got 0/],
  'a header without a session': ['{"tapedeck":1}\n', 1, /expected `session` in the header, got none/],
  'a header without a target': [
    STDIO.replace(',"target":"x"', ''),
    1,
    /expected `target` in `session`, got none/,
  ],
  'an unknown member of the session': [
    header('"naem":"a"'),
    1,
    /unknown member "naem" in `session`: expected some of/,
  ],
  'an unknown member of the header': [
    STDIO.replace('}}', '},"more":1}'),
    1,
    /unknown member "more" in the line/,
  ],
  'an unknown transport': [
    STDIO.replace('"stdio"', '"ws"'),
    1,
    /expected "stdio" or "http" or "sse" as `transport`.*got "ws"/,
  ],
  'a basis of another transport': [
    STDIO.replace('"stdio"', '"http"'),
    1,
    /a transport that fits the basis stdio-process, got http/,
  ],
  'a time that is none': [
    STDIO.replace('10:00', '25:00'),
    1,
    /expected a time like 2026-11-20T10:00:00.123456Z as `startedAt`/,
  ],
  'half an end': [
    header('"endedAt":"2026-11-20T10:00:00Z"'),
    1,
    /expected `endedAt` and `endReason` together/,
  ],
  'a label that is no text': [header('"labels":{"a":1}'), 1, /expected a string as `a` in `labels`, got 1/],
  'a name that is no text': [header('"name":7'), 1, /expected a string as `name` in `session`, got 7/],
  'a command that is no list': [header('"command":"x"'), 1, /expected an array of strings as `command`/],
  'a member twice': [header('"target":"y"'), 1, /expected `target` once in `session`, got it twice/],
  'no JSON': [`${STDIO}\n\nnonsense\n`, 3, /expected a JSON object, got nonsense/],
  'broken JSON': [`${STDIO}\n{"ms":1,]}\n`, 2, /expected JSON, got ]} in column 9/],
  'two objects in a line': [
    `${STDIO}\n{"channel":"stdin","text":""} {}\n`,
    2,
    /expected the end of the line, got {}/,
  ],
  'a file that is cut off': [
    `${STDIO}\n{"channel":"stdin","te`,
    2,
    /got a line that breaks off .*is the file cut off\?/,
  ],
  'bytes that are no UTF-8': [Buffer.from(`${STDIO}\n{"channel":"\xff"}\n`, 'latin1'), 2, /expected UTF-8/],
  'a second header': [`${STDIO}\n${STDIO}\n`, 2, /second header: expected one session in a file/],
  'a line that is nothing': [`${STDIO}\n{"ms":1}\n`, 2, /expected a frame, a line with `channel`/],
  'an unknown channel': [
    `${STDIO}\n{"channel":"std","text":""}\n`,
    2,
    /expected "stdin" or .* as `channel` in the line, got "std"/,
  ],
  'a misspelt member of a frame': [
    `${STDIO}\n{"channel":"stdin","mesage":{}}\n`,
    2,
    /unknown member "mesage" in the line/,
  ],
  'a frame without a payload': [
    `${STDIO}\n{"channel":"stdin"}\n`,
    2,
    /expected `message`, `text` or `base64` in the line, got none/,
  ],
  'two payloads': [
    `${STDIO}\n{"channel":"stdin","text":"","message":1}\n`,
    2,
    /expected one of `message`, `text` and `base64`/,
  ],
  'text of another type': [`${STDIO}\n{"channel":"stdin","text":1}\n`, 2, /expected a string as `text`/],
  'half a surrogate pair': [
    `${STDIO}\n{"channel":"stdin","text":"\\ud800"}\n`,
    2,
    /half of a surrogate pair/,
  ],
  'base64 that is none': [`${STDIO}\n{"channel":"stdin","base64":"AA="}\n`, 2, /expected base64/],
  'base64 with padding inside': [`${STDIO}\n{"channel":"stdin","base64":"A=AA"}\n`, 2, /expected base64/],
  'a time of another type': [
    `${STDIO}\n{"ms":"1","channel":"stdin","text":""}\n`,
    2,
    /expected a number as `ms` in the line, got "1"/,
  ],
  'a time without end': [
    `${STDIO}\n{"ms":1e999,"channel":"stdin","text":""}\n`,
    2,
    /expected a finite number as `ms`/,
  ],
  'a time before 1970': [
    `${STDIO}\n{"ms":-2e12,"channel":"stdin","text":""}\n`,
    2,
    /expected a time between 1970 and 2255/,
  ],
  'a part of another channel': [
    `${STDIO}\n{"channel":"stdin","part":"body","text":""}\n`,
    2,
    /expected "line" or .* as `part`/,
  ],
  'an unknown line end': [
    `${STDIO}\n{"channel":"stdin","lineEnd":"\\r","text":""}\n`,
    2,
    /expected "\\n" or "\\r\\n" or "" as `lineEnd`/,
  ],
  'a size smaller than the payload': [
    `${STDIO}\n{"channel":"stdin","truncated":{"size":1},"text":"abc"}\n`,
    2,
    /expected a `size` of 3 bytes or more/,
  ],
  'stdio in a session by HTTP': [
    `${HTTP}\n{"channel":"stdin","text":""}\n`,
    2,
    /the channel stdin cannot be in a session by HTTP/,
  ],
  'HTTP in a session by stdio': [
    `${STDIO}\n{"http":1,"channel":"request","text":""}\n`,
    2,
    /unknown member "http"/,
  ],
  'an exchange in a session by stdio': [
    `${STDIO}\n${REQUEST}\n`,
    2,
    /expected a frame, a line with `channel`/,
  ],
  'a body without its exchange': [
    `${HTTP}\n{"channel":"request","text":""}\n`,
    2,
    /expected the number of its HTTP exchange/,
  ],
  'an exchange number that is none': [
    `${HTTP}\n{"http":0.5,"channel":"request","text":""}\n`,
    2,
    /expected a whole number from 0 on as `http`/,
  ],
  'an unknown mark': [
    `${HTTP}\n{"http":1,"channel":"request","marks":["odd"],"text":""}\n`,
    2,
    /as `marks`, got "odd"/,
  ],
  'a hash that is none': [
    `${HTTP}\n{"http":1,"channel":"request","truncated":{"sha256":"a"},"text":""}\n`,
    2,
    /expected 64 hexadecimal digits/,
  ],
  'an unknown field of an event': [
    `${HTTP}\n{"http":1,"channel":"sse","sse":{"name":"a"},"text":""}\n`,
    2,
    /expected `event`, `id` or `retry` in `sse`/,
  ],
  'a field of two lines': [
    `${HTTP}\n{"http":1,"channel":"sse","sse":{"id":"a\\nb"},"text":""}\n`,
    2,
    /expected one line as `id`/,
  ],
  'data of two lines': [
    `${HTTP}\n{"http":1,"channel":"sse","sse":{},"text":"a\\nb"}\n`,
    2,
    /expected one line of data beside `sse`/,
  ],
  'a request without a method': [
    `${HTTP}\n{"http":1,"request":{"path":"/"}}\n`,
    2,
    /expected `method` in `request`, got none/,
  ],
  'a misspelt member of a request': [
    `${HTTP}\n{"http":1,"request":{"methd":"GET"}}\n`,
    2,
    /unknown member "methd" in `request`/,
  ],
  'headers that are no pairs': [
    `${HTTP}\n{"http":1,"request":{"method":"GET","path":"/","headers":[["a"]]}}\n`,
    2,
    /expected an array of \[name, value\] as `headers`/,
  ],
  'a request and a response in a line': [
    `${HTTP}\n{"http":1,"request":{},"response":{}}\n`,
    2,
    /expected one of request, response in a line, got 2/,
  ],
  'a second request': [`${HTTP}\n${REQUEST}\n${REQUEST}\n`, 3, /HTTP exchange 1 has a request already/],
  'a response without a request': [
    `${HTTP}\n{"http":4,"response":{"status":200}}\n\n`,
    2,
    /expected a `request` of HTTP exchange 4, which line 2 begins/,
  ],
  'an end without a request': [
    `${HTTP}\n{"http":4,"end":{}}\n`,
    2,
    /expected a `request` of HTTP exchange 4/,
  ],
  'an exchange after its end': [
    `${HTTP}\n${REQUEST}\n{"http":1,"end":{}}\n${REQUEST}\n`,
    4,
    /HTTP exchange 1 has ended before this line/,
  ],
  'an unfinished line twice': [
    `${STDIO}\n${'{"channel":"stdin","unfinished":true,"text":""}\n'.repeat(2)}`,
    3,
    /expected one unfinished line of each channel/,
  ],
};

for (const [what, [text, line, said]] of Object.entries(REFUSED)) {
  test(`${what} is refused with its line, and nothing of it is imported`, async () => {
    const store = openStore(tempStore());
    const refused = importText(store, text);
    await expect(refused).rejects.toThrow(said);
    await expect(refused).rejects.toThrow(`a.ndjson, line ${line}: `);
    const code = what.startsWith('a newer') ? 'newer' : 'corrupt';
    await expect(refused).rejects.toMatchObject({ name: 'TapedeckError', code });
    expect(store.prepare('SELECT * FROM session').all()).toEqual([]);
    store.close();
  });
}

test('of a long file that goes wrong at its end nothing is left', async () => {
  const store = openStore(tempStore());
  const frames = '{"channel":"stdout","message":{"jsonrpc":"2.0","method":"a"}}\n'.repeat(7000);
  await expect(importText(store, `${header('"labels":{"a":"b"}')}\n${frames}{"channel":`)).rejects.toThrow(
    'a.ndjson, line 7002',
  );
  for (const table of ['session', 'label', 'frame', 'message', 'http_exchange', 'sse_event']) {
    expect(store.prepare(`SELECT * FROM ${table}`).all(), table).toEqual([]);
  }
  store.close();
});

test('a file edited by hand is read: other order, spaces, blank lines, CR LF, no times, no last line end', async () => {
  const store = openStore(tempStore());
  const lines = [
    `\ufeff${STDIO}`,
    '',
    ' { "message" : { "id" : 12345678901234567890, "a b" : [ 1.0 , "x \\" y" ] } , "channel" : "stdin" } ',
    '\t',
    '{"text":"plain","channel":"stderr","ms":1.5}',
    '{"channel":"stdout","message":null}',
  ];
  await importText(store, lines.join('\r\n'));
  const [head = '', ...frames] = exportText(store).split('\n').slice(0, -1);
  expect(JSON.parse(head).session).toMatchObject({ target: 'x', recordedWith: '9.9.9' });
  expect(frames).toEqual([
    '{"ms":0,"channel":"stdin","text":"{\\"id\\":12345678901234567890,\\"a b\\":[1.0,\\"x \\\\\\" y\\"]}"}',
    '{"ms":1.5,"channel":"stderr","text":"plain"}',
    '{"ms":0,"channel":"stdout","message":null}',
  ]);
  store.close();
});

test('an event written by hand needs no more than its message', async () => {
  const store = openStore(tempStore());
  await importText(store, `${HTTP}\n${REQUEST}\n{"http":1,"channel":"sse","message":{"a": 1}}\n`);
  const payload = store.prepare<[], Buffer>('SELECT payload FROM frame').pluck().get();
  expect(payload?.toString()).toBe('data: {"a":1}\n\n');
  store.close();
});

test('an import that is interrupted takes back what it has stored', async () => {
  const db = tempStore();
  const frame = '{"channel":"stdout","message":{"jsonrpc":"2.0","method":"a"}}\n';
  const { child, ended } = tapedeck(['import', '-', '--db', db]);
  child.stdin.write(`${STDIO}\n${frame.repeat(2500)}`);
  await until('some of it is stored', async () => (await framesOf(db)) >= 2000);
  child.kill('SIGINT');
  expect(await ended).toMatchObject({ code: 2, stderr: 'tapedeck: Stopped: the import is not finished.\n' });
  expect(await listSessions(db)).toEqual([]);
});

async function framesOf(db: string): Promise<number> {
  if (!existsSync(db)) return 0;
  const [session] = await listSessions(db).catch(() => []);
  return session?.frames ?? 0;
}

test('the command says what is wrong in one line, and exits with 2', async () => {
  const db = tempStore();
  const piped = tapedeck(['import', '-', '--db', db]);
  piped.child.stdin.end(`${STDIO}\n{"channel":"stdin","text":"\u001b[31m`);
  const { code, stdout, stderr } = await piped.ended;
  expect({ code, stdout: stdout.toString() }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^tapedeck: stdin, line 2: [^\n]*\n$/);
  const missing = await tapedeckInProcess(['import', `${tempFolder()}/none.ndjson`, '--db', db]);
  expect(missing.code).toBe(2);
  expect(missing.stderr).toMatch(/none\.ndjson cannot be read: ENOENT/);
  const unwritable = await tapedeckInProcess(['export', '--db', db, '--output', '/no/such/folder/a']);
  expect(unwritable.code).toBe(2);
});
