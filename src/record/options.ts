/** What the doors of the library take, and what becomes of it: the options of `tapedeck record`, by the same names in camelCase. */

import { readConfiguration } from '../config/file.ts';
import { filesFor } from '../config/location.ts';
import { checkUpkeep, readSize } from '../config/sizes.ts';
import { TapedeckError } from '../errors.ts';
import { type RedactionProfile, readProfile } from '../protocol/redact/profile.ts';
import { isEngineUrl } from '../store/file/path.ts';
import type { RecorderOptions } from '../store/record/thread.ts';
import type { RecordingOptions } from './door.ts';

/** `recorder` lacks what each session has of its own. */
export type DoorSettings = {
  name: string | null;
  labels: [key: string, value: string][];
  /** `kind`: what is said once where it is a warning; missing: this text, whatever its figures. */
  tell: (text: string, kind?: string) => void;
  recorder: Pick<
    RecorderOptions,
    'file' | 'durable' | 'maxFrameBytes' | 'maxQueueBytes' | 'retention' | 'redaction'
  >;
};

type Given = Record<string, string[]>;

/**
 * Throws `TapedeckError` for a wrong option, and for a configuration file that is wrong: what it wants redacted would be stored
 * otherwise.
 */
export function readRecordingOptions(options: RecordingOptions): DoorSettings {
  const { name, labels = {}, onTrouble } = options;
  const given = configured();
  const one = (option: string, value: string | undefined) => value ?? given[option]?.at(-1);
  const retention = {
    'older-than': one('older-than', options.olderThan),
    'max-size': one('max-size', options.maxSize),
    'max-sessions': one('max-sessions', options.maxSessions?.toString()),
  };
  const hasLimit = Object.values(retention).some((limit) => limit !== undefined);
  const keepErrors = options.keepErrors ?? given['keep-errors'] !== undefined;
  return {
    name: name ?? null,
    labels: Object.entries(labels),
    tell: teller(onTrouble),
    recorder: {
      file: checkedFile(options.db ?? (process.env['TAPEDECK_DB'] || given['db']?.at(-1))),
      durable: options.durable ?? given['durable'] !== undefined,
      maxFrameBytes: readSize('maxFrame', one('max-frame', options.maxFrame) ?? '256mb'),
      maxQueueBytes: readSize('maxQueue', one('max-queue', options.maxQueue) ?? '256mb'),
      retention: checkUpkeep({
        ...{ ...retention, 'keep-errors': hasLimit && keepErrors },
        'pack-after': one('pack-after', options.packAfter),
      }),
      redaction: readRedaction(options, given),
    },
  };
}

/** Hosts write to an engine by shipping alone. */
function checkedFile(file: string | undefined): string | undefined {
  if (file === undefined || !isEngineUrl(file)) return file;
  throw new TapedeckError(
    'usage',
    'Expected the file of a store to record into, got the URL of an engine. Record into a file, and ship that.',
  );
}

/** What the configuration files say of `record`, as words by option. */
function configured(): Given {
  const given: Given = {};
  for (const file of filesFor(currentFolder(), process.env))
    for (const { key, values } of readConfiguration(file, process.env)) {
      if (key.commands !== null && !key.commands.includes('record')) continue;
      if (values.length > 0) given[key.option] = [...(given[key.option] ?? []), ...values];
    }
  return given;
}

/** Null where the folder was removed. */
export function currentFolder(): string | null {
  try {
    return process.cwd();
  } catch {
    return null;
  }
}

/** Lists add up. `noRedact` overrides the files; what a file wants redacted overrides another file's `off`. */
function readRedaction(options: RecordingOptions, given: Given): RedactionProfile | null {
  const { noRedact, noRedactRule = [], redactRule = [], redact = [], capture } = options;
  const isAsked = noRedactRule.length + redactRule.length + redact.length > 0 || capture === 'meta';
  if (noRedact && isAsked)
    throw new TapedeckError('usage', 'Expected either `noRedact` or what to redact, got both.');
  if (noRedact) return null;
  if (capture !== undefined && capture !== 'full' && capture !== 'meta')
    throw new TapedeckError(
      'usage',
      `Expected full or meta for \`capture\`, got ${JSON.stringify(capture)}.`,
    );
  const both = (option: string, own: readonly string[]) => [...new Set([...(given[option] ?? []), ...own])];
  const profile = readProfile(
    both('no-redact-rule', noRedactRule),
    both('redact-rule', redactRule),
    both('redact', redact),
  );
  const isMeta = (capture ?? (given['capture']?.includes('meta') ? 'meta' : 'full')) === 'meta';
  const isFull = Object.values(profile).every((values) => values.length === 0) && !isMeta;
  if (given['no-redact'] !== undefined && isFull) return null;
  return isMeta ? { ...profile, capture: 'meta' } : profile;
}

/** A host hears of trouble, and is never troubled by it. */
function teller(onTrouble: RecordingOptions['onTrouble']): DoorSettings['tell'] {
  return (text, kind = text.replace(/\d+/g, '…')) => {
    try {
      if (onTrouble !== undefined) onTrouble(text);
      else warnOnce(text, kind);
    } catch {
      // It is the host's own.
    }
  };
}

/** What its user was warned of: a program may open a recording for each of its clients. */
const warned = new Set<string>();

function warnOnce(text: string, kind: string): void {
  if (warned.has(kind)) return;
  warned.add(kind);
  process.emitWarning(text, 'TapedeckWarning');
}
