/**
 * A session as one file: the page of the viewer, with the answers of its API and the text recording in blocks. A browser opens it
 * from the disk, without a server; it asks for nothing, and its policy lets it do nothing but show itself.
 */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TapedeckError } from '../../errors.ts';
import type { WriteOptions } from '../../export/format.ts';
import { readNdjson } from '../../export/text/read.ts';
import { REPORT_HEAD, recordingBlocks, reportBlock } from '../../export/text/report.ts';
import { writeNdjson } from '../../export/text/write.ts';
import { formatSize } from '../../inspect/view/text.ts';
import { openTemporaryStore, type Store } from '../../store/file/open.ts';
import { findSession, type SessionRow, sessionDetails } from '../../store/read/sessions.ts';
import { VERSION } from '../../version.ts';
import type { About, ReportIndex } from '../api.ts';
import type { Work } from '../work.ts';
import { eachAnswer } from './answers.ts';

export type ReportOptions = Pick<WriteOptions, 'onFrame' | 'only'> & {
  /** The filter as it was written; null: the session is whole. */
  filter: string | null;
  /** Answers what is against the rules of the protocol: a slow work, of which this room knows none. */
  check: Work;
  /** A larger one is refused. */
  mostBytes?: number;
};

/** A larger one a browser opens slowly, and nobody wants it in a bug report. */
const MOST_REPORT_BYTES = 50_000_000;

/** Beside the program, as it was built. */
const PAGE = fileURLToPath(new URL('./report', import.meta.url));

/** The file in pieces; up to `mostBytes` before the first is there. Throws `TapedeckError` `refused` where it becomes larger. */
export async function* makeReport(
  store: Store,
  session: SessionRow,
  options: ReportOptions,
): AsyncGenerator<string> {
  const { only, mostBytes = MOST_REPORT_BYTES } = options;
  if (only === undefined) {
    yield* within(assemble(store, session, options), session, mostBytes);
    return;
  }
  const own = openTemporaryStore();
  try {
    const selected = await copySelection(store, session, own, options);
    yield* within(assemble(own, selected, options), session, mostBytes);
  } finally {
    own.close();
  }
}

/** Nothing is written of what is refused. A report of any size is never held. */
async function* within(
  pieces: AsyncIterable<string>,
  session: SessionRow,
  mostBytes: number,
): AsyncGenerator<string> {
  if (mostBytes === Number.POSITIVE_INFINITY) {
    yield* pieces;
    return;
  }
  const held: string[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    held.push(piece);
    bytes += piece.length;
    if (bytes > mostBytes) throw tooLarge(session, mostBytes);
  }
  yield* held;
}

/** What the handshake told, which may not be among the frames. */
const AS_IN_THE_WHOLE = `UPDATE session SET id = @id, imported_at = NULL, era = @era, protocol_version = @protocolVersion,
  client_name = @clientName, client_version = @clientVersion, server_name = @serverName, server_version = @serverVersion
  WHERE id = @made`;

/** The frames that a filter selects, as a session of their own, of the same id: so that everything is told of them alone. */
async function copySelection(
  store: Store,
  session: SessionRow,
  own: Store,
  { only }: ReportOptions,
): Promise<SessionRow> {
  const { host, pid, processStarted, id } = session;
  const pieces = writeNdjson(store, session, { onFrame() {}, only });
  const made = await readNdjson(own, buffersOf(pieces), {
    file: `session ${id}`,
    name: null,
    importer: { host, pid, processStarted, tapedeck: sessionDetails(store, session.number).tapedeck },
    redaction: null,
    onFrame() {},
    signal: new AbortController().signal,
  });
  own.prepare(AS_IN_THE_WHOLE).run({ ...session, made });
  return findSession(own, id);
}

async function* buffersOf(pieces: Iterable<string>): AsyncGenerator<Buffer> {
  for (const piece of pieces) yield Buffer.from(piece);
}

async function* assemble(
  store: Store,
  session: SessionRow,
  { filter, onFrame, check }: ReportOptions,
): AsyncGenerator<string> {
  const page = readPage(PAGE);
  yield headOf(session, page);
  const index: ReportIndex = {
    ...{ about: aboutOf(store, session, filter), session: 0, check: 0, findings: [] },
    ...{ outline: [], frames: [], http: [], bytes: [], originals: [] },
  };
  let blocks = 0;
  let made: string[] = [];
  const addBlock = (content: string | Uint8Array): number => {
    blocks += 1;
    made.push(reportBlock(`block-${blocks}`, typeof content === 'string' ? Buffer.from(content) : content));
    return blocks;
  };
  for await (const _ of eachAnswer(store, session, { index, addBlock, onFrame, check })) {
    yield* made;
    made = [];
  }
  yield* made;
  yield* recordingBlocks(writeNdjson(store, session, { onFrame() {} }));
  // It is read page by page, and may be removed meanwhile.
  findSession(store, session.id);
  // It names all the others.
  yield reportBlock('block-0', Buffer.from(JSON.stringify(index)));
  yield footOf(page);
}

function tooLarge({ id }: SessionRow, mostBytes: number): TapedeckError {
  return new TapedeckError(
    'refused',
    `Expected a report of at most ${formatSize(mostBytes)}, but session ${id} becomes a larger one. Choose what matters with --filter (such as --filter 'status~error'), or write all of it with --force.`,
  );
}

function aboutOf(store: Store, session: SessionRow, filter: string | null): About {
  const { redaction } = sessionDetails(store, session.number);
  const none = { search: false, live: false, stats: false, compare: false, runs: false, export: false };
  return {
    version: VERSION,
    // Who reads it has installed nothing.
    typed: 'npx mcp-tapedeck',
    store: '',
    sessions: 1,
    can: none,
    report: {
      madeAt: new Date().toISOString(),
      session: session.id,
      redacted: redaction !== null,
      filter,
      version: VERSION,
    },
  };
}

type Page = { script: string; style: string };

/** Throws `TapedeckError` `io` where the page was not built, or is not what can stand inside a document. */
function readPage(folder: string): Page {
  try {
    const page = {
      script: readFileSync(join(folder, 'report.js'), 'utf8').trim(),
      style: readFileSync(join(folder, 'report.css'), 'utf8').trim(),
    };
    if (!/<\/(?:script|style)|<!--/i.test(page.script + page.style)) return page;
  } catch {
    // It is said below.
  }
  throw new TapedeckError(
    'io',
    `Expected the page of the report in ${folder}, got none that can be used. Install mcp-tapedeck anew, or build it: npm run build`,
  );
}

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** No request leaves, nothing but the page's own script runs, and no text becomes HTML. */
function policyOf({ script, style }: Page): string {
  return [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    'img-src blob:',
    'media-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

function headOf({ name, id }: SessionRow, page: Page): string {
  return [
    `${REPORT_HEAD}<head>`,
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policyOf(page)}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    '<meta name="referrer" content="no-referrer">',
    `<title>${escapeHtml(name ?? id)} · tapedeck report</title>`,
    `<style>${page.style}</style>`,
    '</head><body><div id="app"></div>',
    '<noscript>This page needs JavaScript. `npx mcp-tapedeck import` makes a recording of it again.</noscript>',
    '',
  ].join('\n');
}

/** Behind all blocks, so that they are there when it runs. */
function footOf({ script }: Page): string {
  return `<script type="module">${script}</script>\n</body></html>\n`;
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
