/** Reads the options of `openRecording`, and turns them into a command line for spawned servers. */

import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { projectSettings } from '../config/project.ts';
import { readAge } from '../config/sizes.ts';
import { TapedeckError } from '../errors.ts';
import type { RawFaults } from '../fault/faults.ts';
import { readFaultRule } from '../fault/rule.ts';
import { type RedactionProfile, readProfile } from '../protocol/redact/profile.ts';
import { MODES } from '../replay/live/recorder.ts';
import type { MatchingOptions } from '../replay/match/matching.ts';
import type { Speed } from '../replay/play/timetable.ts';
import type { LiveTarget } from '../sources/playback.ts';
import { isTextRecording } from '../sources/source.ts';
import { isEngineUrl, storePath } from '../store/file/path.ts';
import { liveHttp } from '../talk/http.ts';
import { liveStdio } from '../talk/stdio.ts';
import { BIN } from '../version.ts';
import type {
  DeckOptions,
  FileUrl,
  RecordMode,
  ServerCommand,
  UpstreamCommand,
  UpstreamUrl,
} from './deck.ts';
import { DEFAULT_SEED } from './fault-hint.ts';

export type Settings = Omit<MatchingOptions, 'matchBy' | 'beforeMatching'> & {
  /** An absolute path, or a session. */
  recording: string;
  db: string | undefined;
  mode: RecordMode;
  /** Null without the option. */
  upstream: Server | null;
  keepsFailures: boolean;
  redaction: RedactionProfile;
  pruneUnused: boolean;
  /** Null: any age will do. */
  maxAgeMs: number | null;
  beforeStoring: DeckOptions['beforeStoring'];
  matchCall: DeckOptions['matchBy'];
  speed: Speed;
  /** Null: none. */
  faults: RawFaults | null;
};

const REPEATS = ['error', 'last', 'cycle'] as const;

/** Throws `TapedeckError` `usage` for a value that an option does not have. */
export function readSettings(given: string | FileUrl, options: DeckOptions): Settings {
  const { db, repeat = 'error', speed = 'fast' } = options;
  if (!REPEATS.includes(repeat)) throw wrongOption('repeat', REPEATS.join(', '), repeat);
  const factor = speed === 'recorded' ? 1 : speed;
  if (factor !== 'fast' && !(Number.isFinite(factor) && factor > 0))
    throw wrongOption('speed', 'fast, recorded or a number above 0', speed);
  const upstream = readUpstream(options.upstream);
  const recording = readRecording(given);
  const project = projectSettings(isTextRecording(recording) ? dirname(recording) : process.cwd());
  const both = (name: keyof typeof project) => [...new Set([...project[name], ...(options[name] ?? [])])];
  return {
    recording,
    db,
    redaction: readProfile(options.noRedactRule ?? [], both('redactRule'), both('redact')),
    mode: chooseMode(options.mode, process.env, upstream !== null),
    upstream,
    keepsFailures: options.recordFailures ?? false,
    pruneUnused: options.pruneUnused ?? false,
    maxAgeMs: readMaxAge(options.maxAge, upstream !== null),
    ...{ beforeStoring: options.beforeStoring, matchCall: options.matchBy },
    ...{ anyValue: options.anyValue ?? [], anyOrder: options.anyOrder ?? [] },
    ...{ ignore: both('ignore'), ignoreTool: both('ignoreTool'), repeat, speed: factor },
    faults: faultsOf(options),
  };
}

/** Which of them a client of its kind can have, is said when it comes. */
function faultsOf({ faults = [], seed = DEFAULT_SEED }: DeckOptions): RawFaults | null {
  if (faults.length === 0) return null;
  if (!Number.isSafeInteger(seed) || seed < 0) throw wrongOption('seed', 'a whole number from 0 on', seed);
  for (const [i, fault] of faults.entries()) readFaultRule(fault, i + 1);
  return { fault: faults, seed };
}

function readRecording(given: string | FileUrl): string {
  const text = typeof given === 'string' ? given : given.href;
  const name = text.startsWith('file:') ? fileURLToPath(text) : text;
  return isTextRecording(name) ? resolve(name) : name;
}

function readMaxAge(option: string | undefined, hasUpstream: boolean): number | null {
  if (option !== undefined) return readAge('maxAge', option);
  return hasUpstream && !isSet(process.env['CI'] ?? '') ? readAge('maxAge', '180d') : null;
}

