/** Recordings of other tools, written by hand after what their recorders write, and what of them is stored. */
import { readFileSync } from 'node:fs';
import { READERS, recognise } from '../../src/export/foreign/readers.ts';
import { openStore, type Store } from '../../src/store/file/open.ts';
import { fixture, tempStore } from './tapedeck.ts';
import { IMPORTER } from './text-recording.ts';

export const OTHER_TOOLS = [
  'cassette-stdio.jsonl',
  'cassette-http.jsonl',
  'mcpsnoop.jsonl',
  'mcporter.ndjson',
  'agent-vcr-python.vcr',
  'agent-vcr-typescript.vcr',
];

export function otherTool(name: string): string {
  return fixture(`other-tools/${name}`);
}

export function textOf(name: string): string {
  return readFileSync(otherTool(name), 'utf8');
}

/** Reads a file as the command does, in pieces of any size. */
export async function importForeign(
  store: Store,
  text: string | Buffer,
  { name = null as string | null, pieceBytes = 1021, notes = [] as string[] } = {},
): Promise<string[]> {
  const { format, source } = await recognise(piecesOf(Buffer.from(text), pieceBytes), 'a.file');
  const { signal } = new AbortController();
  const onNote = (note: string) => void notes.push(note);
  return READERS[format].read(store, source, {
    ...{ file: 'a.file', name, importer: IMPORTER, redaction: null, signal, onNote },
    onFrame() {},
  });
}

async function* piecesOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Imports a fixture into a store of its own. */
export async function importedStore(name: string): Promise<{ store: Store; ids: string[] }> {
  const store = openStore(tempStore());
  return { store, ids: await importForeign(store, textOf(name)) };
}

export type StoredLine = { seq: number; at: number; channel: string; text: string; flags: string | null };

/** The frames of a session, their times in milliseconds since it started. */
export function linesOf(store: Store, id: string): StoredLine[] {
  return store
    .prepare<[string], StoredLine>(
      `SELECT seq, (frame.at - session.started_at) / 1000.0 AS at, channel, CAST(payload AS TEXT) AS text, flags
       FROM frame JOIN session ON session.number = frame.session WHERE session.id = ? ORDER BY seq`,
    )
    .all(id);
}

/** The row of a session, with its labels. */
export function sessionOf(store: Store, id: string): Record<string, unknown> {
  const row = store.prepare<[string], Record<string, unknown>>('SELECT * FROM session WHERE id = ?').get(id);
  const labels = store
    .prepare<[unknown], [string, string]>('SELECT key, value FROM label WHERE session = ?')
    .raw()
    .all(row?.['number']);
  return { ...row, labels: Object.fromEntries(labels) };
}

/** What was said, in a word each: `> tools/call 2`, `< result 2`. */
export function talkIn(lines: readonly StoredLine[]): string[] {
  return lines.map(({ channel, text }) => {
    const arrow = { stdin: '>', stdout: '<', stderr: '!' }[channel];
    if (!text.startsWith('{"jsonrpc"')) return `${arrow} ${text}`;
    const { method = 'answer', id = '' } = JSON.parse(text);
    return `${arrow} ${method} ${id}`.trimEnd();
  });
}
