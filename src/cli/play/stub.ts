/** `replay --stub`: asks a live server once for what it offers, and answers in its place with what is invented. */

import { TapedeckError } from '../../errors.ts';
import type { RedactionProfile } from '../../protocol/redact/profile.ts';
import { escapeText } from '../../protocol/text.ts';
import { createMatching } from '../../replay/match/matching.ts';
import { createMock } from '../../replay/mock.ts';
import type { ReplayEvents } from '../../replay/play/request.ts';
import type { ServerOffer } from '../../replay/stub/ask.ts';
import {
  askServer,
  loadOffer,
  type OpenStub,
  offerSummary,
  openStub,
  saveOffer,
} from '../../sources/stub.ts';
import { type Io, pathOf, say } from '../io.ts';
import { commandOf, readLiveServer, readTimeout } from './live-server.ts';
import { type CallsFile, createReplayLog, openCallsFile, type ReplayLog } from './log.ts';
import {
  checkServing,
  createStop,
  loadFaults,
  type ServingFaults,
  type ServingOptions,
  serve,
} from './serving.ts';

type StubOptions = ServingOptions & {
  recording: string[];
  url: string | undefined;
  header: string[];
  timeout: number;
  mode: string;
  'suggest-ignore': string | undefined;
  'prune-unused': boolean;
  'record-failures': boolean;
  report: string | undefined;
  calls: string | undefined;
  'fail-on-miss': boolean;
  save: string | undefined;
};

const EXAMPLE = 'tapedeck replay --stub';

const FOUND_SOMETHING = 1;

/**
 * Answers clients until they have left or a signal has come, or saves what it would answer them with. Sets the exit code. `redaction`:
 * of what is saved. Throws `TapedeckError`.
 */
export async function replayStub(io: Io, argv: StubOptions, redaction: RedactionProfile): Promise<void> {
  checkOptions(argv);
  checkServing(argv);
  const faults = await loadFaults(argv);
  const { who, read } = readSource(io, argv);
  if (argv.save !== undefined) {
    const offer = await read();
    saveOffer(pathOf(io, argv.save), offer, redaction);
    say(io, escapeText(`${offerText(who, offer)}; saved in ${argv.save}, for: ${EXAMPLE} ${argv.save}`));
    return;
  }
  const calls = openCallsFile(io, argv.calls);
  const log = createReplayLog(io, argv.report, false);
  try {
    const offer = await read();
    const stub = openStub(offer);
    try {
      say(io, escapeText(`${offerText(who, offer)}; what answers a call is invented`));
      await play(io, argv, stub, faults, log, calls);
    } finally {
      stub.close();
    }
    log.end();
    calls.end();
    if (argv['fail-on-miss'] && log.misses() > 0) io.exitCode = FOUND_SOMETHING;
  } finally {
    log.close();
    calls.close();
  }
}

async function play(
  io: Io,
  argv: StubOptions,
  { recording, answer }: OpenStub,
  faults: ServingFaults | null,
  log: ReplayLog,
  calls: CallsFile,
): Promise<void> {
  const events: ReplayEvents = {
    ...calls,
    onRefusal(refusal, request) {
      log.miss(refusal);
      calls.onRefusal?.(refusal, request);
    },
    onNotice: log.notice,
  };
  const matching = createMatching(recording, { repeat: 'error', ignore: [], ignoreTool: [] });
  const mock = createMock({ recording, matching, speed: 'fast', events, override: answer });
  const stop = createStop(io);
  let leave: (() => void) | null = null;
  try {
    leave = await serve(io, recording, mock, argv, faults, stop.asked);
  } finally {
    stop.ignoreSignals();
    leave?.();
  }
}

/** A saved offer by its file, or a live server. `who`: for people. */
function readSource(io: Io, argv: StubOptions): { who: string; read: () => Promise<ServerOffer> } {
  const [file] = argv.recording;
  if (file === undefined) {
    const { connect } = readLiveServer(io, argv, EXAMPLE);
    const timeoutMs = readTimeout(argv.timeout);
    return { who: 'the live server', read: () => askServer(connect, timeoutMs) };
  }
  if (
    argv.url !== undefined ||
    commandOf(argv).length > 0 ||
    argv.header.length > 0 ||
    argv.save !== undefined
  )
    throw new TapedeckError(
      'usage',
      `Expected a saved offer or a live server with \`--stub\`, got \`${file}\` and more.`,
    );
  return { who: file, read: async () => loadOffer(pathOf(io, file)) };
}

/** Throws `TapedeckError` `usage` for what a stub has nothing to do with. */
function checkOptions(argv: StubOptions): void {
  const recording = argv.recording.find((name, i) => i > 0 || !name.endsWith('.json'));
  if (recording !== undefined)
    throw new TapedeckError(
      'usage',
      `Expected no recording with \`--stub\`, got \`${recording}\`: what is invented is never mixed with what was recorded. Name the live server, or a saved offer (.json): ${EXAMPLE} -- ./server; ${EXAMPLE} https://api.example.com/mcp; ${EXAMPLE} offer.json`,
    );
  const given = [
    argv.mode === 'none' ? null : `--mode ${argv.mode}`,
    argv['suggest-ignore'] === undefined ? null : '--suggest-ignore',
    argv['prune-unused'] ? '--prune-unused' : null,
    argv['record-failures'] ? '--record-failures' : null,
  ].find((one) => one !== null);
  if (given !== undefined)
    throw new TapedeckError('usage', `Expected no \`${given}\` with \`--stub\`, which has no recording.`);
}

const NAMES: Readonly<Record<string, readonly [one: string, several: string]>> = {
  tools: ['tool', 'tools'],
  prompts: ['prompt', 'prompts'],
  resources: ['resource', 'resources'],
  resourceTemplates: ['resource template', 'resource templates'],
};

/** `the live server offers 3 tools and 1 prompt, in 2025-11-25 and 2026-07-28`. */
function offerText(who: string, offer: ServerOffer): string {
  const { counts, versions } = offerSummary(offer);
  const things = Object.entries(NAMES).flatMap(([list, [one, several]]) => {
    const count = counts.get(list) ?? 0;
    return count === 0 ? [] : [`${count} ${count === 1 ? one : several}`];
  });
  const all = new Intl.ListFormat('en').format(things);
  return `${who} offers ${all === '' ? 'nothing' : all}, in ${versions.join(' and ')}`;
}
