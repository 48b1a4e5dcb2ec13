/** Faults over stdio, with streams of this process in place of a client's and a server's. */
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createFaults, readFaults } from '../../src/fault/faults.ts';
import { type FaultyLine, faultyStreams } from '../../src/fault/stdio.ts';
import type { Chunk } from '../../src/protocol/wire/frame.ts';

const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}\n';

const ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"grüße"}]}}\n';

const OTHER = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n';

function streams(...fault: string[]) {
  const faults = createFaults(readFaults({ fault, seed: 1 }, 'record-stdio') as never);
  onTestFinished(faults.close);
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const chunks: Chunk[] = [];
  const faulty: FaultyLine[] = [];
  const exits: unknown[] = [];
  const writes: Buffer[] = [];
  stdout.on('data', (bytes) => writes.push(bytes));
  const ends = faultyStreams({
    ...{ faults, stdin, stdout, stderr, now: () => 1 },
    onChunk: (chunk) => void chunks.push(chunk),
    onFaulty: (line) => faulty.push(line),
    onExit: (how) => exits.push(how),
    isServerThere: () => true,
  });
  const heard: Buffer[] = [];
  ends.stdin.on('data', (bytes) => heard.push(bytes));
  return {
    ...{ ends, stdin, stdout, stderr, chunks, faulty, exits, writes },
    /** What the client got. */
    got: () => Buffer.concat(writes).toString(),
    /** What the server got. */
    heard: () => Buffer.concat(heard).toString(),
    /** The client asks, and the server says this; settles when the client has all of it. */
    async played(...said: string[]): Promise<string> {
      stdin.write(CALL);
      await vi.waitFor(() => expect(Buffer.concat(heard).length).toBeGreaterThan(0));
      for (const text of said) ends.stdout.write(text);
      ends.stdout.end();
      await finished(stdout);
      return Buffer.concat(writes).toString();
    },
  };
}

test('what no rule chooses goes on byte for byte, and is shown as it went', async () => {
  const odd = [
    ANSWER,
    '\n',
    'not json\r\n',
    Buffer.from([0xff, 0x0a]).toString('latin1'),
    '{"a":1}',
    'no end',
  ];
  const { played, chunks, faulty } = streams('tool=elsewhere drop');
  expect(await played(...odd)).toBe(odd.join(''));
  const shown = chunks.filter(({ channel }) => channel === 'stdout').map(({ bytes }) => bytes);
  expect(Buffer.concat(shown).toString()).toBe(odd.join(''));
  expect(faulty).toEqual([]);
});

test.each([
  ['drop', '', OTHER],
  ['hold', '', OTHER],
  ['truncate(9)', '{"jsonrpc\n', `{"jsonrpc\n${OTHER}`],
  ['error(-32000,"later")', '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"later"}}\n', null],
  [
    'tool-error("no")',
    '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}\n',
    null,
  ],
])('%s puts something in the place of an answer, and keeps what was said', async (action, line, all) => {
  const { played, faulty, chunks } = streams(`tool=search ${action}`);
  expect(await played(ANSWER, OTHER)).toBe(all ?? line + OTHER);
  expect(faulty).toMatchObject([{ channel: 'stdout', fault: { number: 1, rule: `tool=search ${action}` } }]);
  expect(faulty[0]?.payload.toString()).toBe(line.trimEnd());
  expect(faulty[0]?.fault.original?.toString()).toBe(ANSWER.trimEnd());
  expect(chunks.filter(({ channel }) => channel === 'stdout').map(({ bytes }) => bytes.toString())).toEqual([
    OTHER,
  ]);
});

test('garbage is one line that is neither JSON nor text, the same in each run', async () => {
  const [one, other] = [streams('garbage'), streams('garbage')];
  await Promise.all([one.played(ANSWER), other.played(ANSWER)]);
  const bytes = Buffer.concat(one.writes);
  expect(bytes.filter((byte) => byte === 0x0a)).toHaveLength(1);
  expect(bytes[0]).toBe(0xff);
  expect(Buffer.concat(other.writes)).toEqual(bytes);
  expect(one.faulty[0]?.fault.original?.toString()).toBe(ANSWER.trimEnd());
});

