/** Takes tapedeck out of a config again. */

import type { Entry } from './config.ts';
import type { ClientConfigFile } from './file.ts';
import { type Keeper, sha256 } from './keeper.ts';
import { countOwnWords } from './launcher.ts';
import type { Target } from './targets.ts';
import { originalUrl } from './url.ts';
import {
  type ConfigChange,
  editConfig,
  isHandmade,
  isWrapped,
  type OpenConfig,
  openConfig,
  originalOr,
  type Row,
  unwrapEditsOf,
  withoutWrap,
  wrappedUrlOf,
  writeChange,
} from './wrapped.ts';

type UnwrapOptions = {
  /** Of these servers only; of all where there are none. */
  names: readonly string[];
  isDryRun: boolean;
};

/** `read`: as `file` of `openConfig`. Throws `TapedeckError` with the reason where it is refused; then nothing was written. */
export function unwrapConfig(
  target: Target,
  { names, isDryRun }: UnwrapOptions,
  keeper: Keeper,
  read?: ClientConfigFile,
): ConfigChange {
  const open = openConfig(target, keeper, read);
  const { config, file } = open;
  const entries = config.entries.filter(({ name }) => names.length === 0 || names.includes(name));
  const rows = entries.map((entry) => rowOf(entry, open, names.includes(entry.name)));
  const chosen = rows.filter(({ outcome }) => outcome === 'unwrapped').map(({ entry }) => entry);
  const isLast = config.entries.every((entry) => chosen.includes(entry) || !isOurs(entry, open));
  const edited = editConfig(
    open,
    chosen.flatMap((entry) => unwrapEditsOf(entry, open)),
    chosen.map((entry) => ({ entry, words: originalWords(entry, open) })),
  );
  const after = isLast ? originalOr(edited, open) : edited;
  const change = { target, rows, before: file.bytes, after, copyFolder: keeper.folderOf(file.path) };
  if (!isDryRun) save(open, change, { chosen, isLast }, keeper);
  return change;
}

function isOurs(entry: Entry, open: OpenConfig): boolean {
  return isWrapped(entry, open) && !isHandmade(entry, open);
}

function rowOf(entry: Entry, open: OpenConfig, isNamed: boolean): Row {
  if (!isWrapped(entry, open)) return { entry, outcome: 'unchanged', note: 'not wrapped' };
  if (isHandmade(entry, open) && !isNamed)
    return {
      entry,
      outcome: 'unchanged',
      note: 'left wrapped, as it was before `tapedeck wrap`; name it to unwrap it too',
    };
  return { entry, outcome: 'unwrapped', note: '' };
}

function originalWords(entry: Entry, open: OpenConfig): readonly string[] {
  const { server } = entry;
  if (server.kind === 'stdio') return server.words.slice(countOwnWords(server.words));
  const wrapped = wrappedUrlOf(entry, open);
  if (server.kind !== 'url' || wrapped === undefined) return [];
  return [originalUrl(server.url.value.value, wrapped.url)];
}

/** Deletes what was kept: it may hold secrets, and is of no use once it has been put back. */
function save(
  open: OpenConfig,
  change: ConfigChange,
  { chosen, isLast }: { chosen: readonly Entry[]; isLast: boolean },
  keeper: Keeper,
): void {
  const { file, kept } = open;
  const copy = withoutWrap(open);
  writeChange(change, open);
  if (kept === null) return;
  if (isLast) {
    keeper.forget(file.path);
    return;
  }
  const back = new Set(chosen.map((entry) => wrappedUrlOf(entry, open)?.port));
  const urls = kept.urls.filter(({ port }) => !back.has(port));
  keeper.keep({ ...kept, writtenAs: sha256(change.after), urls }, copy);
}
