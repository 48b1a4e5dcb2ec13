/**
 * Recording stdio, on the relay's thread: takes chunks and never makes the traffic wait (unless it is told to). What is
 * on its way to the writer is bounded in bytes; beyond that, chunks are dropped and counted.
 */
import { CHANNELS, type Chunk, type StdioChannel } from '../../protocol/wire/frame.ts';
import type { SessionEnd } from '../file/columns.ts';
import { FAULT_KIND, type FaultyFrame, faultItem } from './batch.ts';
import { type RecorderOptions, type RecordingRules, startWriter, type Watched } from './thread.ts';

export type Recorder = Watched & {
  /** Keeps a copy of the chunk. In strict mode it may return a promise: wait for it before reading on. */
  append(chunk: Chunk): Promise<void> | undefined;
  /** Counts a line that nobody could show. */
  lose(channel: StdioChannel): void;
  /** Keeps a line that a fault was put into. What came before it on its channel must have ended a line. */
  appendFaulty(frame: FaultyFrame): void;
  serverStarted(pid: number): void;
  /** What is recorded from now on, and what waits, is recorded by these rules. */
  setRules(rules: RecordingRules): void;
  /** Whether the client has vanished, as far as it is known who it is. */
  isClientGone(): boolean;
  /** Whether the store could be opened. */
  opened: Promise<boolean>;
  /** Settles once everything appended so far is stored, or given up. */
  flush(): Promise<void>;
  /** Stores what is on its way, then the session's end. */
  close(end: SessionEnd): Promise<void>;
  /** The same where the process ends in this turn (thread.ts). Returns why something is lost, or null. */
  closeAtExit(end: SessionEnd, waitMs: number): string | null;
};

const LF = 0x0a;

export function openRecorder(options: RecorderOptions): Recorder {
  const writer = startWriter(options);

  function append({ channel, at, bytes }: Chunk): Promise<void> | undefined {
    if (!options.isStrict && writer.isFull(bytes.length)) {
      drop({ channel, at, bytes });
      return undefined;
    }
    writer.append(CHANNELS.indexOf(channel), 0, at, bytes);
    return writer.room();
  }

  function drop({ channel, bytes }: Chunk): void {
    const endsInsideLine = bytes.at(-1) !== LF;
    const frames = bytes.reduce((count, byte) => count + (byte === LF ? 1 : 0), endsInsideLine ? 1 : 0);
    const gap = { channel, loss: { frames, bytes: bytes.length }, endsInsideLine };
    writer.send({ type: 'gap', gap });
  }

  return {
    append,
    lose(channel) {
      writer.send({ type: 'gap', gap: { channel, loss: { frames: 1, bytes: 0 }, endsInsideLine: false } });
    },
    appendFaulty(frame) {
      const item = faultItem(frame);
      if (writer.isFull(item.length)) {
        const { channel } = frame;
        if (channel !== 'stdin' && channel !== 'stdout') return;
        const loss = { frames: 1, bytes: frame.payload.length };
        writer.send({ type: 'gap', gap: { channel, loss, endsInsideLine: false } });
      } else writer.append(FAULT_KIND, 0, frame.at, item);
    },
    serverStarted: (pid) => writer.send({ type: 'server', pid }),
    isClientGone() {
      const pid = writer.clientPid();
      return pid !== null && !exists(pid);
    },
    setRules: writer.setRules,
    figures: writer.figures,
    queue: writer.queue,
    opened: writer.opened,
    flush: writer.flush,
    close: writer.close,
    closeAtExit: writer.closeAtExit,
  };
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
