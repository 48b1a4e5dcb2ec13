/**
 * The writer's thread, or a thread that several writers share. A writer takes batches from the relay's thread, hands them to the
 * intake, whose framer makes frames of them, and commits everything that has arrived in one transaction. A batch is acknowledged once it is committed (or given up), so the
 * other side always knows how much is on its way. Messages are indexed after that, from the stored frames, as far as time
 * allows.
 *
 * Passing trouble (a full disk, a lock) keeps the frames here and tries again; lasting trouble gives them up and counts
 * them. Either way the relay gets one message about it, and never waits.
 */

import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { Loss, SessionEnd } from '../file/columns.ts';
import { storePath } from '../file/path.ts';
import { findClient } from '../file/process.ts';
import { troubleOf } from '../file/trouble.ts';
import { NO_LIMITS, type UpkeepRules } from '../keep/limits.ts';
import { createPace, FLOOD_SHARE, INDEX_SHARE } from '../keep/pace.ts';
import { createRests, type Rests } from '../keep/rests.ts';
import { createUpkeepLoop, walBytesWithin } from '../keep/upkeep.ts';
import type { Sampler, SamplingRules } from '../sample/sampling.ts';
import { BEATS, raise } from '../write/beats.ts';
import { createRecorderTally } from '../write/figures.ts';
import type { MetaFor } from '../write/redaction-rules.ts';
import { eachItem, type Item } from './batch.ts';
import type { Framer } from './framer.ts';
import { createIntake, type Intake } from './intake.ts';
import { createOutlet, type Outlet } from './outlet.ts';
import type { FromWorker, RecordingRules, SharedStart, ToWorker, WorkerStart, WriterCall } from './thread.ts';

/** So many frames come at once where more of them pass than are indexed meanwhile: some 2,000 HTTP exchanges or calls a second. */
const FLOOD_FRAMES = 120;

/** Once something has waited this long, this thread works on without rests: a kill -9 may cost no more than the last 100 ms. */
const REST_WITHIN_MS = 45;

/** What is not whole and has waited this long is stored as far as it has come. */
const UNFINISHED_AFTER_MS = 30;

const RETRY_AFTER_MS = 200;

/** Frames of few bytes take hundreds in memory, so that these, and those of one batch more, are stored before more are made. */
const FRAMES_AT_ONCE = 50_000;

/** So many may wait for a disk that is full. */
const MOST_WAITING_FRAMES = 1_000_000;

const TICK_MS = 10_000;

/** How long the end may be held up by the index. What is left is done by the next reader. */
const LAST_INDEXING_MS = 60;

/** And by pruning. What is left is done by the next recorder. */
const LAST_UPKEEP_MS = 150;

/** Takes what its port says, until that says the end. */
class Writer {
  readonly #port: MessagePort;
  readonly #beats: WorkerStart['beats'];
  readonly #parentPid: number | null;
  readonly #file: string;
  /** Null where nobody watches. */
  readonly #tally: ReturnType<typeof createRecorderTally> | null;
  readonly #intake: Intake;
  readonly #framer: Framer;
  readonly #pace = createPace(() => (this.#isFlooded ? FLOOD_SHARE : INDEX_SHARE));
  readonly #rests: Rests;
  #upkeep: ReturnType<typeof createUpkeepLoop> | null;
  readonly #outlet: Outlet;
  readonly #isStrict: boolean;
  /** What has come while rules are loaded; null: none are. */
  #held: ToWorker[] | null = null;
  #isTroubleTold = false;
  #isFinishing = false;
  /** The last commit failed, and the next one comes in its time. */
  #isStuck = false;
  /** What is not whole has waited long enough, and goes along with the next commit. */
  #isUnfinishedDue = false;
  #unacknowledged = 0;
  /** With the newest batch came more than is indexed meanwhile. */
  #isFlooded = false;
  /** Items and gaps among them. */
  readonly #pieces: Loss = { frames: 0, bytes: 0 };
  /** When the newest item passed, in microseconds since the Unix epoch. */
  #newestAt = 0;
  /** The same of the oldest one that is not acknowledged. */
  #oldestAt = 0;
  #commitPlanned: NodeJS.Timeout | undefined;
  #unfinishedTimer: NodeJS.Timeout | undefined;
  #indexTimer: NodeJS.Timeout | undefined;
  #clientTimer: NodeJS.Timeout | undefined;
  readonly #ticker: NodeJS.Timeout;

