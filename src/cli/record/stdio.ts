/** `tapedeck record -- <command>`: joins the relay to the recorder, and ends as the server ended. */

import type { WatchedRecorder } from '../../admin/metrics.ts';
import { now } from '../../capture/clock.ts';
import { dieBy, whyNotStarted } from '../../capture/stdio/child.ts';
import { captureStdio, type RelayedStreams, type StdioEnd } from '../../capture/stdio/relay.ts';
import { openStderr, openStdin, openStdout } from '../../capture/stdio/streams.ts';
import { labelsIn } from '../../config/labels.ts';
import type { TapedeckError } from '../../errors.ts';
import type { SampleJudge } from '../../inspect/sample/judging.ts';
import { commandLine } from '../../protocol/text.ts';
import type { EndReason } from '../../store/file/columns.ts';
import { storePath } from '../../store/file/path.ts';
import { openRecorder, type Recorder } from '../../store/record/recorder.ts';
import { VERSION } from '../../version.ts';
import type { Operations } from './admin.ts';
import { createLog, type Log, watcherFor } from './log.ts';
import {
  type RecordCommand,
  type RecordOptions,
  rereadable,
  shippingOf,
  troubleText,
  unshippedLimit,
  withRules,
} from './options.ts';
import type { ShipChild } from './ship-child.ts';

/** Runs until the server has gone; then exits with its code or dies by its signal. Takes the process itself: its own descriptors, signals and end. */
export async function record({ options: given, command, args }: RecordCommand): Promise<void> {
  const options = await withRules(given);
  const { name, labels, faults, admin, log: logging, ship: _, ...recording } = options;
  const { isStrict } = recording;
  const putFaultsIn = faults === null ? null : (await import('./faulty.ts')).readStdioFaults(faults);
  let onWriterRuns = () => {};
  const writerRuns = new Promise<void>((resolve) => {
    onWriterRuns = resolve;
  });
  const stderr = openStderr(writerRuns);
  const log = createLog(logging, process.env, (line) => void stderr.write(line));
  const recorders: WatchedRecorder[] = [];
  const operations = admin === null ? null : await tryOperations(admin, recorders, log, options);
  const beside = await besideOf(options, log);
  const parentPid = process.ppid;
  let recorder: Recorder | undefined;
  let [stopServer, hasStopped] = [() => {}, false];

  const open = () =>
    openRecorder({
      ...recording,
      session: {
        name,
        labels: labelsIn(process.env, labels),
        basis: 'stdio-process',
        transport: 'stdio',
        target: commandLine([command, ...args]),
        command: [command, ...args],
        cwd: currentFolder(),
        at: now(),
        pid: process.pid,
        parentPid,
        tapedeck: VERSION,
      },
      onNotice: (text) => log.info('notice', text),
      watcher: watcherFor(log, logging, operations, false),
      onTrouble(text) {
        hasStopped = isStrict;
        log.error('trouble', troubleText(text, isStrict));
        if (isStrict) stopServer();
      },
    });

  if (isStrict) {
    recorder = open();
    if (!(await recorder.opened)) return leave(1);
  }
  const streams: RelayedStreams = {
    stdin: openStdin(writerRuns),
    stdout: openStdout(writerRuns),
    stderr,
    onChunk: (chunk) => recorder?.append(chunk),
  };
  const onPurpose = putFaultsIn?.(streams, {
    say: (text) => log.info('fault', text),
    onFaulty: (line) => recorder?.appendFaulty(line),
    serverPid: () => capture.pid,
  });
  const capture = captureStdio({
    command,
    args,
    onHangUp: hearingHangUp(log, options, operations, beside, () => recorder),
    ...(onPurpose?.streams ?? streams),
    isClientGone: () => process.ppid !== parentPid || recorder?.isClientGone() === true,
  });
  stopServer = capture.stop;
  if (recorder === undefined) leaveMissingFolder();
  recorder ??= open();
  recorders.push({ transport: 'stdio', figures: recorder.figures, queue: recorder.queue });
  operations?.setObstacle(null);
  void recorder.opened.then(onWriterRuns).then(beside.begin);
  if (capture.pid !== undefined) recorder.serverStarted(capture.pid);
  const end = await capture.end;
  operations?.setObstacle('the server has gone');
  if (end.spawnError !== null) log.error('not-started', whyNotStarted(command, end.spawnError));
  if (end.isCutOff) log.warn('cut-off', CUT_OFF);
  const exit = onPurpose?.end() ?? null;
  const isStopped = hasStopped || exit !== null;
  await recorder.close({ ...end, reason: isStopped ? 'stopped' : reasonOf(end) });
  await beside.atEnd();
  if (hasStopped) leave(1);
  else if (exit !== null) exit.signal === null ? leave(exit.code) : dieBy(exit.signal);
  else if (end.signal !== null) dieBy(end.signal);
  else leave(end.exitCode ?? (end.spawnError?.code === 'ENOENT' ? 127 : 126));
}

