import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { writeNdjson } from '../../src/export/text/write.ts';
import type { Frame } from '../../src/protocol/wire/frame.ts';
import { openStore, type Store } from '../../src/store/file/open.ts';
import { findSession } from '../../src/store/read/sessions.ts';
import { createPendingSession } from '../../src/store/write/pending.ts';
import { createRowWriter, insertSession } from '../../src/store/write/rows.ts';
import { frameOf } from '../support/messages.ts';
import { inFull, scale } from '../support/scale.ts';
import { tempStore } from '../support/tapedeck.ts';
import { contentOf, IMPORTER, importText } from '../support/text-recording.ts';

const MIB = 1024 * 1024;
const START = {
  name: null,
  labels: [],
  basis: 'stdio-process' as const,
  transport: 'stdio' as const,
  target: 'x',
  command: ['x'],
  cwd: null,
  at: 1_763_632_800_000_000,
  clientPid: null,
  clientProgram: null,
  ...IMPORTER,
};

function addSession(store: Store, frames: readonly Frame[]): void {
  const pending = createPendingSession({ basis: START.basis, transport: START.transport });
  for (const frame of frames) pending.add(frame, false);
  createRowWriter(store, null).write(insertSession(store, START), pending);
}

function pieces(store: Store): Generator<string> {
  return writeNdjson(store, findSession(store, 'latest'), { onFrame() {} });
}

async function* bytesOf(texts: Iterable<string>): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

test('frames of 64 MB, text or not, go through whole', async () => {
  const text = Buffer.from(
    `{"jsonrpc":"2.0","id":1,"result":"${'äx"'.replace('"', '\\"').repeat(scale(13) * MIB)}"}`,
  );
  const frames = [frameOf('stdout', text), frameOf('stdout', randomBytes(scale(64) * MIB))];
  const store = openStore(tempStore());
  addSession(store, frames);
  const copy = openStore(tempStore());
  await importText(copy, bytesOf(pieces(store)));
  const payloads = 'SELECT sum(length(bytes)) FROM frame_part GROUP BY seq';
  expect(copy.prepare(payloads).pluck().all()).toEqual(store.prepare(payloads).pluck().all());
  for (const seq of [1, 2]) {
    const part = `SELECT bytes FROM frame_part WHERE seq = ${seq} ORDER BY part`;
    const joined = (from: Store) => Buffer.concat(from.prepare<[], Buffer>(part).pluck().all());
    expect(joined(copy).equals(joined(store))).toBe(true);
  }
  copy.close();
  store.close();
});

test('a large payload is given out in pieces, none of which is large', () => {
  const store = openStore(tempStore());
  const frames = [
    frameOf('stdout', Buffer.alloc(20 * MIB, 'a')),
    frameOf('stdout', Buffer.alloc(20 * MIB, 0xff)),
  ];
  addSession(store, frames);
  let longest = 0;
  for (const piece of pieces(store)) longest = Math.max(longest, piece.length);
  expect(longest).toBeLessThan(5 * MIB);
  store.close();
});

inFull(
  'a long session is stored while it is read, and what is stored does not wait for the rest',
  async () => {
    const store = openStore(tempStore());
    const frames = scale(100_000);
    const stored = store.prepare<[], number>('SELECT count(*) FROM frame').pluck();
    let mostWaiting = 0;
    function* lines(): Generator<string> {
      yield `${[...headOf()].join('')}`;
      for (let i = 0; i < frames; i += 1) {
        if (i % 1000 === 0) mostWaiting = Math.max(mostWaiting, i - (stored.get() ?? 0));
        yield `{"ms":0.001,"channel":"stdout","message":{"jsonrpc":"2.0","method":"notifications/message","params":{"n":${i}}}}\n`;
      }
    }
    await importText(store, Readable.from(bytesOf(lines())));
    expect(mostWaiting).toBeLessThan(3000);
    expect(contentOf(store)).toMatchObject({ session: [{ frames, indexed: frames }] });

    let longest = 0;
    let count = 0;
    for (const piece of pieces(store)) {
      longest = Math.max(longest, piece.length);
      count += piece.endsWith('\n') ? 1 : 0;
    }
    expect({ count, isShort: longest < 1000 }).toEqual({ count: frames + 1, isShort: true });
    store.close();
  },
);

function* headOf(): Generator<string> {
  const empty = openStore(tempStore());
  insertSession(empty, START);
  yield* pieces(empty);
  empty.close();
}
