import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineFollower } from '../../engine/read/open-engine.ts';
import { TapedeckError } from '../../errors.ts';
import type { Filter } from '../../inspect/filter/filter.ts';
import { frameJson } from '../../inspect/view/json.ts';
import { arrivalLines, openCallLine, type TailViewOptions } from '../../inspect/view/tail.ts';
import { terminalStyle } from '../../inspect/view/text.ts';
import { SILENT } from '../../sources/open-for.ts';
import { openForReading, type Store } from '../../store/file/open.ts';
import { isEngineUrl } from '../../store/file/path.ts';
import { openIndexed } from '../../store/keep/catch-up.ts';
import { type Arrival, createFollower, type OpenCall } from '../../store/read/follow.ts';
import { originalOf, prepareHttpSummary } from '../../store/read/http.ts';
import { type Command, type Io, onStopSignals, say, storeOf } from '../io.ts';
import { FILTER_OPTION, JSON_OPTION, READ_OPTIONS, readFilter, selectionOf } from '../options.ts';
import { notices } from '../output.ts';

type Options = {
  session: string | undefined;
  db: string | undefined;
  filter: string | undefined;
  json: boolean;
  lines: number;
  slow: number;
};

/** Short enough to feel live. Polling a store that nobody wrote to costs a microsecond. */
const POLL_MS = 50;

/** An engine is asked less often: hosts ship for many. */
const ENGINE_POLL_MS = 1000;

/** How often the ages of open calls are updated. */
const FOOT_MS = 500;

const MAX_FOOT_LINES = 5;

export const tailCommand: Command<Options> = {
  command: 'tail [session]',
  describe: 'Show traffic as it passes, in all sessions or in one',
  builder: (args) =>
    args
      .positional('session', {
        type: 'string',
        describe: 'An id, the beginning of one, a name, or latest (default: all sessions)',
      })
      .options({
        ...READ_OPTIONS,
        filter: FILTER_OPTION,
        json: JSON_OPTION,
        lines: {
          type: 'number',
          alias: 'n',
          default: 10,
          describe: 'Begin with this many of the newest session’s last frames',
          requiresArg: true,
        },
        slow: {
          type: 'number',
          default: 1000,
          describe: 'Highlight calls that take longer than this many milliseconds',
          requiresArg: true,
        },
      })
      .check(({ lines, slow }) => {
        if (!Number.isInteger(lines) || lines < 0)
          throw new TapedeckError('usage', 'Expected a whole number after `--lines`. Example: --lines 20');
        if (!(slow >= 0))
          throw new TapedeckError('usage', 'Expected milliseconds after `--slow`. Example: --slow 250');
        return true;
      })
      .example('$0 tail', 'All sessions, of every recording process')
      .example("$0 tail --filter 'status!=ok or dur>2s'", 'What fails or is slow')
      .example('$0 tail staging --json | jq .text', 'One session, for a program'),
  async run(options, io) {
    const filter = await readFilter(options.filter);
    const stop = new AbortController();
    const ignoreSignals = onStopSignals(io, () => stop.abort());
    // The reader has left: nothing is left to do.
    io.stdout.on('error', () => stop.abort());
    try {
      await follow(options, filter, io, stop.signal);
    } finally {
      ignoreSignals();
    }
  },
};

async function follow(
  options: Options,
  filter: Filter | undefined,
  io: Io,
  signal: AbortSignal,
): Promise<void> {
  const engine = await followed(io, options);
  const file = engine?.file ?? storeOf(io, options.db);
  const isNew = !existsSync(file);
  const store = engine === null ? await openWhenThere(io, file, signal) : openForReading(file);
  if (store === null) return;
  const pollMs = engine === null ? POLL_MS : ENGINE_POLL_MS;
  const only = await selectionOf(store, filter);
  const follower = createFollower(store, { session: options.session, only, backlog: options.lines, isNew });
  const screen = createScreen(io, store, options);
  while (!signal.aborted) {
    screen.show(follower.poll());
    screen.foot(() => follower.openCalls());
    await readerReady(io, signal);
    await sleep(pollMs, undefined, { signal }).catch(() => {});
    if (engine !== null && !signal.aborted) await engine.refresh();
  }
  screen.end();
  store.close();
  await engine?.close();
}

