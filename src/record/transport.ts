/**
 * The door for any transport of an SDK, 1.x or 2.x. It knows of one only what both have in common, and passes everything else
 * through. It sees messages as the transport has parsed them, or before it writes them: not the bytes that passed.
 * Specification: the interface `Transport` of the TypeScript SDKs.
 */

import { now } from '../capture/clock.ts';
import type { SessionEnd } from '../store/file/columns.ts';
import { openRecorder } from '../store/record/recorder.ts';
import type { RecordingOptions } from './door.ts';
import { readRecordingOptions } from './options.ts';
import { standIn } from './stand-in.ts';
import { createTape, endOf } from './tape.ts';

type Listener = ((...args: never[]) => unknown) | undefined;

/** What a transport must have. */
export type RecordableTransport = {
  /** Sends a message. */
  send(message: never, ...more: never[]): Promise<unknown>;
  /** Closes the connection. */
  close(): Promise<unknown>;
  /** Called with each message that came. */
  onmessage?: Listener;
  /** Called when the connection is closed. */
  onclose?: Listener;
};

/** The transport itself, with these besides. Its `close` ends the recording, too. */
export type RecordedTransport<T> = T & {
  /** Settles once everything that has passed so far is stored, or given up and counted. Never rejects. */
  flush(): Promise<void>;
  /** Closes the transport, and settles once the recording is stored. */
  [Symbol.asyncDispose](): Promise<void>;
};

/**
 * Records the messages that a transport sends and receives, as one session. Give what it returns to the client or the server in
 * place of the transport. Who speaks first is the client. Throws `TapedeckError` for a wrong option, and nothing afterwards.
 */
export function recordedTransport<T extends RecordableTransport>(
  transport: T,
  options: RecordingOptions = {},
): RecordedTransport<T> {
  const own = transport as RecordableTransport;
  /** Whether what is sent comes from the client; null: nothing has passed. */
  let isClient: boolean | null = null;
  const closedAt = { us: null as number | null, other: null as number | null };
  const tape = createTape(
    readRecordingOptions(options),
    openRecorder,
    () => ({
      ...{ basis: 'sdk-transport', transport: 'stdio', target: nameOf(transport), command: null },
      // A server's client is another process, or this one: the transport does not tell.
      parentPid: isClient ? process.pid : null,
    }),
    (exitCode) => transportEnd(isClient === true, closedAt, exitCode),
  );

  function show(isSent: boolean, message: unknown): void {
    const at = now();
    isClient ??= isSent;
    const channel = isSent === isClient ? 'stdin' : 'stdout';
    tape.use(at, (recorder) => {
      const text = textOf(message);
      if (text === null) recorder.lose(channel);
      else void recorder.append({ channel, at, bytes: Buffer.from(`${text}\n`) });
    });
  }

  function finish(): void {
    closedAt.other ??= now();
    void tape.close(false);
  }

  const heard = new Map<string, Listener>();
  function hear(name: 'onmessage' | 'onclose', before: (message: unknown) => void): void {
    const set = (listener: Listener) => {
      heard.set(name, listener);
      own[name] = (message: never, ...more: never[]) => {
        before(message);
        return listener?.call(recorded as never, message, ...more);
      };
    };
    if (own[name] !== undefined) set(own[name]);
    listeners[name] = (listener) => set(listener as Listener);
  }
  const listeners: Record<string, (listener: unknown) => void> = {};
  hear('onmessage', (message) => show(false, message));
  hear('onclose', finish);

  const close = () => {
    closedAt.us ??= now();
    const closing = own.close();
    void closing?.then?.(finish, finish);
    return closing;
  };
  const recorded = standIn(transport, {
    get: {
      send(message: never, ...more: never[]) {
        // First, because the other end of a transport in memory answers within the call.
        show(true, message);
        return own.send(message, ...more);
      },
      close,
      flush: tape.flush,
      async [Symbol.asyncDispose]() {
        await close();
        await tape.close();
      },
    },
    set: listeners,
    read: { onmessage: () => heard.get('onmessage'), onclose: () => heard.get('onclose') },
  });
  return recorded as RecordedTransport<T>;
}

function nameOf(transport: object): string {
  return transport.constructor?.name || 'Transport';
}

/** Null where there is none: the transport will say so, in its own words. */
function textOf(message: unknown): string | null {
  try {
    return JSON.stringify(message) ?? null;
  } catch {
    return null;
  }
}

function transportEnd(
  isClient: boolean,
  { us, other }: { us: number | null; other: number | null },
  exitCode: number | null,
): SessionEnd {
  const at = now();
  const isOurs = us !== null || (other === null && exitCode !== null);
  const ended = us ?? other ?? at;
  if (us === null && other === null && exitCode === null) return endOf('stopped', { at });
  return isOurs === isClient
    ? endOf('client-closed', { at, clientClosedAt: ended, serverClosedAt: at })
    : endOf('server-closed', { at, serverClosedAt: ended });
}
