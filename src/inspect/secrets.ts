/** Secrets in what is recorded: where each stands and which rule finds it, never the secret itself. */

import type { HeaderFields } from '../protocol/http/headers.ts';
import { pointerAt } from '../protocol/json/read.ts';
import { redactArgv } from '../protocol/redact/argv.ts';
import type { Redaction } from '../protocol/redact/edits.ts';
import type { Redactor } from '../protocol/redact/redactor.ts';
import { readSse } from '../protocol/wire/sse.ts';
import type { Store } from '../store/file/open.ts';
import { type BareFrame, eachBareFrame } from '../store/read/frames.ts';
import { eachHttpExchange, type HttpExchangeRow, originalOf } from '../store/read/http.ts';
import { type SessionRow, sessionDetails } from '../store/read/sessions.ts';

/** `place`: a JSON Pointer, or in words; `''` for all of it. */
export type SecretFinding = { where: Where; place: string; rule: string };

type Where =
  | { session: string; seq: number; channel: string }
  | { session: string; http: number }
  | { session: string }
  | { file: string; line: number };

/** What is wrong with a head has no rule of its own there. */
const HEADER = 'http-header';

const URL_RULE = 'url-secret';

const VALUE = 'secret-value';

export function* sessionFindings(
  store: Store,
  session: SessionRow,
  redactor: Redactor,
): Generator<SecretFinding> {
  const { id, number } = session;
  const { labels, command } = sessionDetails(store, number);
  const own = { session: id };
  if (command !== null) yield* argvFindings(own, 'command', command, redactor);
  else if (redactor.url(session.target) !== session.target)
    yield { where: own, place: 'target', rule: URL_RULE };
  for (const [key, value] of labels) {
    if (redactor.text(value) !== value) yield { where: own, place: `label ${key}`, rule: VALUE };
  }
  for (const httpExchange of eachHttpExchange(store, number)) yield* headFindings(id, httpExchange, redactor);
  for (const frame of eachBareFrame(store, number)) {
    const where = { session: id, seq: frame.seq, channel: frame.channel };
    yield* frameFindings(where, frame, frame.payload, redactor);
    const original = frame.isEdited ? originalOf(store, number, frame.seq) : null;
    if (original !== null) yield* frameFindings(where, frame, original, redactor);
  }
}

function* frameFindings(
  where: Where,
  frame: BareFrame,
  bytes: Buffer,
  redactor: Redactor,
): Generator<SecretFinding> {
  const { channel, part, truncated, lineEnd, http } = frame;
  const isCut = truncated || (http === null ? lineEnd === '' : http.marks.includes('incomplete'));
  const edits =
    channel === 'sse'
      ? redactor.eventEdits(bytes, isCut)
      : redactor.payloadEdits(bytes, part === 'foreign-body', isCut);
  yield* placed(where, channel === 'sse' ? (readSse(bytes).data ?? bytes) : bytes, bytes, edits);
}

/** `json` is a view of the bytes, or a copy: then nothing is said of where in it. */
function* placed(
  where: Where,
  json: Buffer,
  bytes: Buffer,
  edits: readonly Redaction[],
): Generator<SecretFinding> {
  const isView = json.buffer === bytes.buffer;
  const offset = json.byteOffset - bytes.byteOffset;
  for (const { start, rule } of edits) {
    const place = isView && start >= offset ? pointerAt(json, start - offset) : '';
    yield { where, place, rule };
  }
}

function* argvFindings(
  where: Where,
  name: string,
  argv: readonly string[],
  redactor: Redactor,
): Generator<SecretFinding> {
  const redacted = redactArgv(argv, redactor);
  for (const [i, word] of argv.entries()) {
    if (redacted[i] !== word) yield { where, place: `${name}/${i}`, rule: VALUE };
  }
}

function* headFindings(
  id: string,
  httpExchange: HttpExchangeRow,
  redactor: Redactor,
): Generator<SecretFinding> {
  const where = { session: id, http: httpExchange.number };
  const { path, requestHeaders, requestTrailers, responseHeaders, responseTrailers, informations, edits } =
    httpExchange;
  if (redactor.url(path) !== path) yield { where, place: 'path', rule: URL_RULE };
  yield* fieldFindings(where, 'request', [...requestHeaders, ...requestTrailers], redactor);
  yield* fieldFindings(where, 'response', [...(responseHeaders ?? []), ...responseTrailers], redactor);
  for (const { headers } of informations) yield* fieldFindings(where, 'information', headers, redactor);
  const originals = edits.map(({ header, original }): [string, string] => [header, original]);
  yield* fieldFindings(where, 'edited', originals, redactor);
}

function* fieldFindings(
  where: Where,
  head: string,
  fields: HeaderFields,
  redactor: Redactor,
): Generator<SecretFinding> {
  for (const [name, value] of fields) {
    if (redactor.header(name, value) !== value)
      yield { where, place: `${head} header ${name}`, rule: HEADER };
  }
}

/** A line of a text recording, or of any text. */
export function* lineFindings(
  file: string,
  line: number,
  bytes: Buffer,
  redactor: Redactor,
): Generator<SecretFinding> {
  const where = { file, line };
  const isForeign = bytes.includes('"part":"foreign-body"');
  yield* placed(where, bytes, bytes, redactor.payloadEdits(bytes, isForeign, false));
  if (!bytes.includes('"headers"') && !bytes.includes('"tapedeck"')) return;
  try {
    yield* headLineFindings(where, JSON.parse(bytes.toString()), redactor);
  } catch {
    // No line of a recording: it has been searched as a text.
  }
}

type HeadLine = Partial<
  Record<'request' | 'response' | 'information', { headers?: HeaderFields; path?: string }>
> & {
  session?: { command?: string[] };
};

function* headLineFindings(where: Where, line: HeadLine, redactor: Redactor): Generator<SecretFinding> {
  const { command } = line.session ?? {};
  if (command !== undefined) yield* argvFindings(where, '/session/command', command, redactor);
  for (const head of ['request', 'response', 'information'] as const) {
    const { headers = [], path = '' } = line[head] ?? {};
    if (redactor.url(path) !== path) yield { where, place: `/${head}/path`, rule: URL_RULE };
    yield* fieldFindings(where, head, headers, redactor);
  }
}
