/** The door for a server on stdio: streams for its transport, by which the bytes pass as they are. */

import { Readable, type Writable } from 'node:stream';
import { now } from '../capture/clock.ts';
import { commandLine } from '../protocol/text.ts';
import type { StdioChannel } from '../protocol/wire/frame.ts';
import type { SessionEnd } from '../store/file/columns.ts';
import { openRecorder, type Recorder } from '../store/record/recorder.ts';
import type { Door, RecordingOptions } from './door.ts';
import { readRecordingOptions } from './options.ts';
import { standIn } from './stand-in.ts';
import { createTape, type DoorTape, endOf, isTurnedOff } from './tape.ts';

/** Options of `recordStdio`. */
export type StdioRecordingOptions = RecordingOptions & {
  /** What the client writes to; default: `process.stdin`. */
  stdin?: Readable | undefined;
  /** What the client reads from; default: `process.stdout`. */
  stdout?: Writable | undefined;
};

/** What `recordStdio` returns. */
export type RecordedStdio = Door & {
  /** For the server's transport, in place of `process.stdin`. */
  readonly stdin: Readable;
  /** For the server's transport, in place of `process.stdout`. */
  readonly stdout: Writable;
};

/**
 * Records what a server reads from stdin and writes to stdout, byte for byte:
 * `new StdioServerTransport(stdin, stdout)`. Nothing is read before somebody reads from `stdin`. Throws `TapedeckError` for a
 * wrong option, and nothing afterwards.
 */
export function recordStdio(options: StdioRecordingOptions = {}): RecordedStdio {
  const { stdin = process.stdin, stdout = process.stdout } = options;
  const closed = { client: null as number | null, server: null as number | null };
  const argv = [process.argv0, ...process.execArgv, ...process.argv.slice(1)];
  const tape = createTape(
    readRecordingOptions(options),
    (start) => {
      const recorder = openRecorder(start);
      recorder.serverStarted(process.pid);
      return recorder;
    },
    () => ({
      ...{ basis: 'stdio-process', transport: 'stdio', parentPid: process.ppid },
      ...{ target: commandLine(argv), command: argv },
    }),
    (exitCode) => stdioEnd(exitCode, closed),
  );
  const door = { flush: tape.flush, close: () => tape.close(), [Symbol.asyncDispose]: () => tape.close() };
  if (isTurnedOff()) return { ...door, stdin, stdout };
  const show = (channel: StdioChannel, bytes: Buffer) => showChunk(tape, channel, bytes);
  return {
    ...door,
    stdin: new RecordedInput(
      stdin,
      (bytes) => show('stdin', bytes),
      () => {
        closed.client ??= now();
      },
    ),
    stdout: recordedOutput(
      stdout,
      (bytes) => show('stdout', bytes),
      () => {
        closed.server ??= now();
      },
    ),
  };
}

function showChunk(tape: DoorTape<Recorder>, channel: StdioChannel, bytes: Buffer): void {
  const at = now();
  tape.use(at, (recorder) => void recorder.append({ channel, at, bytes }));
}

/** The server is this process: with it the session ends. */
function stdioEnd(
  exitCode: number | null,
  { client, server }: { client: number | null; server: number | null },
): SessionEnd {
  const at = now();
  const reason = client !== null ? 'client-closed' : exitCode === null ? 'stopped' : 'server-exited';
  const serverClosedAt = server ?? (exitCode === null ? null : at);
  return endOf(reason, { at, exitCode, clientClosedAt: client, serverClosedAt });
}

/**
 * A stream that reads another one only while it is read itself, and as much at once as that one gives. It is shown to the recorder
 * before it goes on: its reader may answer in the same turn, and that answer comes after it.
 */
class RecordedInput extends Readable {
  readonly #source: Readable;
  readonly #show: (bytes: Buffer) => void;
  readonly #onOver: () => void;
  #isListening = false;

  constructor(source: Readable, show: (bytes: Buffer) => void, onOver: () => void) {
    super({ highWaterMark: source.readableHighWaterMark });
    this.#source = source;
    this.#show = show;
    this.#onOver = onOver;
  }

  override _read(): void {
    this.#listen();
    this.#source.resume();
  }

  /** Who reads no more must not be kept alive by what is still to be read. */
  override pause(): this {
    if (this.#isListening) this.#source.pause();
    return super.pause();
  }

  override resume(): this {
    super.resume();
    if (this.#isListening && !this.#source.readableEnded) this.#source.resume();
    return this;
  }

  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    const source = this.#source;
    source.on('data', (chunk: Buffer | string) => {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      this.#show(bytes);
      if (!this.push(bytes)) source.pause();
    });
    source.on('end', () => {
      this.#onOver();
      this.push(null);
    });
    source.on('error', (error) => this.destroy(error));
    source.on('close', () => {
      this.#onOver();
      if (!source.readableEnded) this.destroy();
    });
  }
}

type Write = (chunk: unknown, ...more: unknown[]) => boolean;

/**
 * Stands for a stream, and is it in everything but this: what is written is shown once it was handed on. A stream of our own in
 * between would hold bytes back that a process which exits at once would otherwise have written.
 */
function recordedOutput(stream: Writable, show: (bytes: Buffer) => void, onOver: () => void): Writable {
  const write: Write = (chunk, ...more) => {
    const isOver = stream.writableEnded || stream.destroyed;
    const bytes = isOver ? null : bytesOf(chunk, more[0]);
    const isReady = (stream.write as Write)(chunk, ...more);
    if (bytes !== null) show(bytes);
    return isReady;
  };
  const end = (...args: unknown[]) => {
    const [chunk, encoding] = args;
    const how = typeof encoding === 'string' ? [encoding] : [];
    if (chunk != null && typeof chunk !== 'function') write(chunk, ...how);
    stream.end(args.find((one) => typeof one === 'function') as (() => void) | undefined);
    onOver();
    return proxy;
  };
  const proxy: Writable = standIn(stream, { get: { write, end } });
  return proxy;
}

/** Null for what no stream of bytes takes: it says so itself. */
export function bytesOf(chunk: unknown, encoding: unknown): Buffer | null {
  if (typeof chunk === 'string')
    return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8');
  if (!(chunk instanceof Uint8Array)) return null;
  return Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}