/** Null: the store is a file. */
async function followed(io: Io, { db, session }: Options): Promise<EngineFollower | null> {
  const url = storeOf(io, db);
  if (!isEngineUrl(url)) return null;
  const { followEngine } = await import('../../engine/read/open-engine.ts');
  return followEngine(url, session, {
    env: io.env,
    isInsecure: io.isInsecureEngine === true,
    notices: { ...SILENT, ...notices(io) },
  });
}

/** Null where it was stopped before there was one. */
async function openWhenThere(io: Io, file: string, signal: AbortSignal): Promise<Store | null> {
  if (!existsSync(file)) say(io, `waiting for a store at ${file}`);
  while (!signal.aborted) {
    if (existsSync(file)) return await openIndexed(file, notices(io));
    await sleep(POLL_MS, undefined, { signal }).catch(() => {});
  }
  return null;
}

/** A flood is shown at the pace of its reader. */
async function readerReady(io: Io, signal: AbortSignal): Promise<void> {
  if (io.stdout.writableNeedDrain) await once(io.stdout, 'drain', { signal }).catch(() => {});
}

type Screen = {
  show(arrivals: readonly Arrival[]): void;
  /** Open calls, at the foot of a terminal; elsewhere each of them once, when it has become slow. */
  foot(openCalls: () => OpenCall[]): void;
  end(): void;
};

function createScreen(io: Io, store: Store, { json, slow }: Options): Screen {
  const options: TailViewOptions = { ...terminalStyle(io.stdout, io.env), slowMs: slow };
  const hasFoot = io.stdout.isTTY === true && io.env['TERM'] !== 'dumb' && !json;
  const reported = new Set<string>();
  let footLines = 0;
  let lastFoot = 0;

  function write(text: string): void {
    io.stdout.write(text);
  }

  function clearFoot(): void {
    if (footLines > 0) write(`\u001b[${footLines}A\u001b[J`);
    footLines = 0;
  }

  function foot(openCalls: () => OpenCall[]): void {
    const now = performance.now();
    if (json || now - lastFoot < FOOT_MS) return;
    lastFoot = now;
    const calls = openCalls();
    if (hasFoot) drawFoot(calls);
    else reportSlow(calls);
  }

  function drawFoot(calls: readonly OpenCall[]): void {
    clearFoot();
    const shown = calls
      .slice(0, MAX_FOOT_LINES)
      .map((call) => openCallLine(call, Date.now() * 1000, options));
    if (calls.length > shown.length)
      shown.push(options.colors.dim(`… and ${calls.length - shown.length} more open calls`));
    write(shown.map((line) => `${line}\n`).join(''));
    footLines = shown.length;
  }

  function reportSlow(calls: readonly OpenCall[]): void {
    for (const call of calls) {
      const key = `${call.session.number}.${call.seq}.${call.n}`;
      const now = Date.now() * 1000;
      if (reported.has(key) || (now - call.at) / 1000 <= slow) continue;
      reported.add(key);
      write(`${openCallLine(call, now, options)}\n`);
    }
  }

  return {
    show(arrivals) {
      if (arrivals.length === 0) return;
      clearFoot();
      for (const arrival of arrivals)
        for (const piece of json ? jsonLine(store, arrival) : withEnds(arrivalLines(arrival, options)))
          write(piece);
      lastFoot = 0;
    },
    foot,
    end: clearFoot,
  };
}

function* withEnds(lines: Iterable<string>): Generator<string> {
  for (const line of lines) yield `${line}\n`;
}

function* jsonLine(store: Store, { session, frame }: Arrival): Generator<string> {
  yield* frameJson(session.id, frame, {
    summaryOf: prepareHttpSummary(store, session.number),
    originalOf: (seq) => originalOf(store, session.number, seq),
  });
}
