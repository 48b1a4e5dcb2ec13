/**
 * The answers of the viewer's API: the joint between its server and its page, types alone. Times are microseconds since the
 * Unix epoch unless a field says otherwise, as in the store. Where `--json` of a command has a shape, that shape stands here.
 */

import type { RunCall, RunHead, RunLane, RunStretch, RunSummary } from '../inspect/run/run.ts';

export type { RunCall, RunLane, RunStretch };

/** `GET /api/about`. */
export type About = {
  version: string;
  /** The words by which people start tapedeck here. */
  typed: string;
  /** The file's name, not its path. */
  store: string;
  sessions: number;
  /** What this viewer can do; a report can do less. */
  can: { search: boolean; live: boolean; stats: boolean; compare: boolean; runs: boolean; export: boolean };
  /** Of a report: when and how it was made. Null from a server. */
  report: ReportFacts | null;
};

export type ReportFacts = {
  madeAt: string;
  session: string;
  redacted: boolean;
  filter: string | null;
  version: string;
};

/**
 * The first block of a report, `block-0`. A block is a `<script type="text/plain">` of its own, packed with gzip and in base64; the
 * others are named here by their numbers.
 */
export type ReportIndex = {
  about: About;
  /** The answer of `sessions/ID`. */
  session: number;
  /** The answer of `sessions/ID/check` without its findings, and these, the numbers of the first and last of a block. */
  check: number;
  findings: ReportRange[];
  /** Slices of `sessions/ID/outline`, by their `after`. */
  outline: [after: number, block: number][];
  /** Frames with all their details, the first and last of a block. */
  frames: ReportRange[];
  /** HTTP exchanges with all their details. */
  http: ReportRange[];
  /** Of frames that are shown cut: the bytes of each, of one block after another. */
  bytes: [seq: number, blocks: number[]][];
  originals: [seq: number, blocks: number[]][];
};

export type ReportRange = [first: number, last: number, block: number];

/** A session as `list --json` prints it, with what a list on a screen needs besides. */
export type SessionSummary = {
  session: string;
  name: string | null;
  basis: string;
  transport: string;
  startedAt: string;
  endedAt: string | null;
  target: string;
  client: { name: string; version: string | null } | null;
  server: { name: string; version: string | null } | null;
  protocolVersion: string | null;
  capture: string;
  frames: number;
  dropped: number;
  exchanges: number;
  errors: number;
  unanswered: number;
  exitCode: number | null;
  signal: string | null;
  endReason: string | null;
  /** `open` while it is recorded; else how it ended. */
  state: string;
  run: string | null;
  /** Microseconds from its start to its end, or to its last frame. */
  lasted: number | null;
  /** Errors per 24th of the session's time; null where it has none, where there was no time to count them, and in a report. */
  errorsOverTime: number[] | null;
};

/** `GET /api/sessions?filter&sort&after&limit`. `next` is what to give as `after`; null on the last page. */
export type SessionPage = { sessions: SessionSummary[]; next: string | null; total: number };

/** `GET /api/sessions/ID?findings`. */
export type SessionDetail = {
  session: SessionSummary;
  labels: [key: string, value: string][];
  /** The command line or the URL, redacted. */
  command: string;
  environment: [name: string, value: string][];
  capabilities: { client: string | null; server: string | null };
  /** Each tool with the bytes of its definition, in the order in which it was offered. */
  offers: { kind: 'tool' | 'prompt' | 'resource' | 'template'; name: string; bytes: number; seq: number }[];
  /** What was lost or cut, in words; empty where nothing was. */
  losses: string[];
  /** How it ended, in words. */
  ending: string;
  lastSeq: number;
  httpExchanges: number;
  /** How many `check` has, where it is asked for `findings`; null elsewhere, because finding them may take long. */
  findings: number | null;
};

/**
 * `GET /api/sessions/ID/outline?after&limit`: a row for each message, and for each frame without one, in order of `seq`. Columns
 * are arrays of one length. A column of strings holds indexes into `strings`, -1 for none.
 */
