/** Which servers of a config are wrapped, and how the file was, or would be, without that. */
import { isDeepStrictEqual } from 'node:util';
import { type Config, type Entry, readConfig } from './config.ts';
import { applyEdits, type Edit, unwrapEdits, urlEdit } from './edits.ts';
import { type ConfigFile, encode, readConfigFile } from './file.ts';
import { type Keeper, type Kept, sha256, type WrappedUrl } from './kept.ts';
import { countOwnWords } from './launcher.ts';
import { meaningOf, type Node } from './source.ts';
import type { Target } from './targets.ts';
import { localPort, localUrl, originalUrl } from './url.ts';

export type OpenConfig = {
  target: Target;
  file: ConfigFile;
  config: Config;
  kept: Kept | null;
  /** Of all configs: one that was moved or copied is still known by its ports. */
  urls: readonly WrappedUrl[];
  /** What the copy has, where there is one. */
  original: { bytes: Buffer; config: Config } | null;
  /** The file is as tapedeck has written it. */
  isUntouched: boolean;
};

/** Throws `TapedeckError` `usage` with the reason, where the file cannot be read or understood. */
export function openConfig(target: Target, keeper: Keeper): OpenConfig {
  const file = readConfigFile(target.file);
  const config = readConfig(file.text, target.format, target.sections);
  const kept = keeper.of(file.path);
  const original = kept === null ? null : readOriginal(target, keeper, file.path);
  const isUntouched = kept !== null && kept.writtenAs === sha256(file.bytes);
  const urls = keeper.all().flatMap((one) => one.urls);
  return { target, file, config, kept, urls, original, isUntouched };
}

function readOriginal({ format, sections }: Target, keeper: Keeper, path: string): OpenConfig['original'] {
  const bytes = keeper.copyOf(path);
  if (bytes === null) return null;
  try {
    const text = bytes.toString().replace(/^\ufeff/, '');
    return { bytes, config: readConfig(text, format, sections) };
  } catch {
    // Somebody has edited it: then it is of no use.
    return null;
  }
}

/** Where this URL entry leads to, if it is wrapped. */
export function wrappedUrlOf({ server }: Entry, { urls }: OpenConfig): WrappedUrl | undefined {
  if (server.kind !== 'url') return undefined;
  const port = localPort(server.url.value.value);
  return urls.find((one) => one.port === port);
}

export function isWrapped(entry: Entry, open: OpenConfig): boolean {
  const { server } = entry;
  return server.kind === 'stdio' ? countOwnWords(server.words) > 0 : wrappedUrlOf(entry, open) !== undefined;
}

/** Whether it was wrapped before `tapedeck wrap` came, by hand: then `unwrap` leaves it so, unless it is named. */
export function isHandmade(entry: Entry, { original }: OpenConfig): boolean {
  const before = original && entryAt(original.config, entry.path);
  return before?.server.kind === 'stdio' && countOwnWords(before.server.words) > 0;
}

export function entryAt({ entries }: Config, path: readonly string[]): Entry | undefined {
  return entries.find(
    (entry) => entry.path.length === path.length && entry.path.every((key, i) => key === path[i]),
  );
}

/** What takes tapedeck out of this entry; nothing where it is not in it. */
export function unwrapEditsOf(entry: Entry, open: OpenConfig): Edit[] {
  const { file, original } = open;
  const { server } = entry;
  if (server.kind === 'stdio') {
    const before = original && entryAt(original.config, entry.path);
    const hadArgs = before?.server.kind !== 'stdio' || before.server.args !== null;
    return unwrapEdits(file.text, server, countOwnWords(server.words), hadArgs);
  }
  const wrapped = wrappedUrlOf(entry, open);
  if (server.kind !== 'url' || wrapped === undefined) return [];
  return [urlEdit(server, urlSource(server.url.value.value, wrapped))];
}

/** As it stood in the file, unless somebody has changed its path since. */
function urlSource(local: string, { url, port, source }: WrappedUrl): string {
  return local === localUrl(url, port) ? source : JSON.stringify(originalUrl(local, url));
}

/**
 * The file as it was before `wrap`: `edited` is what undoing the edits gives. The copy has the very bytes, and counts where
 * nobody has changed either of them since.
 */
export function originalOr(edited: Buffer, { target, original, isUntouched }: OpenConfig): Buffer {
  if (!isUntouched || original === null) return edited;
  const text = edited.toString().replace(/^\ufeff/, '');
  const { root } = readConfig(text, target.format, target.sections);
  const meaning = (node: Node) => meaningOf(node, new Set());
  return isDeepStrictEqual(meaning(root), meaning(original.config.root)) ? original.bytes : edited;
}

/** The file without anything that `wrap` did to it. */
export function withoutWrap(open: OpenConfig): Buffer {
  const { file, config, kept } = open;
  if (kept === null) return file.bytes;
  const ours = config.entries.filter((entry) => isWrapped(entry, open) && !isHandmade(entry, open));
  const edits = ours.flatMap((entry) => unwrapEditsOf(entry, open));
  return originalOr(encode(applyEdits(file.text, edits), file.hasMark), open);
}