/** What SIGHUP does; undefined: it is the server's. */
function hearingHangUp(
  log: Log,
  options: RecordOptions,
  operations: Operations | null,
  beside: Beside,
  recorder: () => Recorder | undefined,
): (() => void) | undefined {
  const argv = rereadable(process);
  if (argv === null) return undefined;
  let last = Promise.resolve();
  const reloadNow = async () => {
    const { reload } = await import('./reload.ts');
    const recordings = [recorder()].filter((one) => one !== undefined);
    const onRules = async (next: RecordOptions) => {
      operations?.setShipLimit(unshippedLimit(next));
      beside.setRules(next);
    };
    await reload({ io: process, log, argv, options, recordings, onRules });
  };
  return () => {
    last = last.then(reloadNow);
  };
}

/** What goes on beside the recording of a store. */
type Beside = {
  /** The store is there. */
  begin(): void;
  setRules(options: RecordOptions): void;
  atEnd(): Promise<void>;
};

/** The first calls of a session have the processors to themselves. */
const JUDGES_AFTER_MS = 2000;

const LAST_JUDGING_MS = 300;

/** Ships, where somebody asks for it; and decides which sessions are kept. One that ends before that has begun is the next recorder's. */
async function besideOf(options: RecordOptions, log: Log): Promise<Beside> {
  const { sampling, file } = options;
  const shipper = await shipperOf(options, log);
  let judge: SampleJudge | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function beginJudging(): Promise<void> {
    const { startJudge } = await import('../../inspect/sample/judging.ts');
    judge = startJudge(storePath(file));
  }

  return {
    begin() {
      shipper?.begin();
      if (sampling?.keep != null) timer = setTimeout(beginJudging, JUDGES_AFTER_MS).unref();
    },
    setRules: ({ shipSampling }) => shipper?.setSampling(shipSampling),
    async atEnd() {
      clearTimeout(timer);
      shipper?.atEnd();
      await judge?.finish(LAST_JUDGING_MS);
    },
  };
}

/** Null: nobody asks for shipping. */
async function shipperOf(options: RecordOptions, log: Log): Promise<ShipChild | null> {
  const shipping = shippingOf(options, process.env);
  if (shipping === null) return null;
  const { prepareShipping } = await import('./ship-child.ts');
  return prepareShipping(storePath(options.file), shipping, process.env, log);
}

const CUT_OFF =
  'the server has gone, but a process that it left behind still holds its output open; what that writes from now on is neither relayed nor recorded';

/** Without it the traffic goes on: the port may be taken by another recorder of the same client. */
async function tryOperations(
  address: string,
  recorders: readonly WatchedRecorder[],
  log: Log,
  options: RecordOptions,
): Promise<Operations | null> {
  const { openOperations } = await import('./admin.ts');
  try {
    const isShipped = shippingOf(options, process.env) !== null;
    const access = { allowHosts: [], allowOrigins: [] };
    const operations = await openOperations(address, access, recorders, log, isShipped);
    operations.setShipLimit(unshippedLimit(options));
    return operations;
  } catch (error) {
    if ((error as TapedeckError).code === 'usage') throw error;
    log.error('admin-failed', (error as Error).message);
    return null;
  }
}

/** Null where the folder was removed: a server can be started there all the same. */
function currentFolder(): string | null {
  try {
    return process.cwd();
  } catch {
    return null;
  }
}

/** No thread starts in a folder that was removed. The server is there already, and keeps its folder. */
function leaveMissingFolder(): void {
  if (currentFolder() === null) process.chdir('/');
}

/** Open handles (the client's end of our stdin) would keep the process alive. */
function leave(code: number): void {
  process.exit(code);
}

function reasonOf(end: StdioEnd): EndReason {
  if (end.spawnError !== null) return 'not-started';
  if (end.wasSignalled) return 'signalled';
  return end.clientClosedAt !== null ? 'client-closed' : 'server-exited';
}
