/** Bodies of `fetch` that are shown as they are read. */

export type StreamWatcher = {
  /** Before its reader gets them, who may act on them at once. */
  onBytes(bytes: Buffer): void;
  /** The reader has got all of it. */
  onEnd(): void;
  onFailure(error: unknown): void;
  /** The reader has given it up. */
  onCancel(): void;
};

type Chunk = Uint8Array<ArrayBuffer>;

type Showing = {
  stream: ReadableStream;
  /** Nobody has the stream any more. Holds nothing that holds it. */
  leave(): void;
};

/**
 * A stream in the place of another one, of its kind: it reads a chunk when one is asked for, and hands on its end, its failure and
 * its reader's leaving at once.
 */
export function showing(source: ReadableStream, watcher: StreamWatcher): Showing {
  let isRead = false;
  const isOfBytes = takesBuffers(source);
  const reader: ReadableStreamDefaultReader<Chunk> = source.getReader();
  type Controller = ReadableStreamDefaultController<Chunk> | ReadableByteStreamController;

  async function pull(controller: Controller): Promise<void> {
    isRead = true;
    const { done, value } = await reader.read();
    if (done) {
      watcher.onEnd();
      controller.close();
      // Who waits with a buffer of its own is told so by its return.
      if ('byobRequest' in controller) controller.byobRequest?.respond(0);
      return;
    }
    // Handing a chunk on may take its memory away from it.
    if (value instanceof Uint8Array)
      watcher.onBytes(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    if (!isOfBytes || value.byteLength > 0) controller.enqueue(value as never);
    else await pull(controller);
  }

  const methods = {
    start(controller: Controller) {
      // The source must not keep it, or nobody would ever know that it was left.
      const ref = new WeakRef(controller);
      reader.closed.catch((error: unknown) => {
        watcher.onFailure(error);
        ref.deref()?.error(error);
      });
    },
    pull,
    cancel(reason: unknown) {
      watcher.onCancel();
      return reader.cancel(reason);
    },
  };
  const stream = isOfBytes
    ? new ReadableStream({ ...methods, type: 'bytes' })
    : new ReadableStream(methods, { highWaterMark: 0 });
  return {
    stream,
    leave() {
      watcher.onCancel();
      // As `fetch` itself does with a body that nobody has begun to read.
      if (!isRead) reader.cancel(NOBODY).catch(() => {});
    },
  };
}

const NOBODY = 'Nobody has the response any more';

/** Calls what belongs to a response or a stream once that is gone: nobody can read it, cancel it or abort it then. */
const left = new FinalizationRegistry<() => void>((leave) => leave());

function takesBuffers(stream: ReadableStream): boolean {
  try {
    stream.getReader({ mode: 'byob' }).releaseLock();
    return true;
  } catch {
    return false;
  }
}

const READERS = ['arrayBuffer', 'blob', 'bytes', 'formData', 'json', 'text'] as const;

type How = (typeof READERS)[number];

/** What a class of responses has of its own, to read a body. */
type Natives = {
  body(response: Response): ReadableStream;
  isUsed(response: Response): boolean;
  read(response: Response, how: How): Promise<unknown>;
  clone(response: Response): Response;
};

/** A response that is watched, and by which way its body is read, as soon as that is known. */
type Watched = {
  watcher: StreamWatcher;
  natives: Natives;
  /** The body in the place of its own, once somebody has asked for a stream. */
  shown: ReadableStream | null;
  /** Made of that, where it is copied, or read in a way of its own. */
  stand: Response | null;
};

const watched = new WeakMap<Response, Watched>();

/** By the prototype that a response had before. */
const prototypes = new WeakMap<object, { prototype: object; natives: Natives }>();

/**
 * The same object, which shows its body as that is read: all else that it has, its address and its class among it, stays. What
 * most clients do with it, `json` or `text`, reads the body's own stream, and only who asks for a stream is given another one.
 * Throws where it has no body that is a stream of the web.
 */
export function watchBody(response: Response, watcher: StreamWatcher): void {
  if (typeof response.body?.getReader !== 'function' || response.bodyUsed || response.body.locked)
    throw new TypeError('Expected a body that is a stream, and that nobody has begun to read');
  const own = Object.getPrototypeOf(response) as object;
  const known = prototypes.get(own) ?? watchingPrototype(own);
  prototypes.set(own, known);
  left.register(response, () => watcher.onCancel(), response);
  watched.set(response, { watcher, natives: known.natives, shown: null, stand: null });
  Object.setPrototypeOf(response, known.prototype);
}

function watchingPrototype(own: object): { prototype: object; natives: Natives } {
  const get = (name: string, response: Response) => Reflect.get(own, name, response);
  const natives: Natives = {
    body: (response) => get('body', response),
    isUsed: (response) => get('bodyUsed', response),
    read: (response, how) => get(how, response).call(response),
    clone: (response) => get('clone', response).call(response),
  };
  const members: PropertyDescriptorMap = {
    body: {
      get(this: Response) {
        const state = watched.get(this);
        return state === undefined ? get('body', this) : shownBody(this, state);
      },
    },
    bodyUsed: {
      get(this: Response) {
        return watched.get(this)?.stand?.bodyUsed ?? get('bodyUsed', this);
      },
    },
    clone: {
      value(this: Response) {
        const state = watched.get(this);
        return state === undefined ? natives.clone(this) : copyOf(this, state);
      },
    },
  };
  for (const how of READERS)
    if (how in own)
      members[how] = {
        value(this: Response) {
          const state = watched.get(this);
          return state === undefined ? natives.read(this, how) : readWhole(this, state, how);
        },
      };
  return { prototype: Object.create(own, members), natives };
}

function shownBody(response: Response, state: Watched): ReadableStream {
  if (state.stand !== null) return state.stand.body as ReadableStream;
  const body = state.natives.body(response);
  // Of one that is read already there is nothing left to show: its own stream says so itself.
  if (state.shown === null && body.locked) return body;
  if (state.shown === null) {
    const { stream, leave } = showing(body, state.watcher);
    state.shown = stream;
    left.unregister(response);
    left.register(stream, leave);
  }
  return state.shown;
}

function isUnusable(response: Response, state: Watched): boolean {
  const { shown, natives } = state;
  return natives.isUsed(response) || (shown ?? natives.body(response)).locked;
}

async function readWhole(response: Response, state: Watched, how: How): Promise<unknown> {
  if (state.stand !== null) return readBy(state.stand, how);
  // It says so in its own words.
  if (isUnusable(response, state)) return state.natives.read(response, how);
  if (state.shown !== null || how === 'blob' || how === 'formData')
    return readBy(standFor(response, state), how);
  left.unregister(response);
  const bytes = await collect(state.natives.body(response).getReader(), state.watcher);
  switch (how) {
    case 'arrayBuffer':
      return bytes.buffer;
    case 'bytes':
      return bytes;
    case 'text':
      return decoder.decode(bytes);
    case 'json':
      return JSON.parse(decoder.decode(bytes));
  }
}

function readBy(stand: Response, how: How): Promise<unknown> {
  return (stand as unknown as Record<How, () => Promise<unknown>>)[how]();
}

/** "UTF-8 decode" of encoding.spec.whatwg.org, by which `text` and `json` read. */
const decoder = new TextDecoder();

/** All of a body, in memory of its own. */
async function collect(reader: ReadableStreamDefaultReader<Chunk>, watcher: StreamWatcher): Promise<Chunk> {
  const chunks: Chunk[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (!(value instanceof Uint8Array)) throw new TypeError('Received non-Uint8Array chunk');
      watcher.onBytes(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      chunks.push(value);
      length += value.byteLength;
    }
  } catch (error) {
    watcher.onFailure(error);
    throw error;
  }
  watcher.onEnd();
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

function standFor(response: Response, state: Watched): Response {
  const { headers } = response;
  state.stand ??= new Response(shownBody(response, state), { headers });
  return state.stand;
}

function copyOf(response: Response, state: Watched): Response {
  if (state.stand === null && isUnusable(response, state)) return state.natives.clone(response);
  const { headers, status, statusText, url, redirected, type } = response;
  const copy = new Response(standFor(response, state).clone().body, { headers, status, statusText });
  return Object.defineProperties(copy, {
    url: { value: url },
    redirected: { value: redirected },
    type: { value: type },
  });
}
