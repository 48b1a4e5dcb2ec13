import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { preparePayloads } from '../../../src/store/read/frames.ts';
import { beginImport } from '../../../src/store/write/import.ts';
import { START } from '../../support/stored.ts';
import { tempStore } from '../../support/tapedeck.ts';

function storedSession(store: Store, payloads: readonly Buffer[]): number {
  const session = beginImport(store, START, { frames: 0, bytes: 0 }, null);
  for (const [i, payload] of payloads.entries()) {
    const channel = i % 2 === 0 ? 'stdin' : 'stdout';
    const rest = { lineEnd: '\n', size: payload.length, truncated: false, part: 'line', http: null } as const;
    session.add({ channel, at: i + 1, payload, ...rest });
  }
  return session.finish(null).number;
}

test('frames of any bytes and size are given as they are stored, in whatever order they are asked for', () => {
  const store = openStore(tempStore());
  const odd = [
    Buffer.alloc(0),
    Buffer.from([0]),
    Buffer.from([0, 0, 0x61, 0]),
    Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80]),
    Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]),
    Buffer.from('é and 👍 and \u0000'),
  ];
  const sizes = [3, 16 * 1024, 16 * 1024 + 1, 100_000, 1024 * 1024, 3 * 1024 * 1024 + 5];
  const some = Array.from({ length: 400 }, (_, i) => randomBytes((i * 37) % 300));
  const payloads = [...odd, ...sizes.map((size) => randomBytes(size)), ...some];
  storedSession(store, [Buffer.from('of another session')]);
  const number = storedSession(store, payloads);

  const all = payloads.map((_, i) => i + 1);
  const mixed = all.toSorted((a, b) => ((a * 7919) % 997) - ((b * 7919) % 997));
  for (const order of [all, all.toReversed(), mixed]) {
    const payloadAt = preparePayloads(store, number);
    for (const seq of order) {
      const found = payloadAt(seq);
      expect(found?.channel).toBe(seq % 2 === 1 ? 'stdin' : 'stdout');
      expect(found?.payload.equals(payloads[seq - 1] as Buffer)).toBe(true);
    }
    expect(payloadAt(0)).toBeUndefined();
    expect(payloadAt(payloads.length + 1)).toBeUndefined();
  }
  store.close();
});