export type Outline = {
  strings: string[];
  seq: number[];
  /** The message's number in its frame. */
  n: number[];
  /** Microseconds since the session's start. */
  at: number[];
  channel: number[];
  size: number[];
  /** The number of its HTTP exchange; 0 for none. */
  http: number[];
  /** `request`, `notification`, `result`, `error`, `invalid`; -1 for a frame without a message. */
  kind: number[];
  id: number[];
  /** Canonical; of an answer, that of its request. */
  method: number[];
  target: number[];
  /** `reply`, `progress`, `cancel`, `round`, `task`, `subscription`. */
  relation: number[];
  /** The frame it relates to; 0 for none. */
  toSeq: number[];
  toN: number[];
  /** Microseconds; -1 for none. */
  latency: number[];
  /** Of an answer: `ok`, `tool-error`, `error`, `cancelled`, `input-required`. Of a request: what ended it without an answer. */
  outcome: number[];
  problem: number[];
  /** Sum of: 1 edited, 2 redacted, 4 cut, 8 unfinished, 16 came before on another stream. */
  marks: number[];
  /** For a frame without a message, the beginning of its text (at most 200 characters); of a message what says most in a line. */
  text: number[];
  /** Which of several clients; 1 the first. */
  client: number[];
  /** What to give as `after`; null when the session has no more at this moment. */
  next: number | null;
};

/** A frame as `show --json` prints it; `text` or `base64` cut at 64 kB, which `cut` says. */
export type FrameView = {
  session: string;
  seq: number;
  at: string;
  direction: 'client-to-server' | 'server-to-client';
  channel: string;
  size: number;
  text?: string;
  base64?: string;
  edited: boolean;
  /** What was done to it on purpose. */
  fault?: { number: number; rule: string; action: string };
  original?: string;
  originalBase64?: string;
  redacted: boolean;
  redactedBy?: string[];
  http: {
    exchange: number;
    method: string | null;
    path: string | null;
    status: number | null;
    closedBy: string | null;
    error: string | null;
  } | null;
  sse: {
    event: string | null;
    id: string | null;
    retry: string | null;
    data?: string | null;
    dataBase64?: string;
  } | null;
  truncated?: true;
  unfinished?: true;
  /** Not the bytes that passed: an SDK had parsed them. */
  reserialised?: true;
  messages: {
    kind: string;
    id: string | null;
    idType: string | null;
    method: string | null;
    replyTo: number | null;
    latencyMs: number | null;
    problem: string | null;
    /** What became of a request that its asker has no answer to; of a cancellation, that it was for nothing. */
    fate?: { verdict: string; text: string };
  }[];
  cut?: true;
};

/** `GET /api/sessions/ID/frames/SEQ`: one frame, and what stands around it. */
export type FrameDetail = FrameView & {
  lineEnd: string;
  /** Of the stored payload, in hex. */
  sha256: string;
  encoding: 'utf-8' | 'binary';
  answeredBy: number | null;
  /** Where bytes are: `/api/sessions/ID/frames/SEQ/bytes`, with Range. */
  storedBytes: number;
};

/** `GET /api/sessions/ID/frames?after&limit`. */
export type FramePage = { frames: FrameView[]; next: number | null };

/** An HTTP exchange as `show --json --http` prints it. */
export type HttpView = {
  session: string;
  http: number;
  method: string;
  path: string;
  httpVersion: string;
  client: string;
  status: number | null;
  statusText: string | null;
  requestHeaders: [string, string][];
  requestTrailers: [string, string][];
  requestBytes: number;
  informations: { at: string; status: number; headers: [string, string][] }[];
  responseHeaders: [string, string][] | null;
  responseTrailers: [string, string][];
  responseBytes: number;
  at: string;
  requestEndedAt: string | null;
  responseAt: string | null;
  endedAt: string | null;
  closedBy: string | null;
  error: string | null;
  /** What the proxy changed in a head; the headers have what went on. */
  edits: { side: 'request' | 'response'; header: string; original: string }[];
};

