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

/**
 * A stream in the place of another one, of its kind: it reads a chunk when one is asked for, and hands on its end, its failure and
 * its reader's leaving at once.
 */
export function showing(source: ReadableStream, watcher: StreamWatcher): ReadableStream {
  const isOfBytes = takesBuffers(source);
  const reader: ReadableStreamDefaultReader<Chunk> = source.getReader();
  type Controller = ReadableStreamDefaultController<Chunk> | ReadableByteStreamController;

  async function pull(controller: Controller): Promise<void> {
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
      reader.closed.catch((error: unknown) => {
        watcher.onFailure(error);
        controller.error(error);
      });
    },
    pull,
    cancel(reason: unknown) {
      watcher.onCancel();
      return reader.cancel(reason);
    },
  };
  if (isOfBytes) return new ReadableStream({ ...methods, type: 'bytes' });
  return new ReadableStream(methods, { highWaterMark: 0 });
}

function takesBuffers(stream: ReadableStream): boolean {
  try {
    stream.getReader({ mode: 'byob' }).releaseLock();
    return true;
  } catch {
    return false;
  }
}

const READERS = ['arrayBuffer', 'blob', 'bytes', 'formData', 'json', 'text'] as const;

/** The same object, read by way of another body: whatever else it has, its address and its class among it, stays. */
export function withBody(response: Response, body: ReadableStream): Response {
  const { headers, status, statusText, url, redirected, type } = response;
  const stand = new Response(body, { headers });
  const members: PropertyDescriptorMap = {
    body: { get: () => stand.body, configurable: true },
    bodyUsed: { get: () => stand.bodyUsed, configurable: true },
    clone: {
      value() {
        const copy = new Response(stand.clone().body, { headers, status, statusText });
        return Object.defineProperties(copy, {
          url: { value: url },
          redirected: { value: redirected },
          type: { value: type },
        });
      },
      configurable: true,
    },
  };
  for (const name of READERS) {
    const read = (stand as unknown as Record<string, unknown>)[name];
    if (typeof read === 'function') members[name] = { value: () => read.call(stand), configurable: true };
  }
  return Object.defineProperties(response, members);
}
