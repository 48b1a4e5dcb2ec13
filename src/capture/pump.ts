/**
 * One direction of a relay: what comes out of `source` goes into `sink`, first and untouched; a copy is shown to
 * `onBytes`. The slower end sets the pace. Each end's close or failure is passed on to the other at once.
 */
import type { Readable, Writable } from 'node:stream';

export type PumpOptions = {
  source: Readable;
  sink: Writable;
  /** May return a promise: the source then pauses until it is settled. */
  onBytes: (bytes: Buffer) => Promise<void> | undefined;
  /** The source has said all it had to say, or broke: nothing more comes from it. */
  onSourceEnd?: () => void;
  /** Nobody reads the sink any more. */
  onSinkClosed?: () => void;
  /** For a sink that others write to as well. */
  keepSinkOpen?: boolean;
};

/** Starts the pump. Settles when the source is over and the sink has taken everything, or is closed. */
export function pump(options: PumpOptions): Promise<void> {
  const { source, sink, onBytes, onSourceEnd, onSinkClosed, keepSinkOpen = false } = options;
  let blockers = 0;

  const block = () => {
    blockers += 1;
    source.pause();
  };
  const unblock = () => {
    blockers -= 1;
    if (blockers === 0) source.resume();
  };

  source.on('data', (bytes: Buffer) => {
    // A write that the kernel took at once leaves nothing to wait for, whatever `write` answers.
    if (!sink.write(bytes) && sink.writableLength > 0) {
      block();
      sink.once('drain', unblock);
    }
    const ready = shown(onBytes, bytes);
    if (ready !== undefined) {
      block();
      ready.then(unblock);
    }
  });

  return new Promise<void>((resolve) => {
    let isSourceOver = false;
    const endSource = () => {
      if (isSourceOver) return;
      isSourceOver = true;
      onSourceEnd?.();
      if (sink.destroyed) resolve();
      else if (keepSinkOpen) sink.write('', () => resolve());
      else sink.end();
    };
    source.on('end', endSource);
    source.on('close', endSource);
    source.on('error', endSource);
    sink.on('finish', resolve);
    sink.on('close', resolve);
    sink.on('error', () => {
      // EPIPE and its kin: the reader has gone. Closing the source tells the writer so, as a plain pipe would.
      // That is our doing, so it is not told as the source's own end.
      isSourceOver = true;
      onSinkClosed?.();
      sink.destroy();
      source.destroy();
    });
  });
}

/** Whatever goes wrong with the copy, the traffic goes on. */
function shown(onBytes: PumpOptions['onBytes'], bytes: Buffer): Promise<void> | undefined {
  try {
    return onBytes(bytes);
  } catch {
    return undefined;
  }
}
