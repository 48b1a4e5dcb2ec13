import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HttpExchange } from '../../src/protocol/http/exchange.ts';
import { PLAIN_PROFILE } from '../../src/protocol/redact/profile.ts';
import { createRedactor } from '../../src/protocol/redact/redactor.ts';
import type { Channel, Frame, FramePart, HttpMark, LineEnd } from '../../src/protocol/wire/frame.ts';
import type { EndReason } from '../../src/store/file/columns.ts';
import { openStore } from '../../src/store/file/open.ts';
import { reindexSession } from '../../src/store/write/index.ts';
import { createPendingSession } from '../../src/store/write/pending.ts';
import { createRowWriter, insertSession } from '../../src/store/write/rows.ts';
import { scale } from '../support/scale.ts';
import { tempStore } from '../support/tapedeck.ts';
import { contentOf, exportText, roundTrip } from '../support/text-recording.ts';

const START = {
  target: 'node server.js',
  cwd: '/somewhere',
  at: 1_763_632_800_000_001,
  host: 'here',
  pid: 7,
  processStarted: '77',
  clientPid: 6,
  clientProgram: 'sh',
  tapedeck: '1.2.3',
};
const MANY = { numRuns: scale(150, 20) };

const at = fc.oneof(
  fc.integer({ min: START.at - 10, max: START.at + 10 }),
  fc.integer({ min: START.at - 1e12, max: START.at + 1e12 }),
);
const words = fc.string({ unit: 'binary', maxLength: 8 });
const trickyJson = fc.constantFrom(
  '{"__proto__":{"a":1}}',
  '{"b":1,"1":2}',
  '{"1":2,"b":1}',
  '{"a":1,"a":2}',
  '{"id":12345678901234567890}',
  '[1e400,-0,1.0,1E3,0.1]',
  '"\\ud800"',
  '"\\uD800"',
  '"\\u2028\u2028\\/"',
  ' {"a":1}',
  '{"a":1}\r',
  '\ufeff{"a":1}',
  '',
  'null',
  '42',
  `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
);
const json = fc.json({ maxDepth: 3 }).map((text) => JSON.stringify(JSON.parse(text)));
const payload = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.oneof(json, words, trickyJson).map((text) => Buffer.from(text)),
);
const eventPayload = fc.oneof(
  payload,
  fc
    .record({
      fields: fc.array(
        fc.tuple(
          fc.constantFrom('event: ', 'id: ', 'retry: ', 'id:', 'data: ', 'data:', ': ', ''),
          fc.oneof(json, words, fc.constantFrom('message', '7', '')),
        ),
        { maxLength: 4 },
      ),
      data: json,
      lineEnd: fc.constantFrom('\n', '\r\n', '\r'),
      end: fc.constantFrom('', '\n', '\r\n'),
    })
    .map(({ fields, data, lineEnd, end }) => {
      const lines = [...fields.map(([name, value]) => name + value), `data: ${data}`];
      return Buffer.from(lines.map((line) => line + lineEnd).join('') + (end === '' ? lineEnd : end));
    }),
);

const cut = fc.option(fc.integer({ min: 0, max: 1000 }), { freq: 4 });

const stdioFrame: fc.Arbitrary<Frame> = fc
  .record({
    channel: fc.constantFrom<Channel>('stdin', 'stdout', 'stderr'),
    at,
    payload,
    lineEnd: fc.constantFrom<LineEnd>('\n', '\r\n', ''),
    part: fc.constantFrom<FramePart>('line', 'lsp-header', 'lsp-body'),
    cut,
  })
  .map(({ cut: lost, ...frame }) => ({
    ...frame,
    size: frame.payload.length + (lost ?? 0),
    truncated: lost !== null,
    http: null,
  }));

const httpFrame: fc.Arbitrary<Frame> = fc
  .record({
    channel: fc.constantFrom<Channel>('request', 'response', 'sse'),
    at,
    body: payload,
    event: eventPayload,
    original: fc.option(eventPayload, { freq: 4 }),
    isOrdinary: fc.boolean(),
    exchange: fc.integer({ min: 1, max: 6 }),
    marks: fc.subarray<HttpMark>(['undecoded', 'wrong-type', 'incomplete', 'replayed']),
    cut,
    hasHash: fc.boolean(),
  })
  .map(({ channel, body, event, original, isOrdinary, exchange, marks, cut: lost, hasHash, ...rest }) => {
    const [ordinary, other]: [FramePart, FramePart] =
      channel === 'sse' ? ['event', 'block'] : ['body', 'foreign-body'];
    const bytes = channel === 'sse' ? event : body;
    const sha256 = lost !== null && hasHash ? 'ab'.repeat(32) : null;
    return {
      ...rest,
      channel,
      payload: bytes,
      lineEnd: '' as const,
      size: bytes.length + (lost ?? 0),
      truncated: lost !== null,
      part: isOrdinary ? ordinary : other,
      http: { exchange, marks, original, sha256 },
    };
  });

const headerText = fc.string({
  unit: fc.integer({ min: 0x20, max: 0xff }).map((c) => String.fromCharCode(c)),
  maxLength: 6,
});
const headers = fc
  .array(fc.tuple(fc.constantFrom('Accept', 'authorization', 'Cookie', '__proto__'), headerText), {
    maxLength: 3,
  })
  .map((pairs) => pairs.flat());
const edits = (side: 'request' | 'response') =>
  fc.array(
    fc.record({ side: fc.constant(side), header: fc.constantFrom('Host', 'Location'), original: headerText }),
    {
      maxLength: 2,
    },
  );
const bytes = fc.nat(1000);

const exchange: fc.Arbitrary<Omit<HttpExchange, 'number' | 'endedAfter'> & { after: number }> = fc
  .record({
    head: fc.record({
      method: fc.constantFrom('GET', 'POST'),
      path: fc.webPath(),
      version: fc.constant('1.1'),
      client: words,
    }),
    at,
    requestHeaders: headers,
    requestEdits: edits('request'),
    requestEnd: fc.option(fc.record({ requestEndedAt: at, requestBytes: bytes, requestTrailers: headers })),
    informations: fc
      .array(fc.record({ at, status: fc.constantFrom(100, 103), headers }), { maxLength: 2 })
      // They passed one after the other.
      .map((all) => all.toSorted((one, other) => one.at - other.at)),
    response: fc.option(
      fc.record({
        status: fc.integer({ min: 100, max: 599 }),
        statusText: headerText,
        responseHeaders: headers,
        responseAt: at,
        responseBytes: bytes,
        own: edits('response'),
      }),
    ),
    end: fc.option(
      fc.record({
        endedAt: at,
        closedBy: fc.constantFrom('server' as const, 'client' as const, 'proxy' as const),
        error: fc.option(words),
        responseTrailers: headers,
      }),
    ),
    after: fc.nat(20),
  })
  .map(({ head, requestEdits, requestEnd, response, end, ...rest }) => {
    const { own = [], ...answer } = response ?? {
      status: null,
      statusText: null,
      responseHeaders: null,
      responseAt: null,
      responseBytes: 0,
    };
    return {
      ...head,
      ...rest,
      ...(requestEnd ?? { requestEndedAt: null, requestBytes: 0, requestTrailers: [] }),
      ...answer,
      ...(end ?? { endedAt: null, closedBy: null, error: null, responseTrailers: [] }),
      edits: [...requestEdits, ...own],
    };
  });

const labels = fc.uniqueArray(fc.tuple(fc.oneof(words, fc.constantFrom('__proto__', '10', '9')), words), {
  maxLength: 3,
  selector: ([key]) => key,
});
const name = fc.option(words);
const loss = fc.record({ frames: fc.nat(3), bytes: fc.nat(3) });

test('any stdio session goes through a text recording and comes back the same', async () => {
  const end = fc.option(
    fc.record({
      at,
      reason: fc.constantFrom<EndReason>(
        'client-closed',
        'server-exited',
        'signalled',
        'not-started',
        'stopped',
      ),
      exitCode: fc.option(fc.nat(255)),
      signal: fc.option(fc.constant('SIGTERM')),
      clientClosedAt: fc.option(at),
      serverClosedAt: fc.option(at),
    }),
  );
  const rests = fc.uniqueArray(
    fc.record({
      channel: fc.constantFrom('stdin' as const, 'stdout' as const, 'stderr' as const),
      at,
      bytes: payload,
    }),
    { selector: ({ channel }) => channel },
  );
  const command = fc.array(words, { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(
      fc.record({ name, labels, command, loss, end, rests, frames: fc.array(stdioFrame, { maxLength: 12 }) }),
      async ({ frames, rests: unfinished, end: ended, loss: lost, ...start }) => {
        const store = openStore(tempStore());
        const form = { basis: 'stdio-process', transport: 'stdio' } as const;
        const key = insertSession(store, { ...START, ...start, ...form });
        const writer = createRowWriter(store, null);
        const pending = createPendingSession({ ...form, end: ended, loss: lost });
        for (const frame of frames) pending.add(frame, false);
        writer.write(key, pending);
        for (const rest of unfinished)
          writer.writeUnfinished(key.number, { ...rest, exchange: null, part: 0 });
        reindexSession(store, key.number);
        await expectFixpoint(store);
      },
    ),
    MANY,
  );
});

test('any HTTP session goes through a text recording and comes back the same', async () => {
  const end = fc.option(
    fc.record({ at, reason: fc.constantFrom<EndReason>('deleted', 'gone', 'idle', 'stopped') }),
  );
  const rests = fc.uniqueArray(
    fc.record({
      channel: fc.constantFrom('request' as const, 'sse' as const),
      exchange: fc.integer({ min: 1, max: 3 }),
      at,
      bytes: payload,
    }),
    { selector: ({ channel, exchange: number }) => `${channel} ${number}` },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        name,
        labels,
        loss,
        end,
        rests,
        frames: fc.array(httpFrame, { maxLength: 12 }),
        exchanges: fc.array(exchange, { maxLength: 6 }),
      }),
      async ({ frames, rests: unfinished, exchanges, end: ended, loss: lost, ...start }) => {
        const store = openStore(tempStore());
        const writer = createRowWriter(
          store,
          createRedactor(PLAIN_PROFILE, (secret) => String(secret.length).padStart(12, '0')),
        );
        const key = insertSession(store, {
          ...START,
          ...start,
          command: null,
          basis: 'stateless',
          transport: 'http',
        });
        const pending = createPendingSession({
          ...{ basis: 'session-header', transport: 'http', loss: lost },
          end: ended && {
            ...ended,
            exitCode: null,
            signal: null,
            clientClosedAt: null,
            serverClosedAt: null,
          },
        });
        for (const frame of frames) pending.add(frame, false);
        for (const { after, ...one } of exchanges) {
          const endedAfter = one.endedAt === null ? null : Math.min(after, frames.length);
          pending.begin({ ...one, number: 0, endedAfter });
        }
        writer.write(key, pending);
        for (const rest of unfinished) writer.writeUnfinished(key.number, { ...rest, part: 0 });
        reindexSession(store, key.number);
        await expectFixpoint(store);
      },
    ),
    MANY,
  );
});

async function expectFixpoint(store: ReturnType<typeof openStore>): Promise<void> {
  const { text, copy } = await roundTrip(store);
  expect(exportText(copy)).toBe(text);
  expect(JSON.stringify(contentOf(copy))).toBe(JSON.stringify(contentOf(store)));
  store.close();
  copy.close();
}