/** The option's mode, else `TAPEDECK_MODE`, else `none` where `CI` is set. Without an upstream it is `none`, too. */
export function chooseMode(
  option: string | undefined,
  { TAPEDECK_MODE = '', CI = '' }: NodeJS.ProcessEnv,
  hasUpstream: boolean,
): RecordMode {
  if (option !== undefined) {
    const mode = readMode(option, 'the option `mode`');
    if (!hasUpstream && (mode === 'all' || mode === 'new_episodes'))
      throw new TapedeckError(
        'usage',
        `Expected the option \`upstream\`, the server that mode ${mode} asks, got none.`,
      );
    return hasUpstream ? mode : 'none';
  }
  const byDefault = isSet(CI) ? 'none' : 'once';
  const mode = TAPEDECK_MODE === '' ? byDefault : readMode(TAPEDECK_MODE, '`TAPEDECK_MODE`');
  return hasUpstream ? mode : 'none';
}

/** Some set `CI` to say no. */
function isSet(text: string): boolean {
  return !['', '0', 'false'].includes(text.toLowerCase());
}

function readMode(text: string, where: string): RecordMode {
  const mode = MODES.find((known) => known === text);
  if (mode !== undefined) return mode;
  throw new TapedeckError('usage', `Expected ${MODES.join(', ')} as ${where}, got ${JSON.stringify(text)}.`);
}

function wrongOption(name: string, expected: string, got: unknown): TapedeckError {
  return new TapedeckError(
    'usage',
    `Expected ${expected} as the option \`${name}\`, got ${JSON.stringify(got)}.`,
  );
}

/** The real server behind a recording, as a test names it. */

type Server = LiveTarget & {
  /** The arguments that name it to `tapedeck replay`: options, and the words at the end. */
  options: string[];
  words: string[];
  env: Record<string, string>;
};

/** Throws `TapedeckError` `usage` for a value that names no server. */
function readUpstream(upstream: DeckOptions['upstream']): Server | null {
  if (upstream === undefined) return null;
  if (typeof upstream === 'string') return byHttp({ url: upstream });
  if ('url' in upstream) return byHttp(upstream);
  if (typeof upstream.command === 'string' && upstream.command !== '') return byCommand(upstream);
  throw expected(JSON.stringify(upstream));
}

function byCommand({ command, args = [], env = {} }: UpstreamCommand): Server {
  const stderr = (bytes: Buffer) => void process.stderr.write(bytes);
  const words = [command, ...args];
  return {
    connect: liveStdio(command, args, stderr, { ...process.env, ...env }),
    url: null,
    command: words,
    ...{ options: [], words: ['--', ...words], env: { ...env } },
  };
}

function byHttp({ url: text, headers = {} }: UpstreamUrl): Server {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) throw expected(JSON.stringify(text));
  const url = new URL(text);
  const options = Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]);
  return { connect: liveHttp(url, headers), url, command: null, options, words: [url.href], env: {} };
}

function expected(got: string): TapedeckError {
  return new TapedeckError(
    'usage',
    `Expected a URL or { command, args, env } as the option \`upstream\`, got ${got}.`,
  );
}

/**
 * `tapedeck replay` as a command line that works anywhere on this machine. `session`: the recording's own id, if it is in the
 * store; `calls`: the file in which the process logs its calls.
 */
export function serverCommand(settings: Settings, session: string | null, calls: string): ServerCommand {
  const { recording, db, mode, upstream, ignore, repeat, speed, redaction } = settings;
  const { ignoreTool = [], anyValue = [], anyOrder = [] } = settings;
  const asked = mode === 'none' ? null : upstream;
  const isWhole = isTextRecording(recording) || isEngineUrl(recording);
  const source = isWhole ? [recording] : [session ?? recording, '--db', storePath(db)];
  const args = [
    // What the configuration says is among the options.
    ...[BIN, 'replay', ...source, '--no-config', '--mode', mode, '--hints', 'kit'],
    ...redaction.without.flatMap((id) => ['--no-redact-rule', id]),
    ...redaction.rules.flatMap((rule) => ['--redact-rule', rule]),
    ...redaction.paths.flatMap((path) => ['--redact', path]),
    ...(settings.keepsFailures && asked !== null ? ['--record-failures'] : []),
    ...(asked?.options ?? []),
    ...ignore.flatMap((path) => ['--ignore', path]),
    ...ignoreTool.flatMap((path) => ['--ignore-tool', path]),
    ...anyValue.flatMap((path) => ['--any-value', path]),
    ...anyOrder.flatMap((path) => ['--any-order', path]),
    ...(settings.faults?.fault ?? []).map((fault) => `--fault=${fault}`),
    ...(settings.faults === null ? [] : ['--seed', String(settings.faults.seed)]),
    ...['--repeat', repeat, '--speed', String(speed), '--calls', calls],
    ...(asked?.words ?? []),
  ];
  return { command: process.execPath, args, env: { ...asked?.env } };
}
