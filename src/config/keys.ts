/** The keys of a configuration file. Each is an option of the command line under another name. */

import { dirname, join, resolve } from 'node:path';
import { TapedeckError } from '../errors.ts';
import { isEngineUrl } from '../store/file/path.ts';
import { readAge, readCount, readRate, readSize } from './sizes.ts';

export type Key = {
  option: string;
  /** What it is called in a command where it is called otherwise. */
  optionOf?: Readonly<Record<string, string>>;
  kind: Kind;
  /** Null: all commands with a store. */
  commands: readonly string[] | null;
  /**
   * Whether a project's file may set it. Such a file may have come with a clone: it may ask for more redaction, and say what
   * to leave out in the project's tests. It may not choose the store or the engine, delete sessions, or ask for less redaction.
   */
  inProject: boolean | readonly string[];
};

type Kind = 'store' | 'text' | 'size' | 'age' | 'count' | 'share' | 'flag' | 'list';

const RECORD = ['record', 'run'];

const SHIPPING = ['ship', ...RECORD];

const CHECKING = ['check', 'ci'];

const REDACTING = [...RECORD, 'redact', 'scan'];

export const KEYS: Readonly<Record<string, Key>> = {
  db: { option: 'db', kind: 'store', commands: null, inProject: false },
  strict: { option: 'strict', kind: 'flag', commands: RECORD, inProject: false },
  durable: { option: 'durable', kind: 'flag', commands: RECORD, inProject: false },
  maxFrame: { option: 'max-frame', kind: 'size', commands: RECORD, inProject: false },
  maxQueue: { option: 'max-queue', kind: 'size', commands: RECORD, inProject: false },
  'sample.rate': { option: 'sample', kind: 'share', commands: RECORD, inProject: false },
  'sample.keep': { option: 'keep', kind: 'text', commands: RECORD, inProject: false },
  'sample.metaFor': { option: 'meta-for', kind: 'list', commands: RECORD, inProject: true },
  'retention.olderThan': { option: 'older-than', kind: 'age', commands: RECORD, inProject: false },
  'retention.maxSize': { option: 'max-size', kind: 'size', commands: RECORD, inProject: false },
  'retention.maxSessions': { option: 'max-sessions', kind: 'count', commands: RECORD, inProject: false },
  'retention.keepErrors': { option: 'keep-errors', kind: 'flag', commands: RECORD, inProject: false },
  'retention.packAfter': { option: 'pack-after', kind: 'age', commands: RECORD, inProject: false },
  'retention.localKeep': { option: 'local-keep', kind: 'age', commands: RECORD, inProject: false },
  'retention.maxUnshipped': { option: 'max-unshipped', kind: 'size', commands: RECORD, inProject: false },
  'redact.rules': {
    option: 'redact-rule',
    kind: 'list',
    commands: [...REDACTING, 'replay', 'import', 'export', 'ci'],
    inProject: true,
  },
  'redact.without': {
    option: 'no-redact-rule',
    kind: 'list',
    commands: [...REDACTING, 'replay', 'import', 'ci'],
    inProject: false,
  },
  'redact.paths': {
    option: 'redact',
    kind: 'list',
    commands: [...RECORD, 'redact', 'replay', 'import', 'export'],
    inProject: true,
  },
  'redact.off': { option: 'no-redact', kind: 'flag', commands: RECORD, inProject: false },
  'redact.capture': { option: 'capture', kind: 'text', commands: RECORD, inProject: ['meta'] },
  'log.format': { option: 'log', kind: 'text', commands: RECORD, inProject: false },
  'log.level': { option: 'log-level', kind: 'text', commands: RECORD, inProject: false },
  faults: { option: 'fault', kind: 'list', commands: ['record', 'replay'], inProject: false },
  ignore: { option: 'ignore', kind: 'list', commands: ['replay', 'ci'], inProject: true },
  ignoreTool: { option: 'ignore-tool', kind: 'list', commands: ['replay', 'ci'], inProject: true },
  'check.expect': { option: 'expect', kind: 'list', commands: CHECKING, inProject: true },
  'check.forbid': { option: 'forbid', kind: 'list', commands: CHECKING, inProject: true },
  'check.max': { option: 'max', kind: 'list', commands: CHECKING, inProject: true },
  'ship.url': {
    option: 'to',
    optionOf: { record: 'ship' },
    kind: 'text',
    commands: ['engine', 'ship', 'record'],
    inProject: false,
  },
  'ship.sample': { option: 'ship-sample', kind: 'share', commands: SHIPPING, inProject: false },
  'ship.keep': { option: 'ship-keep', kind: 'text', commands: SHIPPING, inProject: false },
  'ship.decideAfter': { option: 'decide-after', kind: 'age', commands: SHIPPING, inProject: false },
  ignoreResult: { option: 'ignore-result', kind: 'list', commands: ['verify', 'ci'], inProject: true },
};

const EXPECTED: Record<Kind, string> = {
  store: 'a path or the URL of an engine, as a string',
  text: 'a string',
  size: 'a size, as "500mb"',
  age: 'a time, as "30d"',
  count: 'a whole number',
  share: 'a share, as "10%" or 0.1',
  flag: 'true or false',
  list: 'a list of strings',
};

type PathBase = { file: string; home: string };

/**
 * The value as words of a command line, one an item of a list; for a flag none or one. `file` is where it stands: a path
 * is relative to its folder, or with `~` to `home`. Throws `TapedeckError` `usage`.
 */
export function readValue(name: string, { kind }: Key, value: unknown, base: PathBase): string[] {
  switch (kind) {
    case 'flag':
      if (typeof value === 'boolean') return value ? [''] : [];
      break;
    case 'list':
      if (Array.isArray(value) && value.every(isFilled)) return value;
      break;
    case 'count':
      if (typeof value === 'number') return checked(String(value), (text) => readCount(name, text));
      break;
    case 'share':
      if (typeof value === 'number' || isFilled(value))
        return checked(String(value), (text) => readRate(name, text));
      break;
    case 'size':
      if (typeof value === 'number' || isFilled(value))
        return checked(String(value), (text) => readSize(name, text));
      break;
    case 'age':
      if (isFilled(value)) return checked(value, (text) => readAge(name, text));
      break;
    case 'store':
      if (isFilled(value)) return [isEngineUrl(value) ? value.trim() : resolvePath(value, base)];
      break;
    case 'text':
      if (isFilled(value)) return [value];
      break;
  }
  throw new TapedeckError(
    'usage',
    `Expected ${EXPECTED[kind]} for \`${name}\`, got ${JSON.stringify(value)}.`,
  );
}

function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function checked(text: string, read: (text: string) => unknown): string[] {
  read(text);
  return [text];
}

function resolvePath(path: string, { file, home }: PathBase): string {
  if (path === '~' || path.startsWith('~/')) return join(home, path.slice(1));
  return resolve(dirname(file), path);
}
