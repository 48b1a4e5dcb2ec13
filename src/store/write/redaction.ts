/** Redaction on the way into the store: of frames, of the heads of HTTP exchanges, and of what a session's row says. */

import { memoize } from '../../protocol/bounded.ts';
import type { HttpExchange } from '../../protocol/http/exchange.ts';
import { redactArgv } from '../../protocol/redact/argv.ts';
import { type RedactionProfile, withMetaFor } from '../../protocol/redact/profile.ts';
import {
  createMetaRedactor,
  createRedactor,
  type RedactedPayload,
  type Redactor,
} from '../../protocol/redact/redactor.ts';
import { commandLine } from '../../protocol/text.ts';
import type { Frame, StdioChannel } from '../../protocol/wire/frame.ts';
import type { SessionRedaction, SessionStart } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { createDigest, keyFingerprint } from '../file/secret.ts';

class NoKey extends Error {
  override name = 'NoKey';
}

export type StoreRedactor = {
  redactor: Redactor;
  /** For frames whose payloads are not kept, where others are. */
  meta: Redactor;
  /** For what the session's row says: what people called it, and the command, are no payloads. */
  row: Redactor;
  open(store: Store): void;
};

/** Makes a redactor that can be asked for signs at once, and for placeholders once it has been given a store. */
export function createStoreRedactor(profile: RedactionProfile): StoreRedactor {
  let digest = (_secret: string): string => {
    throw new NoKey('there is no store yet, and so no key for placeholders');
  };
  const row = createRedactor(profile, (secret) => digest(secret));
  const meta = createMetaRedactor((secret) => digest(secret));
  return {
    redactor: profile.capture === 'meta' ? meta : row,
    meta,
    row,
    open(store) {
      digest = createDigest(store);
    },
  };
}

export function redactionColumn(store: Store, profile: RedactionProfile | null): string | null {
  return profile === null ? null : redactionColumnOf(keyFingerprint(store) ?? '', profile);
}

export function redactionColumnOf(key: string, profile: RedactionProfile): string {
  const { without, rules, paths, metaFor = [] } = profile;
  const capture = profile.capture === undefined ? {} : { capture: profile.capture };
  const column = {
    key,
    without,
    rules,
    paths,
    ...capture,
    ...withMetaFor(metaFor),
  } satisfies SessionRedaction;
  return JSON.stringify(column);
}

export function redactStart<T extends Pick<SessionStart, 'name' | 'labels' | 'target' | 'command' | 'cwd'>>(
  start: T,
  redactor: Redactor,
): T {
  const { name, labels, target, command, cwd } = start;
  const argv = command && redactArgv(command, redactor);
  return {
    ...start,
    name: name && redactor.text(name),
    labels: labels.map(([key, value]) => [key, redactor.text(value)] as const),
    target: argv === null ? redactor.url(target) : commandLine(argv),
    command: argv,
    cwd: cwd && redactor.text(cwd),
  };
}

const EMPTY = Buffer.alloc(0);

/** An RSA key of 16,384 bits has about 200. */
const MAX_KEY_LINES = 256;

const MAX_KEY_LINE = 1024;

const KEY_BEGIN = /-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----(?!.*-----END )/;

const KEY_END = /-----END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY/;

const BASE64_AT_END = /(?<![A-Za-z0-9+/])[A-Za-z0-9+/]+={0,2}\s*$/;

const OPEN_BRACE = 0x7b;

/** Base64 or a header of the key, at the end of a line that a logger may have put something before. */
const KEY_LINE =
  /^\s*$|[A-Za-z0-9+/=]{16,}\s*$|^(?:\S+\s+)?[A-Za-z0-9+/=]{4,}\s*$|(?:Proc-Type|DEK-Info|Version|Comment): |-----END /;

/** By channel, how many more lines of a private key there may be. */
export type KeyLines = Map<string, number>;

