/**
 * Makes the keys of a recording's calls and of the live requests that are compared with them, each once where that will do, and binds
 * live secrets to recorded ones.
 */

import type { CanonicalProblem } from '../../protocol/json/canonical.ts';
import type { Span } from '../../protocol/json/read.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { readParams } from '../../protocol/message/details.ts';
import type { RequestMessage } from '../../protocol/message/message.ts';
import type { SecretNumbers } from '../../protocol/redact/numbers.ts';
import { createColumn, createDigestTable } from '../recording/columns.ts';
import type { Recording } from '../recording/recording.ts';
import { hasPlaceholder, placeholdersIn, withoutDigests } from '../recording/secrets.ts';
import type { CallTopic } from '../recording/topics.ts';
import {
  createIgnoreWatch,
  type IgnoreRules,
  type IgnoreWatch,
  type MatchPaths,
  readIgnoreRules,
} from './ignore.ts';
import { digestOf, findParams, keyFor, NO_PARAMS, type RequestKey, requestKey } from './key.ts';

/** What the caller does with requests before they are compared. */
export type MatchFunctions = {
  /** A live request as it would have been stored. */
  beforeMatching?: ((json: Buffer) => Buffer) | undefined;
  /** What counts of the params: the JSON text of an object; null where all of it does. */
  matchBy?: ((asked: CallTopic, params: Buffer | null) => Buffer | null) | undefined;
};

/** Takes a recorded call that was read, to find it by its text. False where it has no use for it. */
export type KeepCall = (call: number, json: Buffer) => boolean;

/** The keys of a recording's calls, and of the live requests that are compared with them. */
export type RecordingKeys = {
  /**
   * The key of a live request, as it would have been recorded; or why it has none. A secret in it that has no number yet gets
   * that of the first recorded request which is alike but for its secrets, of the recorded `client` before all others.
   */
  ofRequest(request: RequestMessage, json: Buffer, client?: number | null): RequestKey | CanonicalProblem;
  /** The same as it would be recorded now, by more rules; null where that makes no difference. */
  ofRequestNow(request: RequestMessage, json: Buffer): RequestKey | CanonicalProblem | null;
  /** The key of the recorded call at a place, made anew from its payload; null where it cannot be read any more. */
  keyAt(place: Place): RequestKey | null;
  /** The digest of a recorded call, by its number in the script; null where it cannot be read. */
  digestOf(call: number): string | null;
  /** Says that a request comes again, whose key this is: the next ones that are written alike have their key at once. */
  expectAgain(key: RequestKey): void;
  /**
   * Live requests that are written like a call whose digest is made in `work` have their key at once. `keep`: takes such a call in
   * place of that, unless it gives false.
   */
  expecting(keep: KeepCall | null, work: () => void): void;
  /**
   * Whether recorded calls with this key differ in what was redacted, by a key that is not at hand: nobody can tell them
   * apart any more, so none of them answers anybody.
   */
  isAmbiguous(key: RequestKey): boolean;
  watch: IgnoreWatch;
};

