/** Stdio on its way into the store: one session for the whole run. */

import { hostname } from 'node:os';
import type { RedactionProfile } from '../../protocol/redact/profile.ts';
import { CHANNELS, type Chunk, type Frame, type StdioChannel } from '../../protocol/wire/frame.ts';
import { createLineSplitter, type LineSplitter } from '../../protocol/wire/lines.ts';
import type { Held, Loss, StdioGap } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { processStarted } from '../file/process.ts';
import { createIndexer, type Indexer, restartIndexer } from '../write/index.ts';
import { createLineRedactor, createStoreRedactor, redactionColumn, redactStart } from '../write/redaction.ts';
import { createSessionWriter, type SessionWriter } from '../write/rows.ts';
import { type FirstSign, HeldBack } from './held-back.ts';
import type { Intake } from './intake.ts';
import type { KnownStart } from './thread.ts';

const NOTHING: readonly Held[] = [];

export function createStdioIntake(
  start: KnownStart,
  maxFrameBytes: number,
  redaction: RedactionProfile | null,
): Intake {
  const secrets = redaction === null ? null : createStoreRedactor(redaction);
  const ingest = createIngest(maxFrameBytes, secrets?.redactor.firstSign);
  const redactLine = secrets === null ? null : createLineRedactor(secrets.redactor);
  let writer: SessionWriter | undefined;
  let indexer: Indexer | undefined;
  let store: Store | undefined;
  let serverPid: number | undefined;
  let held = NOTHING;

  return {
    feed({ kind, at, bytes }) {
      ingest.feed({ channel: CHANNELS[kind] ?? 'stderr', at, bytes });
    },
    giveUpOn({ bytes }) {
      ingest.loss().frames += 1;
      ingest.loss().bytes += bytes.length;
    },
    gap: ingest.gap,
    serverStarted(pid) {
      serverPid = pid;
    },
    open(opened, client) {
      store = opened;
      secrets?.open(store);
      const { parentPid: _, ...given } = start;
      const known = secrets === null ? given : redactStart(given, secrets.row);
      writer = createSessionWriter(store, {
        ...known,
        redaction: redactionColumn(store, redaction),
        host: hostname(),
        processStarted: processStarted(start.pid),
        clientPid: client?.pid ?? null,
        clientProgram: client?.program ?? null,
      });
      indexer = createIndexer(store, writer.number);
    },
    save(withHeld) {
      if (redactLine !== null) ingest.change(redactLine);
      held = withHeld ? ingest.held() : NOTHING;
      if (serverPid !== undefined) writer?.serverStarted(serverPid);
      serverPid = undefined;
      writer?.write(ingest.frames(), ingest.firstSeq(), held, ingest.loss());
    },
    confirm() {
      indexer?.remember(ingest.frames(), ingest.firstSeq());
      ingest.confirm();
      ingest.confirmHeld(held);
    },
    hasHeld: () => ingest.held().length > 0,
    giveUp() {
      const loss = ingest.loss();
      for (const { size } of ingest.frames()) {
        loss.frames += 1;
        loss.bytes += size;
      }
      ingest.confirm();
    },
    index(maxMs) {
      if (indexer?.isSpoiled() && store !== undefined && writer !== undefined)
        indexer = restartIndexer(store, writer.number);
      return indexer?.advance(maxMs) ?? true;
    },
    stopIndexing() {
      indexer = undefined;
    },
    tick: () => false,
    async finish() {
      ingest.end();
    },
    end(end) {
      writer?.end(end, ingest.loss());
    },
  };
}

/**
 * From chunks to frames: one line splitter per channel, one numbering per session. Frames wait here until the writer
 * has them safely, so a store that is busy or full loses nothing by itself.
 */

type Ingest = {
  feed(chunk: Chunk): void;
  gap(gap: StdioGap): void;
  end(): void;
  /** Frames not confirmed yet, the oldest first. */
  frames(): readonly Frame[];
  /** Changes those frames that it has not changed before. */
  change(change: (frame: Frame) => Frame): void;
  /** The number in the session of the first of them; the others follow it. */
  firstSeq(): number;
  /** Says that all these frames are stored, or given up. */
  confirm(): void;
  /** The bytes of unfinished lines that were not confirmed yet. */
  held(): Held[];
  confirmHeld(held: readonly Held[]): void;
  loss(): Loss;
};

type Lane = { splitter: LineSplitter; at: number; heldSaved: number; heldBack: HeldBack | null };

/** `firstSign`: where what is not whole could give a secret away; null: it may all be stored. */
export function createIngest(maxFrameBytes: number, firstSign: FirstSign | null = null): Ingest {
  const lost: Loss = { frames: 0, bytes: 0 };
  let frames: Frame[] = [];
  let firstSeq = 1;
  let changed = 0;

  const lanes: Record<StdioChannel, Lane> = {
    stdin: createLane('stdin'),
    stdout: createLane('stdout'),
    stderr: createLane('stderr'),
  };

  function createLane(channel: StdioChannel): Lane {
    const splitter = createLineSplitter({
      channel,
      maxBytes: maxFrameBytes,
      onSkip(bytes) {
        lost.bytes += bytes;
      },
      onFrame(frame) {
        lanes[channel].heldSaved = 0;
        lanes[channel].heldBack = null;
        frames.push(frame);
      },
    });
    return { splitter, at: 0, heldSaved: 0, heldBack: null };
  }

  function releasable(channel: StdioChannel, fragments: readonly Buffer[]): readonly Buffer[] {
    if (firstSign === null) return fragments;
    lanes[channel].heldBack ??= new HeldBack(firstSign, false);
    return lanes[channel].heldBack.released(fragments);
  }

  function held(): Held[] {
    return CHANNELS.flatMap((channel) => {
      const { splitter, heldSaved, at } = lanes[channel];
      const fresh = releasable(channel, splitter.held()).slice(heldSaved);
      return fresh.map((bytes, i) => ({ channel, part: heldSaved + i, at, bytes }));
    });
  }

  return {
    feed({ channel, at, bytes }) {
      lanes[channel].at = at;
      lanes[channel].splitter.feed(bytes, at);
    },
    gap({ channel, loss: { frames, bytes }, endsInsideLine }) {
      const isFirstCounted = lanes[channel].splitter.gap(endsInsideLine);
      lost.frames += isFirstCounted ? frames - 1 : frames;
      lost.bytes += bytes;
    },
    end() {
      for (const channel of CHANNELS) lanes[channel].splitter.end();
    },
    frames: () => frames,
    change(change) {
      for (; changed < frames.length; changed += 1) frames[changed] = change(frames[changed] as Frame);
    },
    firstSeq: () => firstSeq,
    confirm() {
      firstSeq += frames.length;
      frames = [];
      changed = 0;
    },
    held,
    confirmHeld(saved) {
      for (const { channel, part } of saved) lanes[channel].heldSaved = part + 1;
    },
    loss: () => lost,
  };
}