/** Lines of stdio, in their order: a private key may take many of them. `keyLines` is the state between two lines. */
function createLineRedactor(redactor: Redactor, keyLines: KeyLines = new Map()): (frame: Frame) => Frame {
  function goOnInKey(frame: Frame, left: number): Frame {
    const text = frame.payload.toString('latin1');
    const isLast = KEY_END.test(text) || /-----\s*$/.test(decodedEnd(text));
    keyLines.set(frame.channel, isLast ? 0 : left - 1);
    const payload = Buffer.from(redactor.placeholder('private-key', text));
    return { ...frame, payload, redacted: ['private-key'] };
  }

  return orWithoutBytes((frame) => {
    const left = keyLines.get(frame.channel as StdioChannel) ?? 0;
    if (left > 0 && frame.payload.length > 0 && isKeyLine(frame.payload)) return goOnInKey(frame, left);
    if (left > 0 && frame.payload.length > 0) keyLines.set(frame.channel, 0);
    const found = redactor.payload(frame.payload, false, frame.truncated || frame.lineEnd === '');
    if (found === null) return frame;
    const opensKey = found.rules.includes('private-key') && frame.payload[0] !== OPEN_BRACE;
    if (opensKey && isOpenKey(frame.payload.toString('latin1'))) keyLines.set(frame.channel, MAX_KEY_LINES);
    return withRedacted(frame, found);
  });
}

/** Whether a key begins in a line and does not end in it, be it in base64. */
function isOpenKey(line: string): boolean {
  return KEY_BEGIN.test(line) || KEY_BEGIN.test(decodedEnd(line).replaceAll('\n', ' '));
}

/** What the base64 at the end of a line means. */
function decodedEnd(line: string): string {
  const [base64 = ''] = BASE64_AT_END.exec(line.slice(-MAX_KEY_LINE)) ?? [];
  return Buffer.from(base64, 'base64').toString('latin1');
}

/** A message is no line of a key, and neither is prose. */
function isKeyLine(payload: Buffer): boolean {
  return payload[0] !== OPEN_BRACE && KEY_LINE.test(payload.toString('latin1', 0, MAX_KEY_LINE));
}

/** A fault in redaction costs the frame that it happened at, which is then not stored in the clear. */
function orWithoutBytes(redact: (frame: Frame) => Frame): (frame: Frame) => Frame {
  return (frame) => {
    try {
      return redact(frame);
    } catch (error) {
      if (error instanceof NoKey) throw error;
      const http = frame.http && { ...frame.http, sha256: null, original: null };
      return { ...frame, payload: EMPTY, truncated: true, http, redacted: ['fault'] };
    }
  };
}

/** Redacts frames of stdio, in their order, and of HTTP. `keyLines` is the state between two lines. */
export function createFrameRedactor(redactor: Redactor, keyLines?: KeyLines): (frame: Frame) => Frame {
  const redactLine = createLineRedactor(redactor, keyLines);
  const redact = (frame: Frame) =>
    frame.http === null ? redactLine(frame) : redactHttpFrame(frame, redactor);
  return (frame) => (frame.fault?.original == null ? redact(frame) : redactBoth(frame, redact));
}

/** What went on, and what was said in its place. */
function redactBoth(frame: Frame, redact: (frame: Frame) => Frame): Frame {
  const { fault } = frame;
  if (fault === undefined || fault.original === null) return redact(frame);
  const said = redact({ ...frame, payload: fault.original, size: fault.original.length });
  const passed = redact(frame);
  const rules = [...new Set([...(said.redacted ?? []), ...(passed.redacted ?? [])])];
  if (rules.length === 0) return frame;
  return { ...passed, fault: { ...fault, original: said.payload }, redacted: rules };
}

/** A body or an event. */
function redactHttpFrame(frame: Frame, redactor: Redactor): Frame {
  return orWithoutBytes((one) => redactBodyOrEvent(one, redactor))(frame);
}