  constructor(port: MessagePort, start: WorkerStart, { createSampler, metaFor }: Loaded) {
    const { run, beats, durable, maxFrameBytes, retention, redaction, sampling = null, session } = start;
    const sampler = sampling && (createSampler?.(sampling) ?? null);
    const notice = (text: string) => this.#tell({ type: 'notice', text });
    this.#port = port;
    this.#beats = beats;
    this.#parentPid = session.parentPid;
    this.#file = storePath(start.file);
    this.#tally = start.isWatched
      ? createRecorderTally((news) => this.#tell({ type: 'session', news }))
      : null;
    this.#rests = createRests({
      isLate: () => this.#isFinishing || Date.now() - this.#oldestAt / 1000 > REST_WITHIN_MS,
      givesWay: session.transport === 'stdio',
    });
    this.#intake = createIntake(
      ...([session, maxFrameBytes, redaction] as const),
      () => this.#planCommit(),
      notice,
      { onWork: () => this.#beat(), tally: this.#tally, sampler, metaFor },
    );
    this.#framer = this.#intake.framer;
    this.#isStrict = start.isStrict;
    this.#upkeep = this.#upkeepWithin(retention, sampling);
    this.#outlet = createOutlet({
      ...{ file: this.#file, run, intake: this.#intake },
      isDurable: durable,
      walBytes: walBytesWithin(retention?.maxBytes ?? null),
      isRedacted: redaction !== null,
      onStore: (store) => this.#upkeep?.open(store),
      onTrouble: (text) => this.#tellTrouble(text),
      onNotice: notice,
    });
    port.on('message', (message: ToWorker) => this.#receive(message));
    this.#open();
    this.#ticker = setInterval(() => this.#tick(), TICK_MS);
  }

  #tell(message: FromWorker): void {
    this.#port.postMessage(message);
  }

  #receive(message: ToWorker): void {
    if (this.#held !== null) {
      this.#held.push(message);
      return;
    }
    switch (message.type) {
      case 'items':
        this.#rests.onBatch(message.batch.byteLength);
        eachItem(message.batch, (item) => this.#feed(item));
        this.#unacknowledged += message.batch.byteLength;
        this.#pace.onTraffic(performance.now());
        this.#upkeep?.onTraffic(performance.timeOrigin + performance.now() - this.#newestAt / 1000);
        this.#takeStock();
        break;
      case 'gap':
        this.#framer.gap(message.gap);
        this.#pieces.frames += message.gap.loss.frames;
        this.#pieces.bytes += message.gap.loss.bytes;
        break;
      case 'server':
        this.#intake.serverStarted(message.pid);
        break;
      case 'rules':
        void this.#loadRules(message);
        break;
      case 'ask':
        this.#answer();
        break;
      case 'end':
        void this.#framer.finish().then(() => this.#finish(message.end));
        break;
    }
  }

  /** After each batch. */
  #takeStock(): void {
    const waiting = this.#intake.waiting();
    this.#isFlooded = waiting >= FLOOD_FRAMES;
    if (waiting > (this.#isStuck ? MOST_WAITING_FRAMES : FRAMES_AT_ONCE)) this.#commit();
    else this.#planCommit();
  }

  /** Says that this thread is at work, and lets others in. */
  #beat(): void {
    Atomics.add(this.#beats, BEATS.count, 1);
    this.#rests.rest();
  }

  /** A fault of ours costs what it happened at, not the rest of the recording. */
  #feed(item: Item): void {
    if (this.#pieces.frames === 0) this.#oldestAt = item.at;
    this.#newestAt = item.at;
    this.#pieces.frames += 1;
    this.#pieces.bytes += item.bytes.length;
    this.#beat();
    try {
      this.#framer.feed(item);
    } catch (error) {
      this.#framer.abandon(item);
      this.#tellTrouble(
        `a piece of traffic could not be taken in, by a fault of tapedeck: ${(error as Error).message}`,
      );
    }
  }

  #open(): void {
    const client = this.#parentPid === null ? null : findClient(this.#parentPid);
    this.#intake.setClient(client);
    const isOpen = this.#outlet.open();
    raise(this.#beats, BEATS.isLoaded);
    this.#takeWaiting();
    this.#commit();
    if (isOpen)
      this.#tell({ type: 'opened', clientPid: client?.pid ?? null, session: this.#intake.sessionId() });
  }

  /** What has passed while the store was being opened. */
  #takeWaiting(): void {
    for (let next = receiveMessageOnPort(this.#port); next; next = receiveMessageOnPort(this.#port)) {
      this.#receive(next.message as ToWorker);
    }
  }

  /** Where some sessions are left out, what was stored of them is to go, without any limit. */
  #upkeepWithin(given: UpkeepRules | null, sampling: SamplingRules | null = null) {
    const onUnshipped = this.#isStrict ? (text: string) => this.#tellTrouble(text) : null;
    const limits = given ?? (sampling && { ...NO_LIMITS, packAfterMs: null });
    return limits && createUpkeepLoop(limits, (text) => this.#tell({ type: 'notice', text }), onUnshipped);
  }

  /** What passes from now on, in sessions under way too, is redacted and kept by these rules. */
  #setRules(
    { redaction, retention, sampling = null }: RecordingRules,
    { createSampler, metaFor }: Loaded,
  ): void {
    if (redaction !== null) this.#intake.setRedaction(redaction, metaFor);
    this.#upkeep?.finish(0);
    this.#upkeep = this.#upkeepWithin(retention, sampling);
    this.#intake.setSampling(sampling, createSampler);
    this.#outlet.setWalBytes(walBytesWithin(retention?.maxBytes ?? null));
    this.#upkeep?.open(this.#outlet.store());
  }

  /** What comes while their modules are loaded comes after them. */
  async #loadRules(rules: RecordingRules): Promise<void> {
    const held: ToWorker[] = [];
    this.#held = held;
    try {
      const loaded = await loadedFor(rules);
      this.#setRules(rules, loaded);
    } catch (error) {
      // The files of the program may have been replaced while it runs.
      this.#tell({ type: 'notice', text: `the rules stay as they were: ${(error as Error).message}` });
    }
    this.#held = null;
    for (const message of held) this.#receive(message);
  }

  /** What this recorder has done so far; and that this thread is at work. */
  #answer(): void {
    if (this.#tally === null) return;
    const figures = {
      ...this.#tally.figures(),
      open: this.#intake.openSessions(),
      sampledOut: this.#intake.leftOut(),
      isStoreTroubled: this.#isStuck || this.#outlet.store() === undefined,
      isStoring: this.#outlet.isStoring(),
      store: this.#file,
    };
    this.#tell({ type: 'figures', figures });
  }

  #tick(): void {
    this.#framer.tick(Date.now() * 1000);
    this.#upkeep?.poke();
    this.#findClients();
  }

  /** Everything that is there in the same turn goes into one transaction: a commit costs as much as hundreds of frames. */
  #planCommit(): void {
    if (!this.#isFinishing) this.#commitPlanned ??= setTimeout(() => this.#commit(), 0);
  }

  #commit(): void {
    this.#beat();
    clearTimeout(this.#commitPlanned);
    this.#commitPlanned = undefined;
    const began = this.#tally === null ? 0 : performance.now();
    this.#isStuck = !this.#outlet.save(this.#isUnfinishedDue);
    if (!this.#isStuck) {
      this.#isUnfinishedDue = false;
      this.#acknowledge(this.#tally === null ? undefined : performance.now() - began);
      this.#planIndexing();
      this.#upkeep?.poke();
    } else if (this.#outlet.isHopeless() || this.#intake.waiting() > MOST_WAITING_FRAMES) this.#giveUp();
    else this.#commitPlanned = setTimeout(() => this.#commit(), RETRY_AFTER_MS);
    if (!this.#outlet.isHopeless() && this.#framer.hasUnfinished())
      this.#unfinishedTimer ??= setTimeout(() => this.#saveUnfinished(), UNFINISHED_AFTER_MS);
  }

  #saveUnfinished(): void {
    this.#unfinishedTimer = undefined;
    this.#isUnfinishedDue = true;
    this.#planCommit();
  }

  /** `commitMs`: how long the commit took, where somebody watches. */
  #acknowledge(commitMs?: number): void {
    if (this.#pieces.frames > 0)
      this.#tell({ type: 'stored', bytes: this.#unacknowledged, pieces: { ...this.#pieces }, commitMs });
    this.#unacknowledged = 0;
    this.#pieces.frames = 0;
    this.#pieces.bytes = 0;
  }

  #giveUp(): void {
    this.#isStuck = false;
    this.#intake.giveUp();
    this.#acknowledge();
  }

  #planIndexing(): void {
    this.#indexTimer ??= setTimeout(() => this.#index(), this.#pace.waitMs(performance.now()));
  }

  /** Trouble here costs no data: the frames are stored, and the next attempt begins where the last one did. */
  #index(): void {
    this.#indexTimer = undefined;
    const began = performance.now();
    const maxMs = this.#pace.sliceMs(began);
    if (maxMs === 0 || !this.#tryIndex(maxMs)) this.#planIndexing();
    this.#pace.onWorked(began, performance.now());
    this.#findClients();
  }

  #findClients(): void {
    clearTimeout(this.#clientTimer);
    void this.#intake.findClients().then((restMs) => {
      clearTimeout(this.#clientTimer);
      if (restMs !== null && !this.#isFinishing)
        this.#clientTimer = setTimeout(() => this.#findClients(), restMs);
    });
  }

  /** True: nothing is left to do here. After lasting trouble the next reader does it: nobody has to know. */
  #tryIndex(maxMs: number): boolean {
    if (this.#outlet.store() === undefined) return true;
    try {
      return this.#intake.index(maxMs);
    } catch (error) {
      if (!troubleOf(error).isPassing) this.#intake.stopIndexing();
      return true;
    }
  }

  #tellTrouble(text: string): void {
    if (!this.#isTroubleTold) this.#tell({ type: 'trouble', text });
    this.#isTroubleTold = true;
  }

  /** Whatever the store does: what is not in it by now goes into the spool. */
  #finish(end: SessionEnd): void {
    this.#isFinishing = true;
    this.#beat();
    clearInterval(this.#ticker);
    clearTimeout(this.#commitPlanned);
    clearTimeout(this.#unfinishedTimer);
    clearTimeout(this.#indexTimer);
    clearTimeout(this.#clientTimer);
    if (!this.#outlet.save(false)) this.#giveUp();
    this.#outlet.end(end);
    this.#tryIndex(LAST_INDEXING_MS);
    this.#upkeep?.finish(LAST_UPKEEP_MS);
    this.#outlet.close();
    this.#tell({ type: 'closed' });
    raise(this.#beats, BEATS.isClosed);
    this.#port.close();
  }
}

/** What leaves sessions out, and payloads of frames. */
type Loaded = { createSampler: ((rules: SamplingRules) => Sampler) | null; metaFor: MetaFor };

const NOTHING_LOADED: Loaded = { createSampler: null, metaFor: null };

/** It is loaded where rules ask for it. */
async function loadedFor({
  sampling,
  metaFor,
}: Pick<RecordingRules, 'sampling' | 'metaFor'>): Promise<Loaded> {
  const sampler = sampling == null ? null : await import('../sample/sampling.ts');
  const rule = metaFor == null ? null : (await import('../sample/meta-for.ts')).createMetaFor(metaFor);
  return { createSampler: sampler?.createSampler ?? null, metaFor: rule };
}

/** What comes meanwhile waits in the port. A recorder without such rules begins in this turn. */
function begin(port: MessagePort, start: WorkerStart): void {
  if (start.sampling == null && start.metaFor == null) new Writer(port, start, NOTHING_LOADED);
  else void loadedFor(start).then((loaded) => new Writer(port, start, loaded));
}

const given = workerData as WorkerStart | SharedStart;
if ('run' in given) begin(parentPort as MessagePort, given);
else parentPort?.on('message', ({ port, start }: WriterCall) => begin(port, start));