/** Reads all recorded calls where the recording's redaction key is not at hand; none otherwise. */
export function createRecordingKeys(
  recording: Recording,
  paths: MatchPaths,
  functions: MatchFunctions = {},
): RecordingKeys {
  const { script, read } = recording;
  /** As it would have been recorded, as far as it can be compared. */
  const comparable = (json: Buffer) => recording.comparable(recording.redacted(json));
  const { beforeMatching = (json) => json, matchBy } = functions;
  const { ignore, ignoreTool = [], anyValue, anyOrder } = paths;
  const watch = createIgnoreWatch(ignore, ignoreTool);
  const rules = readIgnoreRules(ignore, ignoreTool, anyValue, anyOrder);
  const makeKey = createKeyMaker(recording, rules, watch, matchBy);
  let isExpecting = false;
  let keepCall: KeepCall | null = null;

  function keyAt(place: Place): RequestKey | null {
    const json = loadIfThere(recording, place);
    return json && keyOfRecorded(comparable(json));
  }

  function keyOfRecorded(json: Buffer): RequestKey | null {
    const message = read(json);
    if (message?.kind !== 'request') return null;
    const key = makeKey.of(message, json);
    return typeof key === 'string' ? null : key;
  }

  function keyOfCall(call: number, json: Buffer): RequestKey | null {
    const canonical = script.topics.methodOf(script.topicOf(call));
    const params = findParams(json, 0);
    const before = makeKey.before(canonical, textAt(json, params));
    // Live calls are read whole, too, and what reads them is quick by then.
    if (before !== null || keepCall === null) return before ?? keyOfRecorded(json);
    const details = readParams(json, canonical, params ?? undefined);
    const key = makeKey.of({ canonical, params, details }, json);
    return typeof key === 'string' ? null : key;
  }

  function digestOf(call: number): string | null {
    const loaded = loadIfThere(recording, script.placeOf(call));
    if (loaded === null) return null;
    const json = comparable(loaded);
    const key = keyOfCall(call, json);
    if (isExpecting && key !== null && !keepCall?.(call, json)) makeKey.expectAgain(key);
    return key?.digest ?? null;
  }

  function findAmbiguous(): ReadonlySet<string> {
    const ambiguous = new Set<string>();
    const exactOf = new Map<string, string>();
    for (let call = 0; !recording.isExact && call < script.size; call += 1) {
      const exact = loadIfThere(recording, script.placeOf(call));
      const own = exact && keyOfRecorded(exact);
      const shared = exact && keyOfRecorded(recording.comparable(exact));
      if (own === null || shared === null) continue;
      if ((exactOf.get(shared.digest) ?? own.digest) !== own.digest) ambiguous.add(shared.digest);
      exactOf.set(shared.digest, own.digest);
    }
    return ambiguous;
  }

  function keyOfLive(request: RequestMessage, json: Buffer, asked: Buffer): RequestKey | CanonicalProblem {
    const message = asked === json ? request : read(asked);
    return message?.kind === 'request' ? makeKey.of(message, asked) : 'not-json';
  }

  function ofLive(
    request: RequestMessage,
    json: Buffer,
    redact: (json: Buffer) => Buffer,
    client: number | null = null,
  ): RequestKey | CanonicalProblem {
    const key = keyOfLive(request, json, recording.comparable(redact(beforeMatching(json))));
    if (binder === null || typeof key === 'string' || !binder.bind(key, client)) return key;
    // Bound secrets are redacted to their numbers.
    return keyOfLive(request, json, recording.comparable(redact(beforeMatching(json))));
  }

  const ambiguous = findAmbiguous();
  const binder = recording.numbers === null ? null : createBinder(recording.numbers, eachKey);

  function* eachKey(): Generator<AskedKey> {
    for (let call = 0; call < script.size; call += 1) {
      const json = loadIfThere(recording, script.placeOf(call));
      const key = json !== null && hasPlaceholder(json) ? keyOfRecorded(json) : null;
      if (key !== null) yield { key, client: script.clientOf(call) };
    }
  }

  return {
    ofRequest: (request, json, client) => ofLive(request, json, recording.redacted, client),
    ofRequestNow(request, json) {
      const { redacted, redactedNow } = recording;
      if (
        redactedNow === redacted ||
        redactedNow(beforeMatching(json)).equals(redacted(beforeMatching(json)))
      )
        return null;
      return ofLive(request, json, redactedNow);
    },
    keyAt,
    digestOf,
    expectAgain: makeKey.expectAgain,
    expecting(keep, work) {
      [isExpecting, keepCall] = [true, keep];
      try {
        work();
      } finally {
        [isExpecting, keepCall] = [false, null];
      }
    },
    isAmbiguous: (key) => ambiguous.size > 0 && ambiguous.has(key.digest),
    watch,
  };
}

/**
 * The keys of all calls of a recording that can be read, in their order. Throws `TapedeckError` `usage` for a path that is
 * none.
 */
export function* recordedKeys(recording: Recording, paths: MatchPaths): Generator<RequestKey> {
  const keys = createRecordingKeys(recording, paths);
  for (let call = 0; call < recording.script.size; call += 1) {
    const key = keys.keyAt(recording.script.placeOf(call));
    if (key !== null) yield key;
  }
}

/** `client`: the recorded one that has asked. */
type AskedKey = { key: RequestKey; client: number };

type Placeholders = ReturnType<typeof placeholdersIn>;

type Variant = { placeholders: Placeholders; client: number };

/**
 * Binds live secrets to the numbers of a recording. Requests that are alike but for their secrets stand in the recording in
 * the order in which their secrets first came, and so they are expected: a live secret without a number gets that of the
 * first of them whose numbers agree with all that is bound so far. No two live secrets ever get one number, so a wrong key is
 * never taken for the right one that was seen before it.
 */
function createBinder(numbers: SecretNumbers, recorded: () => Iterable<AskedKey>) {
  let variants: Map<string, Variant[]> | null = null;

  function alikeTo(key: RequestKey, own: number | null): Variant[] {
    variants ??= variantsOf(recorded());
    const all = variants.get(nameWithoutSecrets(key)) ?? [];
    return own === null ? all : all.toSorted((a, b) => Number(b.client === own) - Number(a.client === own));
  }

  function pairs(live: Placeholders, variant: Placeholders): Map<string, string> | null {
    const found = new Map<string, string>();
    for (const [i, { rule, digits }] of live.entries()) {
      const number = variant[i]?.digits ?? '';
      if (rule !== variant[i]?.rule) return null;
      if (!numbers.isOpen(digits)) {
        if (digits !== number) return null;
      } else if ((found.get(digits) ?? number) !== number || numbers.isTaken(number)) return null;
      else found.set(digits, number);
    }
    return new Set(found.values()).size === found.size ? found : null;
  }

  return {
    /** Whether a secret of the request was bound. */
    bind(key: RequestKey, client: number | null): boolean {
      const live = placeholdersIn(key.params);
      if (!live.some(({ digits }) => numbers.isOpen(digits))) return false;
      for (const { placeholders } of alikeTo(key, client)) {
        const found = pairs(live, placeholders);
        if (found === null) continue;
        for (const [digits, number] of found) numbers.bind(digits, number);
        return true;
      }
      return false;
    },
  };
}

