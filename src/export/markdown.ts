/** A session as a report in Markdown: what it was, each exchange in a row, and what failed, whole. */

import { escapeText, formatIsoTime } from '../protocol/text.ts';
import type { Store } from '../store/file/open.ts';
import { type ExchangeRow, eachExchange } from '../store/read/exchanges.ts';
import { type MetaOnly, metaOnlyOf, metaOnlyText } from '../store/read/meta-only.ts';
import { type SessionRow, stateOf } from '../store/read/sessions.ts';
import type { WriteOptions } from './format.ts';
import { type BodyOf, isOf, prepareBody } from './parts.ts';

/** Of a longer body the report has the beginning. */
const MAX_BODY_CHARS = 4000;

/** Of a longer name, too: it stands in a table. */
const MAX_NAME_CHARS = 200;

/** The whole of so many failures is shown; the table has all. */
const MAX_FAILURES = 100;

export function* writeMarkdown(
  store: Store,
  session: SessionRow,
  { only, onFrame }: WriteOptions,
): Generator<string> {
  yield* factLines(session, metaOnlyOf(store, session));
  yield '\n## Exchanges\n\n| # | asked by | request | outcome | ms |\n|--:|---|---|---|--:|\n';
  const failures: ExchangeRow[] = [];
  let failed = 0;
  let count = 0;
  for (const exchange of eachExchange(store, session, only)) {
    yield rowLine(exchange);
    count += 1;
    onFrame(count);
    if (exchange.outcome === 'ok' || exchange.outcome === 'input-required') continue;
    failed += 1;
    if (failures.length < MAX_FAILURES) failures.push(exchange);
  }
  if (count === 0) yield '\nNone.\n';
  if (failed === 0) return;
  yield '\n## What did not go well\n';
  const bodyOf = prepareBody(store, session.number);
  for (const exchange of failures) yield* failureLines(exchange, bodyOf);
  if (failed > failures.length) yield `\nAnd ${failed - failures.length} more, which the table has.\n`;
}

function* factLines(session: SessionRow, metaOnly: MetaOnly | null): Generator<string> {
  const { id, name, target, startedAt, endedAt, protocolVersion, frames, exchanges, errors, unanswered } =
    session;
  const facts: [title: string, text: string][] = [
    ['session', id],
    ['server', who(session.serverName, session.serverVersion)],
    ['client', who(session.clientName, session.clientVersion)],
    ['protocol', protocolVersion ?? 'unknown'],
    [session.transport === 'stdio' ? 'command' : 'url', target],
    ['started', formatIsoTime(startedAt)],
    ['ended', endedAt === null ? stateOf(session) : `${formatIsoTime(endedAt)}, ${stateOf(session)}`],
    ['recorded', `${frames} frames, ${exchanges} exchanges, ${errors} errors, ${unanswered} unanswered`],
  ];
  if (metaOnly !== null) facts.push(['payloads', metaOnlyText(metaOnly)]);
  if (session.dropped > 0) facts.push(['lost', `${session.dropped} frames`]);
  yield `# ${cell(name ?? `Session ${id}`)}\n\n| | |\n|---|---|\n`;
  for (const [title, text] of facts) yield `| ${title} | ${cell(text)} |\n`;
}

function who(name: string | null, version: string | null): string {
  return name === null ? 'unknown' : [name, version].filter((word) => word !== null).join(' ');
}

function rowLine(exchange: ExchangeRow): string {
  const { requestSeq, askedBy, outcome, errorCode, latency } = exchange;
  const call = cell(callText(exchange));
  const ms = latency === null ? '' : (latency / 1000).toFixed(1);
  return `| ${requestSeq} | ${askedBy} | ${call} | ${outcome}${errorCode === null ? '' : ` ${errorCode}`} | ${ms} |\n`;
}

function* failureLines(exchange: ExchangeRow, bodyOf: BodyOf): Generator<string> {
  const { requestSeq, answerSeq, id, outcome } = exchange;
  yield `\n### ${cell(`#${requestSeq} ${callText(exchange)}: ${outcome}`)}\n`;
  yield `\nAsked:\n\n${fenced(bodyText(bodyOf(requestSeq, isOf(id, 'request'))), 'json')}`;
  if (answerSeq === null) return;
  yield `\nAnswered:\n\n${fenced(bodyText(bodyOf(answerSeq, isOf(id, 'result', 'error'))), 'json')}`;
}

function callText({ method, target }: ExchangeRow): string {
  const text = target === null ? method : `${method} ${target}`;
  return text.length > MAX_NAME_CHARS ? `${text.slice(0, MAX_NAME_CHARS)}…` : text;
}

/** The params, result or error, spread over lines where it is JSON. */
function bodyText(body: Buffer | null): string {
  const text = spread(body?.toString() ?? '');
  return text.length > MAX_BODY_CHARS
    ? `${text.slice(0, MAX_BODY_CHARS)}\n… ${text.length} characters in all`
    : text;
}

/** Numbers that JSON.parse would change stay as they are written. */
function spread(json: string): string {
  if (json.length > MAX_BODY_CHARS) return json;
  try {
    const value: unknown = JSON.parse(json);
    return JSON.stringify(value) === json ? JSON.stringify(value, null, 2) : json;
  } catch {
    return json;
  }
}

/** Recorded text within Markdown: none of it is markup. */

/** Text of a table's cell or a heading. */
function cell(text: string): string {
  return escapeText(text).replace(/[\\`*_[\]<>|#~&!]/g, '\\$&');
}

/** A block of code, whose fence is longer than any in the text. */
function fenced(text: string, language: string): string {
  const lines = text.split('\n').map(escapeText).join('\n');
  const longest = Math.max(0, ...[...lines.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(Math.max(3, longest + 1));
  return `${fence}${language}\n${lines}\n${fence}\n`;
}
