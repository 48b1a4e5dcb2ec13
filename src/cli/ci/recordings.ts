/** The text recordings of a repository, as they are and as they were in the base: a commit of git, or a folder. */

import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve, sep } from 'node:path';
import { TapedeckError } from '../../errors.ts';
import { isTextRecording } from '../../sources/source.ts';

/** Paths are relative to `cwd`, with slashes, and sorted. Throws `TapedeckError` `not-found`. */
export function findRecordings(cwd: string, given: readonly string[]): string[] {
  const found = given.flatMap((name) => {
    const path = relative(cwd, resolve(cwd, name));
    const at = join(cwd, path);
    if (!existsSync(at)) throw new TapedeckError('not-found', `There is no recording or folder at ${name}.`);
    return statSync(at).isDirectory() ? below(cwd, path) : [slashed(path)];
  });
  return [...new Set(found)].sort();
}

/** Other files may end in `.ndjson`, too, so their beginnings are read. */
function below(cwd: string, folder: string): string[] {
  return readdirSync(join(cwd, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return isLeftOut(entry.name) ? [] : below(cwd, path);
    const isOne = entry.isFile() && isTextRecording(entry.name) && hasHeader(join(cwd, path));
    return isOne ? [slashed(path)] : [];
  });
}

function isLeftOut(folder: string): boolean {
  return folder === 'node_modules' || folder.startsWith('.');
}

function slashed(path: string): string {
  return path.split(sep).join('/');
}

const BEGINNING = 256;

const HEADER = '{"tapedeck":';

function hasHeader(file: string): boolean {
  const bytes = Buffer.alloc(BEGINNING);
  const handle = openSync(file, 'r');
  try {
    return isHeader(bytes.toString('utf8', 0, readSync(handle, bytes)));
  } finally {
    closeSync(handle);
  }
}

function isHeader(beginning: string): boolean {
  return beginning.replace(/^\uFEFF?\s*/, '').startsWith(HEADER);
}

export type CiBase = {
  /** The recordings that it has within what was given; of a commit only those below the working directory. */
  files: readonly string[];
  /** A file with the recording as it was there; null where it was not. */
  copyOf(file: string): string | null;
  close(): void;
};

/** `base`: a folder that holds the same paths, else a commit. Throws `TapedeckError` `not-found` or `io`. */
export function openBase(
  cwd: string,
  base: string,
  given: readonly string[],
  env: NodeJS.ProcessEnv,
): CiBase {
  const folder = resolve(cwd, base);
  const within = given.map((path) => relative(cwd, resolve(cwd, path)));
  const isFolder = existsSync(folder) && statSync(folder).isDirectory();
  return isFolder ? folderBase(folder, within) : commitBase(cwd, base, within, env);
}

function folderBase(folder: string, given: readonly string[]): CiBase {
  const there = given.filter((path) => existsSync(join(folder, path)));
  return {
    files: findRecordings(folder, there),
    copyOf(file) {
      const path = join(folder, file);
      return existsSync(path) ? path : null;
    },
    close() {},
  };
}

function commitBase(cwd: string, base: string, given: readonly string[], env: NodeJS.ProcessEnv): CiBase {
  const git = (args: readonly string[], stdout: 'pipe' | number = 'pipe') =>
    spawnSync('git', args, { cwd, env, stdio: ['ignore', stdout, 'pipe'], maxBuffer: MAX_LISTING });
  // A clone for one branch knows the others as the remote's.
  const [found, remote] = [base, `origin/${base}`].map((name) =>
    git(['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`]),
  ) as [ReturnType<typeof git>, ReturnType<typeof git>];
  const commit = [found, remote].map(({ stdout }) => stdout?.toString().trim() ?? '').find((id) => id !== '');
  if (commit === undefined) throw noBase(base, found.error, found.stderr?.toString() ?? '');
  const listed = git(['ls-tree', '-r', '-z', '--name-only', commit]);
  if (listed.status !== 0) throw noBase(base, listed.error, listed.stderr.toString());
  const names = listed.stdout.toString().split('\0').filter(isTextRecording);
  const folder = mkdtempSync(join(tmpdir(), 'tapedeck-base-'));
  let copies = 0;

  function copyOf(file: string): string | null {
    copies += 1;
    const copy = join(folder, `${copies}.ndjson`);
    const handle = openSync(copy, 'w', 0o600);
    try {
      return git(['cat-file', 'blob', `${commit}:./${file}`], handle).status === 0 ? copy : null;
    } finally {
      closeSync(handle);
    }
  }

  return {
    files: names.filter((name) => isWithin(name, given)),
    copyOf,
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Names of files, not their contents. */
const MAX_LISTING = 256 * 1024 * 1024;

function noBase(base: string, error: Error | undefined, stderr: string): TapedeckError {
  const why = error?.message ?? stderr.split('\n')[0] ?? '';
  return new TapedeckError(
    'not-found',
    `Expected a folder or a commit after \`--base\`, got \`${base}\`${why === '' ? '' : ` (${why})`}. A shallow clone may not have it: git fetch --depth=1 origin ${base}`,
  );
}

/** Whether a walk through what was given would come by it. */
function isWithin(name: string, given: readonly string[]): boolean {
  return given.map(slashed).some((folder) => {
    if (folder === name) return true;
    if (folder !== '' && !name.startsWith(`${folder}/`)) return false;
    const rest = folder === '' ? name : name.slice(folder.length + 1);
    return !rest.split('/').slice(0, -1).some(isLeftOut);
  });
}

const PIECE_BYTES = 64 * 1024;

/** Whether two files have the same bytes. */
export function areEqual(one: string, other: string): boolean {
  const handles = [openSync(one, 'r'), openSync(other, 'r')] as const;
  const [a, b] = [Buffer.alloc(PIECE_BYTES), Buffer.alloc(PIECE_BYTES)];
  try {
    const [size, otherSize] = handles.map((handle) => fstatSync(handle).size);
    if (size !== otherSize) return false;
    for (let at = 0; at < (size ?? 0); at += PIECE_BYTES) {
      const read = [readSync(handles[0], a, 0, PIECE_BYTES, at), readSync(handles[1], b, 0, PIECE_BYTES, at)];
      if (read[0] !== read[1] || !a.subarray(0, read[0]).equals(b.subarray(0, read[1]))) return false;
    }
    return true;
  } finally {
    for (const handle of handles) closeSync(handle);
  }
}