function variantsOf(keys: Iterable<AskedKey>): Map<string, Variant[]> {
  const variants = new Map<string, Variant[]>();
  for (const { key, client } of keys) {
    const name = nameWithoutSecrets(key);
    const known = variants.get(name) ?? [];
    known.push({ placeholders: placeholdersIn(key.params), client });
    variants.set(name, known);
  }
  return variants;
}

function nameWithoutSecrets({ method, params }: RequestKey): string {
  return digestOf(method, withoutDigests(params));
}

export function loadIfThere({ load }: Recording, place: Place): Buffer | null {
  try {
    return load(place);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** Longer ones are not remembered, because that keeps their bytes. */
const MAX_REMEMBERED_BYTES = 64 * 1024;

/** `params`: as they were written; none where the request had none. */
type Remembered = { method: string; params: Buffer; key: RequestKey };

/** What counts of a request. */
type Asked = Pick<RequestMessage, 'canonical' | 'params' | 'details'>;

/** Of requests that come again, and of recorded ones: at most 8 MB. Then they are collected anew. */
const MOST_SPELLINGS = 150_000;

/**
 * Remembers the key that was made last, for a live request and its recorded twin mostly have the same text; and by how it is
 * written each request that is expected to come again.
 */
function createKeyMaker(
  { session }: Recording,
  rules: IgnoreRules,
  watch: IgnoreWatch,
  matchBy: MatchFunctions['matchBy'],
) {
  let last: Remembered | null = null;
  let spellings = createSpellings();

  function of(request: Asked, json: Buffer): RequestKey | CanonicalProblem {
    const { canonical: method, params, details } = request;
    const text = textAt(json, params);
    if (isLast(method, text)) return (last as Remembered).key;
    const digest = spellings.find(method, text);
    if (digest !== null) return new SpeltKey(method, details.target, digest, () => make(request, json, text));
    watch.see({ method, target: details.target }, json, params);
    const key = make(request, json, text);
    if (typeof key !== 'string' && text.length <= MAX_REMEMBERED_BYTES) last = { method, params: text, key };
    return key;
  }

  function make(
    { canonical: method, params, details }: Asked,
    json: Buffer,
    text: Buffer,
  ): RequestKey | CanonicalProblem {
    const asked = { method, target: details.target };
    const counted = matchBy?.(asked, params === null ? null : text);
    const own =
      counted == null
        ? requestKey(asked, json, params, rules)
        : requestKey(asked, counted, { start: 0, end: counted.length, type: 'object' }, rules);
    // A server of both eras answers each in its own way.
    const hasTwin = session.era === 'dual' && details.isModern && typeof own !== 'string';
    return hasTwin ? keyFor('modern', own) : own;
  }

  function isLast(method: string, params: Buffer): boolean {
    return last !== null && last.method === method && last.params.equals(params);
  }

  return {
    of,
    /** The key of a request of this method, if it is that of the last one. */
    before(method: string, params: Buffer): RequestKey | null {
      return isLast(method, params) ? (last as Remembered).key : null;
    },
    expectAgain(key: RequestKey): void {
      if (last === null || last.key !== key) return;
      if (spellings.size() === MOST_SPELLINGS) spellings = createSpellings();
      spellings.add(last.method, last.params, key.digest);
    },
  };
}

/** The digests of keys, by the method and the params as they were written: some 50 bytes each, however long the params are. */
function createSpellings() {
  const written = createDigestTable();
  const counted = createDigestTable();
  /** By the number of what was written: that of its key. */
  const keyOf = createColumn(Uint32Array);
  return {
    add(method: string, params: Buffer, digest: string): void {
      keyOf.set(written.add(digestOf(method, params)), counted.add(digest));
    },
    /** Null for what was not added. */
    find(method: string, params: Buffer): string | null {
      if (written.size() === 0 || params.length > MAX_REMEMBERED_BYTES) return null;
      const number = written.find(digestOf(method, params));
      return number < 0 ? null : counted.at(keyOf.at(number));
    },
    size: written.size,
  };
}

/** A key whose digest is known. What counts of its params is put together only where somebody asks for it. */
class SpeltKey implements RequestKey {
  readonly method: string;
  readonly target: string | null;
  readonly digest: string;
  readonly #make: () => RequestKey | CanonicalProblem;
  #params: Buffer | null = null;

  constructor(
    method: string,
    target: string | null,
    digest: string,
    make: () => RequestKey | CanonicalProblem,
  ) {
    this.method = method;
    this.target = target;
    this.digest = digest;
    this.#make = make;
  }

  get params(): Buffer {
    if (this.#params !== null) return this.#params;
    const made = this.#make();
    this.#params = typeof made === 'string' ? NO_PARAMS : made.params;
    return this.#params;
  }
}

const NO_TEXT = Buffer.alloc(0);

function textAt(json: Buffer, params: Span | null): Buffer {
  return params === null ? NO_TEXT : json.subarray(params.start, params.end);
}
