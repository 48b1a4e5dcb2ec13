/**
 * Faults over stdio. The relay between a client and a server (capture/stdio) stays as it is and is given other streams: what
 * it forwards passes a lane in each direction, which shows what really went on. So a run without faults asks nothing.
 */

import { PassThrough, type Readable, Writable } from 'node:stream';
import { setTimeout } from 'node:timers';
import { type Chunk, type Frame, type FrameFault, type LineEnd, sentBytes } from '../protocol/wire/frame.ts';
import { createLineSplitter } from '../protocol/wire/lines.ts';
import type { Effect, Exit } from './effect.ts';
import { type Faults, markOf } from './faults.ts';
import { createLane, type Lane } from './lane.ts';

/** A line that a fault was put into, when it has gone on or never will. */
export type FaultyLine = {
  channel: 'stdin' | 'stdout';
  at: number;
  payload: Buffer;
  lineEnd: LineEnd;
  fault: FrameFault;
};

type LineLaneOptions = {
  channel: 'stdin' | 'stdout';
  faults: Faults;
  /** Microseconds since the Unix epoch. */
  now: () => number;
  write: (bytes: Buffer) => void;
  /** Bytes that went on as they were said, whole lines. */
  onChunk: (chunk: Chunk) => void;
  onFaulty: (line: FaultyLine) => void;
  besides: (what: NonNullable<Effect['besides']>) => void;
};

export type LineLane = Lane & { feed(bytes: Buffer): void };

/** Lines of one direction, each with its fault. A line waits for its end, since only a whole message can be asked about. */
export function createLineLane(options: LineLaneOptions): LineLane {
  const { channel, faults, now, write, onChunk, onFaulty, besides } = options;
  const lane = createLane({ write, besides, mark: markOf });

  function onFrame(frame: Frame): void {
    const { lineEnd } = frame;
    const end = Buffer.from(lineEnd);
    const wire = (json: Buffer) => Buffer.concat([json, end]);
    const fault = faults.choose(frame);
    const passed = (payload: Buffer, mark: FrameFault | null) => {
      if (mark === null) onChunk({ channel, at: now(), bytes: wire(payload) });
      else onFaulty({ channel, at: now(), payload, lineEnd, fault: mark });
    };
    lane.take({ json: sentBytes(frame), wire, passed }, fault?.chosen ?? null, fault?.effect ?? null);
  }

  // Nothing of a line may be lost, however long it is.
  const maxBytes = Number.MAX_SAFE_INTEGER;
  const splitter = createLineSplitter({ channel, maxBytes, onFrame, onSkip: () => {} });
  return {
    ...lane,
    feed: (bytes) => splitter.feed(bytes, now()),
    finish() {
      splitter.end();
      return lane.finish();
    },
  };
}

/** The streams of a process, with faults between them and whoever relays. */
export type FaultyStreams = {
  stdin: Readable;
  stdout: Writable;
  stderr: Writable;
  /** For the relay's own chunks: only those of stderr are not shown by a lane. */
  onChunk: (chunk: Chunk) => Promise<void> | undefined;
};

type FaultyStreamsOptions = {
  faults: Faults;
  now: () => number;
  stdin: Readable;
  stdout: Writable;
  stderr: Writable;
  onChunk: (chunk: Chunk) => Promise<void> | undefined;
  onFaulty: (line: FaultyLine) => void;
  onExit: (how: Exit) => void;
  /** Whether the server still runs: what it wrote to a stalled stderr is let go when it does not. */
  isServerThere: () => boolean;
};

/** Above this much that waits to be written, nothing more is read. */
const MOST_WAITING_BYTES = 16 * 1024 * 1024;

export function faultyStreams(options: FaultyStreamsOptions): FaultyStreams {
  const { faults, now, onFaulty, onExit, onChunk } = options;
  const stalled = stallableStderr(options);
  const show = (chunk: Chunk) => void onChunk(chunk);
  const common = { faults, now, onChunk: show, onFaulty };
  const besides = (closes: () => void) => (what: NonNullable<Effect['besides']>) => {
    if (what === 'stall-stderr') stalled.stall();
    else if (typeof what === 'object') onExit(what);
    else closes();
  };
  const stdout = faultyOutput(options.stdout, (write, closes) =>
    createLineLane({ ...common, channel: 'stdout', write, besides: besides(closes) }),
  );
  const stdin = faultyInput(options.stdin, (write, closes) =>
    createLineLane({ ...common, channel: 'stdin', write, besides: besides(closes) }),
  );
  return {
    stdin,
    stdout,
    stderr: stalled.stream,
    onChunk: (chunk) => (chunk.channel === 'stderr' ? onChunk(chunk) : undefined),
  };
}

type MakeLane = (write: (bytes: Buffer) => void, closes: () => void) => LineLane;

/** What is written here goes to `real` by way of a lane. Each end's close is passed on. */
function faultyOutput(real: Writable, makeLane: MakeLane): Writable {
  const lane = makeLane(
    (bytes) => void real.write(bytes),
    () => output.destroy(new Error('closed on purpose')),
  );
  const output: Writable = new Writable({
    write(bytes: Buffer, _encoding, callback) {
      lane.feed(bytes);
      whenRoom(real, lane, callback);
    },
    final(callback) {
      void lane.finish().then(() => real.end(() => callback()));
    },
    destroy(error, callback) {
      lane.cancel();
      real.destroy();
      callback(error);
    },
  });
  const leave = () => output.destroy(output.writableFinished ? undefined : new Error('the client has gone'));
  real.on('error', leave);
  real.on('close', leave);
  return output;
}

function whenRoom(real: Writable, lane: Lane, callback: () => void): void {
  if (real.destroyed || (!real.writableNeedDrain && lane.waiting() < MOST_WAITING_BYTES)) {
    callback();
    return;
  }
  setTimeout(() => whenRoom(real, lane, callback), ROOM_CHECK_MS);
}

const ROOM_CHECK_MS = 5;

/** What comes out of `real` by way of a lane. */
function faultyInput(real: Readable, makeLane: MakeLane): Readable {
  const input = new PassThrough();
  const lane = makeLane(
    (bytes) => void input.write(bytes),
    () => input.end(),
  );
  real.on('data', (bytes: Buffer) => {
    lane.feed(bytes);
    if (!input.writableNeedDrain && lane.waiting() < MOST_WAITING_BYTES) return;
    real.pause();
    whenRoom(input, lane, () => real.resume());
  });
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    void lane.finish().then(() => input.end());
  };
  real.on('end', end);
  real.on('close', end);
  real.on('error', end);
  input.on('error', () => {});
  input.on('close', () => {
    lane.cancel();
    real.destroy();
  });
  return input;
}

const STALL_CHECK_MS = 100;

/** A stderr that can cease to take what is written: a server that goes on writing there is stopped by its full pipe. */
function stallableStderr({ stderr, isServerThere }: FaultyStreamsOptions) {
  let isStalled = false;
  const goOn = (bytes: Buffer, callback: () => void): void => {
    if (isStalled && isServerThere()) setTimeout(() => goOn(bytes, callback), STALL_CHECK_MS);
    else stderr.write(bytes, () => callback());
  };
  const stream = new Writable({
    highWaterMark: 1,
    write: (bytes: Buffer, _encoding, callback) => goOn(bytes, callback),
  });
  return {
    stream,
    stall() {
      isStalled = true;
    },
  };
}