test('a duplicate comes twice; the second is what nobody had said', async () => {
  const { played, faulty, chunks } = streams('tool=search duplicate');
  expect(await played(ANSWER, OTHER)).toBe(ANSWER + ANSWER + OTHER);
  expect(chunks.filter(({ channel }) => channel === 'stdout').map(({ bytes }) => bytes.toString())).toEqual([
    ANSWER,
    OTHER,
  ]);
  expect(faulty).toMatchObject([{ fault: { action: 'duplicate' } }]);
  expect(faulty[0]?.fault.original).toHaveLength(0);
});

test('a delayed answer is overtaken, one that is reordered goes behind so many others', async () => {
  const delayed = streams('tool=search delay=30ms');
  expect(await delayed.played(ANSWER, OTHER)).toBe(OTHER + ANSWER);
  expect(delayed.faulty).toMatchObject([{ fault: { action: 'delay 30ms', original: null } }]);
  const reordered = streams('tool=search reorder(2)');
  expect(await reordered.played(ANSWER, OTHER, OTHER, '{}\n')).toBe(`${OTHER}${OTHER}${ANSWER}{}\n`);
  // Where nothing comes behind which it could go, it goes on at the end.
  expect(await streams('tool=search reorder(9)').played(ANSWER)).toBe(ANSWER);
});

test.each(['split(3)', 'dribble(4,20ms)', 'rate(2kb)'])(
  '%s cuts anywhere, and lets nothing come between',
  async (action) => {
    const { played, writes, faulty } = streams(`tool=search ${action}`);
    expect(await played(ANSWER, OTHER)).toBe(ANSWER + OTHER);
    expect(writes.length).toBeGreaterThan(action === 'rate(2kb)' ? 1 : 4);
    expect(faulty).toMatchObject([{ fault: { original: null } }]);
  },
);

test('close ends the stream in place of the answer; exit asks for the end of the process', async () => {
  const closed = streams('tool=search close');
  const gone = new Promise((resolve) => closed.ends.stdout.on('error', resolve));
  closed.stdin.write(CALL);
  await vi.waitFor(() => expect(closed.heard()).toBe(CALL));
  closed.ends.stdout.write(ANSWER);
  await gone;
  expect(closed.got()).toBe('');
  expect(closed.stdout.destroyed).toBe(true);
  const { played, exits, faulty } = streams('tool=search exit(SIGKILL)');
  expect(await played(ANSWER)).toBe('');
  expect(exits).toMatchObject([{ signal: 'SIGKILL' }]);
  expect(faulty).toMatchObject([{ fault: { action: 'exit SIGKILL' } }]);
});

test('stall-stderr: from that answer on stderr takes no more', async () => {
  const { ends, stderr, played } = streams('tool=search stall-stderr');
  ends.stderr.write('before\n');
  await vi.waitFor(() => expect(stderr.read()?.toString()).toBe('before\n'));
  expect(await played(ANSWER)).toBe(ANSWER);
  ends.stderr.write('after\n');
  expect(ends.stderr.writableNeedDrain).toBe(true);
  expect(stderr.read()).toBeNull();
});

test('what a client says can be lost on its way, too', async () => {
  const { stdin, heard, faulty, chunks } = streams('dir=client tool=search drop');
  stdin.write(CALL + OTHER);
  await vi.waitFor(() => expect(heard()).toBe(OTHER));
  expect(faulty).toMatchObject([{ channel: 'stdin', fault: { action: 'drop' } }]);
  expect(faulty[0]?.fault.original?.toString()).toBe(CALL.trimEnd());
  expect(chunks.map(({ bytes }) => bytes.toString())).toEqual([OTHER]);
});

test('what had not gone on when the client left is kept as what never went', async () => {
  const { stdin, ends, heard, stdout, faulty } = streams('tool=search delay=1h');
  stdin.write(CALL);
  await vi.waitFor(() => expect(heard()).toBe(CALL));
  ends.stdout.on('error', () => {});
  ends.stdout.write(ANSWER);
  stdout.destroy();
  await vi.waitFor(() => expect(faulty).toHaveLength(1));
  expect(faulty[0]?.payload).toHaveLength(0);
  expect(faulty[0]?.fault.original?.toString()).toBe(ANSWER.trimEnd());
});