/** `GET /api/sessions/ID/http?after&limit≤500`. */
export type HttpPage = { http: HttpView[]; next: number | null };

/** `GET /api/sessions/ID/http/N`. */
export type HttpDetail = HttpView & { frames: number[] };

/** A line of `GET /api/sessions/ID/select?filter` (NDJSON): runs of `seq`, first and last; `done` in the last line. */
export type SelectLine = { runs: [from: number, to: number][] } | { done: true; count: number };

/** A finding of `GET /api/sessions/ID/check`, as `check --json` prints it; `text` is the sentence that `check` prints. */
export type FindingView = {
  rule: string;
  severity: 'note' | 'warning' | 'error';
  side: 'client' | 'server';
  seq: number | null;
  n: number | null;
  http: number | null;
  expected: string;
  seen: string;
  text: string;
  /** Where the rule stands in the specification. */
  url: string;
};

/** What was found against one rule. `count` is complete; of the findings the first 1000 are there. */
export type RuleFindings = {
  rule: string;
  severity: FindingView['severity'];
  about: string;
  url: string;
  count: number;
};

/** `GET /api/sessions/ID/check`. */
export type CheckAnswer = {
  rules: RuleFindings[];
  findings: FindingView[];
  /** `2 errors, 1 note`. */
  summary: string;
  /** What could not be told, in sentences. */
  remarks: string[];
  /** What became of the first thousand messages to which their asker has no answer that it could use. */
  fates: FateView[];
};

/** `verdict` in a word, `text` in a sentence, as `show` has it. */
export type FateView = { seq: number; n: number; verdict: string; text: string };

/** How far long work is. */
export type Progress = { progress: { done: number; total: number } };

/** A line of `GET /api/search?q&filter&limit&index` (NDJSON). A session stands before its first hit; `index=no` reads without the index. */
export type SearchLine =
  | Progress
  | {
      session: { session: string; name: string | null; target: string; transport: string; startedAt: string };
    }
  | { hit: SearchHitView }
  | { done: true; hits: number; more: boolean };

export type SearchHitView = {
  session: string;
  seq: number;
  at: string;
  direction: 'client-to-server' | 'server-to-client';
  channel: string;
  line: string;
  outcome: string | null;
  /** What was looked for, with the text around it. */
  excerpts: [before: string, found: string, after: string][];
};

/** A group of `stats --json`; of notifications only `count` and `bytes` are there. `filter` selects exactly its calls. */
export type StatsGroup = {
  kind?: 'request' | 'notification';
  askedBy?: 'client' | 'server';
  method?: string;
  target?: string | null;
  session?: string;
  name?: string | null;
  count: number;
  bytes: number;
  answerBytes?: number;
  definitionBytes?: number;
  ok?: number;
  toolErrors?: number;
  errors?: number;
  cancelled?: number;
  inputRequired?: number;
  unanswered?: number;
  atOnce?: number;
  minMs?: number | null;
  p50Ms?: number | null;
  p95Ms?: number | null;
  p99Ms?: number | null;
  maxMs?: number | null;
  filter: string;
  bars: StatsBar[];
};

/** What the sessions cost, as the last line of `stats --json` has it; null where a filter chooses among their calls. */
export type StatsTotal = {
  serverMs: number;
  personMs: number;
  clientMs: number;
  definitionBytes: number;
  /** Calls may be missing in so many, because frames have no payload. */
  sessionsLackingPayloads?: number;
  lost: Record<string, number>;
};

/** What figures of a sample are: estimates for about `sessions`, or of what was `recorded`. */
export type StatsSample = { isScaled: boolean; recorded: number; sampled: number; leftOut: number };

/** Answered calls of one class of latency. `filter` selects exactly these, together with that of its group. */
export type StatsBar = { fromMs: number; toMs: number; count: number; filter: string };

