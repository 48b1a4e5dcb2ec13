/** What `recordedFetch` gives its host in place of what `fetch` gave, and how each call ends in the store. */
import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { recordedFetch } from '../../src/record/record.ts';
import { listenOn } from '../support/http.ts';
import { exchangesOf, sessionsOf } from '../support/recorded.ts';
import { tempStore } from '../support/tapedeck.ts';

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(listener: Listener): Promise<string> {
  const server = createServer(listener);
  const port = await listenOn(server);
  onTestFinished(() => void server.closeAllConnections());
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${port}/mcp`;
}

const TEXT = '\u{feff}{"name":"hällo","of":[1,2,3]}';

const BYTES = Buffer.from(TEXT);

const listOf = (bytes: ArrayBuffer | Uint8Array) => [...Buffer.from(bytes as Uint8Array)];

async function listOfStream(stream: ReadableStream<Uint8Array> | null): Promise<number[]> {
  const all: number[] = [];
  for await (const chunk of stream ?? []) all.push(...chunk);
  return all;
}

const WAYS: Record<string, (response: Response) => Promise<unknown>> = {
  text: (response) => response.text(),
  json: (response) => response.json(),
  arrayBuffer: async (response) => listOf(await response.arrayBuffer()),
  blob: async (response) => {
    const blob = await response.blob();
    return [blob.type, listOf(await blob.arrayBuffer())];
  },
  'a reader, then another one': async (response) => {
    const reader = response.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    reader?.releaseLock();
    return [...listOf(value ?? new Uint8Array()), ...(await listOfStream(response.body))];
  },
  'a reader with a buffer of its own': async (response) => {
    const reader = response.body?.getReader({ mode: 'byob' });
    const all: number[] = [];
    for (;;) {
      const { done, value } = (await reader?.read(new Uint8Array(7))) ?? { done: true, value: undefined };
      if (done) return all;
      all.push(...(value ?? []));
    }
  },
  'for await': (response) => listOfStream(response.body),
  pipeThrough: async (response) => {
    const parts: unknown[] = [];
    for await (const part of response.body?.pipeThrough(new TextDecoderStream() as never) ?? [])
      parts.push(part);
    return parts.join('');
  },
  tee: async (response) => {
    const [a, b] = response.body?.tee() ?? [null, null];
    return Promise.all([listOfStream(a), listOfStream(b)]);
  },
  'a copy, then itself': async (response) => {
    const copy = response.clone();
    return [await copy.json(), copy.status, copy.url, await response.text()];
  },
  'only the copy of a copy': (response) => response.clone().clone().text(),
  'the body, and then all of it': async (response) => [response.body?.locked, await response.text()],
  'a response made of it': async (response) => {
    const made = new Response(response.body, response);
    return [made.status, made.headers.get('x-own'), await made.text()];
  },
  twice: async (response) => {
    const first = await response.text();
    return [first, await response.text().catch((error) => error.constructor.name), response.bodyUsed];
  },
  'what is no form': (response) => response.formData().catch((error) => error.constructor.name),
};

test('each way to read a body gives what it gives without, and the bytes are recorded once', async () => {
  const url = await serve((_, response) => {
    response.writeHead(203, { 'content-type': 'application/json', 'x-own': 'yes' });
    response.write(BYTES.subarray(0, 10));
    setImmediate(() => response.end(BYTES.subarray(10)));
  });
  const db = tempStore();
  const recorded = recordedFetch(fetch, { db });
  for (const [name, read] of Object.entries(WAYS)) {
    const plain = await fetch(url);
    const watched = await recorded(url);
    expect(watched instanceof plain.constructor).toBe(true);
    expect([watched.bodyUsed, watched.url, watched.type, watched.ok]).toEqual([false, url, plain.type, true]);
    expect(await read(watched), name).toEqual(await read(plain));
    expect(watched.bodyUsed, name).toBe(plain.bodyUsed);
  }
  await recorded.close();
  const frames = [{ text: BYTES.toString('latin1') }];
  expect(exchangesOf(db)).toMatchObject(
    Object.keys(WAYS).map(() => ({ status: 203, closedBy: 'server', error: null, frames })),
  );
});

/** Begins an answer, and goes on with none. */
const begins: Listener = (incoming, response) => {
  if (incoming.url?.endsWith('headers')) return;
  const type = incoming.url?.endsWith('events') ? 'text/event-stream' : 'application/json';
  response
    .writeHead(200, { 'content-type': type })
    .write(incoming.url?.endsWith('events') ? 'data: 1\n\n' : '{');
};

type Call = (url: string, init?: RequestInit) => Promise<Response>;

/** What becomes of the call, in one word: as it is without recording. */
const failure = (work: Promise<unknown> | undefined) =>
  (work ?? Promise.resolve()).then(
    () => 'nothing',
    (error) => error.name,
  );

const ABORTS: Record<string, (call: Call, url: string) => Promise<unknown>> = {
  'before the call': (call, url) => failure(call(url, { signal: AbortSignal.abort() })),
  'before the answer': async (call, url) => {
    const abort = new AbortController();
    const waiting = failure(call(`${url}/headers`, { signal: abort.signal }));
    setTimeout(() => abort.abort(), 20);
    return waiting;
  },
  'with an answer that nobody reads': async (call, url) => {
    const abort = new AbortController();
    const response = await call(url, { signal: abort.signal });
    abort.abort();
    return response.status;
  },
  'while it is read whole': async (call, url) => {
    const abort = new AbortController();
    const response = await call(url, { signal: abort.signal });
    const reading = failure(response.json());
    setTimeout(() => abort.abort(), 20);
    return reading;
  },
  'between two events': async (call, url) => {
    const abort = new AbortController();
    const response = await call(`${url}/events`, { signal: abort.signal });
    const reader = response.body?.pipeThrough(new TextDecoderStream() as never).getReader();
    const { value } = (await reader?.read()) ?? {};
    abort.abort(new RangeError('enough'));
    return [value, await failure(reader?.read())];
  },
  'by its reader': async (call, url) => {
    const reader = (await call(`${url}/events`)).body?.getReader();
    await reader?.read();
    return failure(reader?.cancel());
  },
  'by a request with a signal of its own': async (call, url) => {
    const abort = new AbortController();
    const request = new Request(`${url}/headers`, { signal: abort.signal });
    const waiting = failure(call(request as never));
    setTimeout(() => abort.abort(), 20);
    return waiting;
  },
  'by the connection': async (call, url) => failure((await call(`${url}/breaks`)).text()),
};

test('a call that is given up fails as it does without, and its exchange has ended in the store', async () => {
  const url = await serve((incoming, response) => {
    begins(incoming, response);
    if (incoming.url?.endsWith('breaks')) setImmediate(() => response.destroy());
  });
  for (const [name, giveUp] of Object.entries(ABORTS)) {
    const db = tempStore();
    const recorded = recordedFetch(fetch, { db });
    expect(await giveUp(recorded, url), name).toEqual(await giveUp(fetch, url));
    await recorded.flush();
    const isBroken = name === 'by the connection';
    const how = {
      closedBy: isBroken ? 'server' : 'client',
      error: isBroken ? expect.stringMatching(/\S/) : 'the client gave the call up',
    };
    expect(exchangesOf(db), name).toMatchObject([how]);
    expect(sessionsOf(db), name).toMatchObject([{ dropped: 0 }]);
    await recorded.close();
  }
});

test('a host whose fetch gives what is no response, or refuses a call, is never troubled', async () => {
  const db = tempStore();
  const made = { status: 200, json: async () => ({ own: true }) };
  const odd = recordedFetch((async () => made) as unknown as typeof fetch, { db });
  expect(await odd('http://127.0.0.1:1/mcp')).toBe(made);
  await odd.close();
  expect(sessionsOf(db)).toMatchObject([{ dropped: 1 }]);

  const ofRefused = tempStore();
  const recorded = recordedFetch(fetch, { db: ofRefused });
  const refused: [string, RequestInit?][] = [
    ['no address'],
    ['http://127.0.0.1:9/', { headers: { name: 'two\nlines' } }],
    ['http://127.0.0.1:9/', { headers: { name: 'snow ☃' } }],
    ['http://127.0.0.1:9/', { method: 7, headers: { [Symbol.iterator as never]: 1 } } as never],
  ];
  for (const call of refused) {
    const plain = await fetch(...call).catch((error: Error) => error);
    await expect(recorded(...call)).rejects.toEqual(plain);
  }
  await recorded.close();
  expect(existsSync(ofRefused)).toBe(false);
});

test('a method is recorded as fetch sends it, and with a form its type', async () => {
  const db = tempStore();
  const recorded = recordedFetch((async () => new Response('{}')) as typeof fetch, { db });
  const form = new URLSearchParams({ a: '1' });
  for (const method of ['post', 'patch'])
    await (await recorded('http://127.0.0.1:1/', { method, body: form, headers: [['x', ' y ']] })).text();
  await recorded.close();
  const requestHeaders = [
    ['x', 'y'],
    ['content-type', 'application/x-www-form-urlencoded;charset=UTF-8'],
  ];
  expect(exchangesOf(db)).toMatchObject(
    ['POST', 'patch'].map((method) => ({ method, requestHeaders, requestBytes: 3 })),
  );
});
