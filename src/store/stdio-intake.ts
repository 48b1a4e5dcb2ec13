/** Stdio on its way into the store: one session for the whole run. */
import { hostname } from 'node:os';
import { CHANNELS } from '../protocol/frame.ts';
import type { RedactionProfile } from '../protocol/redact-profile.ts';
import { createIndexer, type Indexer, restartIndexer } from './indexer.ts';
import { createIngest, type Held } from './ingest.ts';
import type { Intake } from './intake.ts';
import type { Store } from './open.ts';
import { processStarted } from './process.ts';
import { createLineRedactor, createStoreRedactor, redactionColumn, redactStart } from './redaction.ts';
import { createSessionWriter, type SessionWriter } from './session-writer.ts';
import type { KnownStart } from './writer-thread.ts';

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
