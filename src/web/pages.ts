/** The files of the page, as they were built: held in memory, raw and packed. They contain nothing of anybody's. */

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { gzipSync } from 'node:zlib';

export type PageFile = {
  type: string;
  etag: string;
  raw: Buffer;
  /** Packed when it is first asked for; null where that makes it no smaller. */
  gzip(): Buffer | null;
};

/** Returns the file at a path of a URL; of a screen of the page, its one document. Undefined for what is not there. */
export type Pages = (path: string) => PageFile | undefined;

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
};

/** The screens: their paths are answered by the document, which reads the rest of the path itself. */
const SCREEN = /^\/(?:$|(?:s|search|live|diff|stats|run)(?:\/|$))/;

/** `folder`: where the page was built; a text says so where it was not. */
export function loadPages(folder: string): Pages {
  const files = new Map(
    readFiles(folder).map((name) => [pathOf(name), fileOf(readFileSync(join(folder, name)), name)]),
  );
  const missing = fileOf(
    Buffer.from('The page of the viewer is not built here. Build it: npm run build\n'),
    'missing.txt',
  );
  const document = files.get('/index.html') ?? missing;
  return (path) => files.get(path) ?? (SCREEN.test(path) ? document : undefined);
}

function readFiles(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(folder.length)
          .replace(/^[\\/]/, ''),
      );
  } catch {
    return [];
  }
}

function pathOf(name: string): string {
  return `/${name.split(sep).join('/')}`;
}

function fileOf(raw: Buffer, name: string): PageFile {
  let packed: Buffer | undefined;
  return {
    type: TYPES[extname(name)] ?? 'application/octet-stream',
    etag: `"${createHash('sha256').update(raw).digest('base64url').slice(0, 22)}"`,
    raw,
    gzip() {
      packed ??= gzipSync(raw, { level: 9 });
      return packed.length < raw.length ? packed : null;
    },
  };
}
