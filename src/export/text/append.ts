/**
 * Adds frames to a text recording. What is in the file stays byte for byte, whoever wrote it, so that a diff shows only the
 * new lines. The file is replaced once the new one is whole.
 */

import { closeSync, createReadStream, openSync, readSync, statSync } from 'node:fs';
import { TapedeckError } from '../../errors.ts';
import type { SessionStart } from '../../store/file/columns.ts';
import type { Store } from '../../store/file/open.ts';
import { cannotWrite, replaceFile, targetOf } from '../../store/file/replace-file.ts';
import { findSession } from '../../store/read/sessions.ts';
import { appendTo, type Block } from '../../store/write/import.ts';
import { removeSession } from '../../store/write/removal.ts';
import { insertSession } from '../../store/write/rows.ts';
import { readHeader } from './header.ts';
import { HTTP_EXCHANGE_MEMBERS } from './http-exchange.ts';
import { eachLine, timeAfter } from './lines.ts';
import { BadLine, readLine } from './members.ts';
import { writeNdjson } from './write.ts';

/** Where a file ends: its last time, its last HTTP exchange. New lines continue from there. */
type Ending = { at: number; exchanges: number; hasLineEnd: boolean };

/** Others may add to the same file. It is read again if it has changed meanwhile. */
const MAX_TRIES = 10;

const COPIED_BYTES = 1024 * 1024;

/**
 * Adds blocks to a file. `store` is temporary; `start` is the session that the file holds. Throws `TapedeckError`
 * `io` where the file cannot be written, `corrupt` where it was changed and cannot be read any more.
 */
export async function appendNdjson(
  path: string,
  blocks: readonly Block[],
  store: Store,
  start: SessionStart,
): Promise<void> {
  const target = targetOf(path);
  try {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const before = stateOf(target);
      const ending = await readEnding(target);
      const lines = linesOf(blocks, ending, store, start);
      const confirm = () => stateOf(target) === before;
      if (replaceFile(path, withLines(target, lines, ending), { confirm })) return;
    }
    throw new BadLine('it never stopped changing');
  } catch (error) {
    if (!(error instanceof BadLine)) throw cannotWrite(path, error);
    throw new TapedeckError('corrupt', `${path} was changed, and cannot be added to: ${error.message}.`, {
      cause: error,
    });
  }
}

function stateOf(target: string): string {
  const { ino, size, mtimeMs } = statSync(target);
  return `${ino} ${size} ${mtimeMs}`;
}

async function readEnding(target: string): Promise<Ending> {
  const ending: Ending = { at: Number.NaN, exchanges: 0, hasLineEnd: true };
  for await (const { bytes, isWhole } of eachLine(createReadStream(target))) {
    const line = readLine(bytes);
    ending.hasLineEnd = isWhole;
    if (Number.isNaN(ending.at)) ending.at = readHeader(line).at;
    else {
      ending.at = timeAfter(ending.at, line.number('ms') ?? 0);
      if (HTTP_EXCHANGE_MEMBERS.some((name) => line.has(name)))
        ending.exchanges = Math.max(ending.exchanges, line.count('http') ?? 0);
    }
  }
  if (Number.isNaN(ending.at)) throw new BadLine('it is empty');
  return ending;
}

/** The blocks pass through a store, so that they are redacted and written as everything recorded is. */
function linesOf(
  blocks: readonly Block[],
  { at, exchanges }: Ending,
  store: Store,
  start: SessionStart,
): string[] {
  const { id, number } = insertSession(store, { ...start, at });
  const append = appendTo(store, number);
  for (const block of blocks) append.add(block, exchanges);
  const [, ...lines] = joinedLines(writeNdjson(store, findSession(store, id), { onFrame() {} }));
  removeSession(store, number);
  return lines;
}

/** Pieces of lines as whole lines. */
function* joinedLines(pieces: Iterable<string>): Generator<string> {
  let line: string[] = [];
  for (const piece of pieces) {
    line.push(piece);
    if (!piece.endsWith('\n')) continue;
    yield line.join('');
    line = [];
  }
}

/** What is in the file, and the lines behind it. */
function* withLines(
  target: string,
  lines: readonly string[],
  { hasLineEnd }: Ending,
): Generator<string | Uint8Array> {
  const file = openSync(target, 'r');
  const chunk = Buffer.alloc(COPIED_BYTES);
  try {
    for (let size = readSync(file, chunk); size > 0; size = readSync(file, chunk))
      yield chunk.subarray(0, size);
  } finally {
    closeSync(file);
  }
  if (!hasLineEnd) yield '\n';
  yield* lines;
}
