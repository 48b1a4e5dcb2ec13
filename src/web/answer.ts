/** How the viewer answers: the headers of every answer, answers that come in pieces, and errors. */

import type { ServerResponse } from 'node:http';
import type { ApiError } from './api.ts';
import type { Sink } from './readers.ts';
import type { Form, Head, RequestFailure } from './work.ts';

/** The page runs its own scripts alone, sends to its own server alone, and no other page can show or read it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  'media-src blob:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

export const SECURITY_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['Content-Security-Policy', CONTENT_SECURITY_POLICY],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Cache-Control', 'no-store'],
];

const TYPES: Record<Form, string> = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  bytes: 'application/octet-stream',
};

/** Answers in words. Where the answer has begun, its last line says so; what has no lines is cut off. */
export function fail(response: ServerResponse, { status, code, message, at }: RequestFailure): void {
  const error: ApiError = { error: { code, message, ...(at === undefined ? {} : { at }) } };
  const text = `${JSON.stringify(error)}\n`;
  if (!response.headersSent) {
    for (const name of ['ETag', 'Content-Disposition', 'Accept-Ranges']) response.removeHeader(name);
    const head = {
      'Content-Type': TYPES.json,
      'Content-Length': Buffer.byteLength(text),
      'Cache-Control': 'no-store',
    };
    response.writeHead(status, head);
    response.end(response.req.method === 'HEAD' ? undefined : text);
  } else if (response.getHeader('Content-Type') === TYPES.ndjson) response.end(text);
  else response.destroy();
}

/** Answers with what comes. `ask` begins, and returns what to call when the client has left. */
export function answerWith(
  response: ServerResponse,
  { form, isHead }: { form: Form; isHead: boolean },
  ask: (sink: Sink) => () => void,
): void {
  let head: Head = { status: 200, headers: {} };
  let isOver = false;

  function begin(length: number | null): void {
    if (response.headersSent) return;
    const hasNone = head.status === 304;
    const own = hasNone ? {} : { 'Content-Type': TYPES[form] };
    const framed = length === null || hasNone ? {} : { 'Content-Length': String(length) };
    for (const [name, value] of Object.entries({ ...own, ...framed, ...head.headers }))
      response.setHeader(name, value);
    response.writeHead(head.status);
  }

  function over(): void {
    isOver = true;
  }

  const leave = ask({
    head(given) {
      head = given;
    },
    piece(bytes, isLast, onGone) {
      if (isOver) return;
      begin(isLast ? bytes.byteLength : null);
      if (isLast || isHead) {
        over();
        response.end(isHead || head.status === 304 ? undefined : bytes);
        if (!isLast) leave();
      } else response.write(bytes, onGone);
    },
    fail(failure) {
      if (isOver) return;
      over();
      fail(response, failure);
    },
  });
  response.on('close', () => {
    if (isOver) return;
    over();
    leave();
  });
}
