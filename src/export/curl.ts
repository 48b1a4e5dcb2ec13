/** The HTTP requests of a session as a shell script of curl commands. Nothing recorded is anything but an argument. */

import { isUtf8 } from 'node:buffer';
import { TapedeckError } from '../errors.ts';
import type { HeaderFields } from '../protocol/http/headers.ts';
import { messagesOf } from '../protocol/message/conversation.ts';
import { messageLabel } from '../protocol/message/label.ts';
import { escapeText, shellQuoted } from '../protocol/text.ts';
import type { Store } from '../store/file/open.ts';
import type { BareFrame } from '../store/read/frames.ts';
import { eachHttpExchange, type HttpExchangeRow, prepareBodies } from '../store/read/http.ts';
import type { SessionRow } from '../store/read/sessions.ts';
import type { WriteOptions } from './format.ts';
import { upstreamUrl } from './parts.ts';

/** curl sets these itself. */
const OWN = new Set([
  'host',
  'content-length',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'accept-encoding',
  'expect',
]);

/** A placeholder of a redacted value. */
const REDACTED = /\[redacted:|masked-[0-9a-f]{8}/;

export function* writeCurl(
  store: Store,
  session: SessionRow,
  { only, onFrame }: WriteOptions,
): Generator<string> {
  if (session.transport === 'stdio')
    throw new TapedeckError(
      'refused',
      'curl speaks HTTP, and this session came over stdio. Take --format ndjson, and replay it.',
    );
  const bodiesOf = prepareBodies(store, session.number, only);
  yield '#!/bin/sh\n';
  for (const httpExchange of eachHttpExchange(store, session.number)) {
    const bodies = bodiesOf(httpExchange.number);
    if (bodies === undefined) continue;
    yield* commandLines(session, httpExchange, bodies.request);
    onFrame(httpExchange.number);
  }
}

function* commandLines(
  session: SessionRow,
  httpExchange: HttpExchangeRow,
  body: readonly BareFrame[],
): Generator<string> {
  const { number, method, path, status, requestHeaders } = httpExchange;
  const said = body.flatMap((frame) =>
    messagesOf(frame).map((message, n) => messageLabel(message, frame.payload, n, null)),
  );
  yield `\n# ${escapeText([`exchange ${number}`, ...said, `status ${status ?? 'none'}`].join(', '))}\n`;
  const redacted = requestHeaders.filter(([, value]) => REDACTED.test(value)).map(([name]) => name);
  if (redacted.length > 0)
    yield `# Redacted in the recording, to be filled in: ${escapeText(redacted.join(', '))}\n`;
  const bytes = Buffer.concat(body.map(({ payload }) => payload));
  // curl would take a word that begins with `@` for the name of a file.
  const isPlain = isUtf8(bytes) && bytes[0] !== 0x40 && !UNPRINTABLE.test(bytes.toString('utf8'));
  if (!isPlain) yield `printf %s ${shellQuoted(bytes.toString('base64'))} | base64 -d | `;
  const words = [
    `curl --silent --show-error --no-buffer --globoff --request ${shellQuoted(method)}`,
    ...requestHeaders
      .filter(isSent)
      .map(([name, value]) => `--header ${shellQuoted(`${name}: ${escapeText(value)}`)}`),
    ...(bytes.length === 0 ? [] : [`--data-binary ${isPlain ? shellQuoted(bytes.toString('utf8')) : '@-'}`]),
    shellQuoted(upstreamUrl(session.target, path).href),
  ];
  yield `${words.join(' \\\n  ')}\n`;
}

/** Kept out of a script that a terminal may show. A line end and a tab are harmless. */
const UNPRINTABLE = /[^\P{C}\n\t]/u;

function isSent([name]: HeaderFields[number]): boolean {
  return !OWN.has(name.toLowerCase());
}