/** A line of `GET /api/stats?by&filter` and `GET /api/sessions/ID/stats` (NDJSON). */
export type StatsLine =
  | Progress
  | {
      stats: {
        sessions: number;
        sample: StatsSample | null;
        all: StatsGroup;
        groups: StatsGroup[];
        total: StatsTotal | null;
      };
    }
  | { overTime: { stepMs: number; bars: { at: string; calls: number; errors: number; filter: string }[] } }
  | { done: true };

/** A line of `GET /api/diff?a&b&ignore&ignore-tool&ignore-result` (NDJSON), as `diff --json` prints it, without what weighs how much; each path on a line. */
export type DiffLine =
  | Progress
  | {
      type: 'list';
      kind: string;
      name: string;
      change: string;
      breaking: boolean;
      reasons: string[];
      differences: DifferenceView[];
    }
  | {
      type: 'call';
      verdict: 'equal' | 'differs' | 'other arguments' | 'only in a' | 'only in b';
      askedBy: 'client' | 'server';
      method: string;
      target: string | null;
      a: number | null;
      b: number | null;
      why: string | null;
      differences: DifferenceView[];
      moreDifferences: number;
    }
  | { type: 'timing'; method: string; target: string | null; a: TimingView; b: TimingView }
  | { type: 'summary'; isEqual: boolean; notCompared: string[]; text: string };

/** Values are JSON text, null where there is none. */
export type DifferenceView = {
  change: 'added' | 'removed' | 'changed';
  pointer: string;
  a: string | null;
  b: string | null;
};

export type TimingView = { count: number; p50Ms: number | null; p95Ms: number | null };

/** `GET /api/complete?filter&at&session`: `from` to `to` of the filter is what a word replaces. */
export type Completions = { from: number; to: number; words: { text: string; about: string }[] };

/** `GET /api/snippet/ID/SEQ?as=`. */
export type Snippet = { text: string };

/** An error of any route: the code and the words of a `TapedeckError`; `at` is the column in a filter. */
export type ApiError = { error: { code: string; message: string; at?: number } };

/** `GET /api/runs?limit≤500`: as `list --by run --json` prints them, the newest first. */
export type RunList = { runs: RunSummary[] };

/**
 * `GET /api/runs/ID?stretch&gap&offset&filter&after&limit≤20000`: all servers of a run on one clock. `stretch` is the number of the
 * one whose calls are wanted, the last one where it is not given; `gap` cuts the run, in minutes; `offset=CLOCK:MICROSECONDS,…`
 * moves clocks; with `filter` only calls count that it selects. `after` calls of the stretch are left out, for the next page.
 */
export type RunDetail = RunHead & {
  stretches: RunStretch[];
  /** Of which stretch the calls are; 0 where the run has none. */
  stretch: number;
  /** In the order in which they began. `next.call` of one is a place among all calls of the stretch. */
  calls: RunCall[];
  /** What to give as `after`; null when the stretch has no more. */
  next: number | null;
};

/** `GET /api/ticket?for=PATH`: a URL of its own for a download of that path of the API; once, within 60 s, without the token. */
export type Ticket = { url: string };

/**
 * An event of `GET /api/changes` (SSE); the event's name is `kind`, and each has an id to resume from (`Last-Event-ID`). `begin` is
 * the first of every stream. Where it was resumed, the events that were missed follow; else what is shown has to be fetched again.
 * `frames`: `upTo` is the last one that an outline has. `ended`: also of one that was cut off. `indexed`: the index of messages of
 * sessions that had ended was completed; `session` names them.
 */
export type Change =
  | { kind: 'begin'; resumed: boolean }
  | { kind: 'session'; id: string }
  | { kind: 'frames'; id: string; upTo: number }
  | { kind: 'ended'; id: string }
  | { kind: 'pruned'; id: string }
  | { kind: 'indexed' };
