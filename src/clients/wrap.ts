/** Puts tapedeck before the servers of a config. */

import type { Entry, StdioServer, UrlServer } from './config.ts';
import { literal, relaunchEdits, type TextEdit, urlEdit, wrapEdits } from './edits.ts';
import type { ClientConfigFile } from './file.ts';
import { type Keeper, sha256, type WrappedUrl, type WrapRecord } from './keeper.ts';
import { goneFile, recordIndex, wrappedWords } from './launcher.ts';
import { isOwnServer } from './own-entry.ts';
import { choosePort } from './ports.ts';
import type { Target } from './targets.ts';
import { localUrl, shownUrl, urlProblem } from './url.ts';
import {
  type ConfigChange,
  type ExpectedServer,
  editConfig,
  isWrapped,
  type OpenConfig,
  openConfig,
  type Row,
  withoutWrap,
  writeChange,
} from './wrapped.ts';

type WrapOptions = {
  /** Of these servers only; of all where there are none. */
  names: readonly string[];
  /** The words that start tapedeck. */
  launcher: readonly string[];
  /** The store to record into, as an absolute path. */
  db: string | null;
  /** Only say how the file would change. */
  isDryRun: boolean;
};

type EntryWrap = { row: Row; edits: TextEdit[]; expected: ExpectedServer; url?: WrappedUrl };

/** `file`: as for `openConfig`. Throws `TapedeckError` with the reason where it is refused; then nothing was written. */
export async function wrapConfig(
  target: Target,
  options: WrapOptions,
  keeper: Keeper,
  file?: ClientConfigFile,
): Promise<ConfigChange> {
  const open = openConfig(target, keeper, file);
  const ports = new Set(open.urls.map(({ port }) => port));
  const rows: Row[] = [];
  const done: EntryWrap[] = [];
  for (const entry of open.config.entries) {
    if (options.names.length > 0 && !options.names.includes(entry.name)) continue;
    if (isLeftAlone(entry, options.names)) {
      rows.push({ entry, outcome: 'unchanged', note: 'tapedeck itself; name it to wrap it too' });
      continue;
    }
    const wrapped = await wrapEntry(entry, open, options, ports);
    if ('edits' in wrapped) done.push(wrapped);
    rows.push('edits' in wrapped ? wrapped.row : wrapped);
  }
  const after = editConfig(
    open,
    done.flatMap(({ edits }) => edits),
    done.map(({ expected }) => expected),
  );
  const { bytes: before, path } = open.file;
  const change = { target, rows, before, after, copyFolder: keeper.folderOf(path) };
  // Of what somebody has wrapped by hand a copy is kept too: nothing else tells it from what `wrap` did.
  const isNews = done.length > 0 || (open.kept === null && rows.some(({ entry }) => isByHand(entry, open)));
  if (isNews && !options.isDryRun) save(open, change, done, keeper);
  return change;
}

function isLeftAlone({ name, server }: Entry, names: readonly string[]): boolean {
  return server.kind === 'stdio' && isOwnServer(server.words) && !names.includes(name);
}

/** Where no record is kept of the file. */
function isByHand(entry: Entry, open: OpenConfig): boolean {
  return entry.server.kind === 'stdio' && isWrapped(entry, open);
}

async function wrapEntry(
  entry: Entry,
  open: OpenConfig,
  options: WrapOptions,
  ports: Set<number>,
): Promise<EntryWrap | Row> {
  const { server } = entry;
  if (server.kind === 'none') return { entry, outcome: 'refused', note: server.reason };
  if (isWrapped(entry, open)) return repair(entry, open, options);
  if (server.kind === 'stdio') return wrapStdio(entry, server, open, options);
  const problem = urlProblem(server.url.value.value);
  if (problem !== null) return { entry, outcome: 'refused', note: problem };
  return wrapUrl(entry, server, open, options, ports);
}

/** What was wrapped stays as it is, unless the node or the tapedeck that it starts is not there any more. */
function repair(entry: Entry, { file }: OpenConfig, { launcher }: WrapOptions): EntryWrap | Row {
  const { server } = entry;
  const gone = server.kind === 'stdio' ? goneFile(server.words) : null;
  if (server.kind !== 'stdio' || gone === null)
    return { entry, outcome: 'unchanged', note: 'already wrapped' };
  const recordAt = recordIndex(server.words);
  return {
    row: { entry, outcome: 'wrapped', note: `again, because ${gone} is gone` },
    edits: relaunchEdits(file.text, server, recordAt, launcher),
    expected: { entry, words: [...launcher, ...server.words.slice(recordAt)] },
  };
}

function wrapStdio(
  entry: Entry,
  server: StdioServer,
  { file }: OpenConfig,
  { launcher, db }: WrapOptions,
): EntryWrap {
  const own = wrappedWords(launcher, entry.name, db, []);
  return {
    row: { entry, outcome: 'wrapped', note: '' },
    edits: wrapEdits(file.text, server, own),
    expected: { entry, words: [...own, ...server.words] },
  };
}

async function wrapUrl(
  entry: Entry,
  server: UrlServer,
  { file }: OpenConfig,
  { db }: WrapOptions,
  ports: Set<number>,
): Promise<EntryWrap> {
  const { value: url, start, end } = server.url.value;
  const port = await choosePort(JSON.stringify([file.path, entry.path]), ports);
  ports.add(port);
  const local = localUrl(url, port);
  return {
    row: { entry, outcome: 'wrapped', note: `${shownUrl(local)} leads to ${shownUrl(url)}` },
    edits: [urlEdit(server, literal(local))],
    expected: { entry, words: [local] },
    url: { port, url, source: file.text.slice(start, end), db },
  };
}

/** Writes the copy first, so that the file can be restored whenever this is interrupted. */
function save(open: OpenConfig, change: ConfigChange, done: readonly EntryWrap[], keeper: Keeper): void {
  const { file, kept: before } = open;
  const urls = [...(before?.urls ?? []), ...done.flatMap(({ url }) => url ?? [])];
  const kept: WrapRecord = { file: file.path, writtenAs: sha256(change.after), urls };
  const copy = withoutWrap(open);
  keeper.keep(kept, copy);
  try {
    writeChange(change, open);
  } catch (error) {
    // Where the file is refused, nothing new of it stays here either.
    if (before === null) keeper.forget(file.path);
    else keeper.keep(before, copy);
    throw error;
  }
}