function redactBodyOrEvent(frame: Frame, redactor: Redactor): Frame {
  const { payload, http, part, channel, truncated } = frame;
  if (http === null) return frame;
  const isCut = truncated || http.marks.includes('incomplete');
  const redact = (bytes: Buffer): RedactedPayload | null => {
    if (channel === 'sse') return redactor.event(bytes, isCut);
    return redactor.payload(bytes, part === 'foreign-body', isCut);
  };
  if (http.marks.includes('undecoded') && redactor.isOn('undecoded')) return withoutBytes(frame, http);
  const original = http.original && redact(http.original);
  const found = redact(payload);
  // Nearly all.
  if (found === null && original === null && http.sha256 === null) return frame;
  // A hash of what was cut off, and never searched, could be tried with guesses.
  const bare = { ...frame, http: { ...http, sha256: null, original: original?.payload ?? http.original } };
  const rules = [...new Set([...(found?.rules ?? []), ...(original?.rules ?? [])])];
  if (rules.length === 0) return bare;
  return { ...bare, payload: found?.payload ?? payload, redacted: rules };
}

/** Nobody could look into them. */
function withoutBytes(frame: Frame, http: NonNullable<Frame['http']>): Frame {
  const bare = { ...http, sha256: null, original: null };
  return { ...frame, payload: EMPTY, truncated: true, http: bare, redacted: ['undecoded'] };
}

function withRedacted(frame: Frame, { payload, rules }: RedactedPayload): Frame {
  return { ...frame, payload, redacted: rules };
}

/** What of an HTTP exchange may hold a secret, besides its bodies. Headers as name, value, name, value… */
export type HttpHeads = Pick<
  HttpExchange,
  | 'path'
  | 'requestHeaders'
  | 'requestTrailers'
  | 'informations'
  | 'statusText'
  | 'responseHeaders'
  | 'responseTrailers'
  | 'error'
  | 'edits'
>;

/** The heads as they stand in the row of their exchange: lists of headers as JSON, [[name, value], …] in order. */
export type HeadColumns = Record<keyof HttpHeads, string | null> & { path: string; requestHeaders: string };

/** `redactor` null: the heads are stored as they are. Lists of headers, and of edits, that are the same object are redacted once. */
export function createHeadRedactor(redactor: Redactor | null): (heads: HttpHeads) => HeadColumns {
  const known = new WeakMap<readonly string[], string>();
  const knownEdits = new WeakMap<HttpHeads['edits'], string>();
  const pathOf = memoize((path) => redactor?.url(path) ?? path);

  const text = (value: string | null) => value && (redactor?.text(value) ?? value);
  const header = (name: string, value: string) => redactor?.header(name, value) ?? value;

  function headersJson(headers: readonly string[]): string {
    const before = known.get(headers);
    if (before !== undefined) return before;
    const fields: [name: string, value: string][] = [];
    for (let i = 0; i + 1 < headers.length; i += 2) {
      const name = headers[i] as string;
      fields.push([name, header(name, headers[i + 1] as string)]);
    }
    const json = JSON.stringify(fields);
    known.set(headers, json);
    return json;
  }

  const trailersJson = (trailers: readonly string[]) =>
    trailers.length === 0 ? null : headersJson(trailers);

  function informationsJson(informations: HttpHeads['informations']): string | null {
    if (informations.length === 0) return null;
    const redacted = informations.map((one) => ({ ...one, headers: JSON.parse(headersJson(one.headers)) }));
    return JSON.stringify(redacted);
  }

  function editsJson(edits: HttpHeads['edits']): string | null {
    if (edits.length === 0) return null;
    const before = knownEdits.get(edits);
    if (before !== undefined) return before;
    const json = JSON.stringify(
      edits.map((edit) => ({ ...edit, original: header(edit.header, edit.original) })),
    );
    knownEdits.set(edits, json);
    return json;
  }

  return (heads) => ({
    path: pathOf(heads.path),
    requestHeaders: headersJson(heads.requestHeaders),
    requestTrailers: trailersJson(heads.requestTrailers),
    responseHeaders: heads.responseHeaders && headersJson(heads.responseHeaders),
    responseTrailers: trailersJson(heads.responseTrailers),
    informations: informationsJson(heads.informations),
    edits: editsJson(heads.edits),
    statusText: text(heads.statusText),
    error: text(heads.error),
  });
}
