/**
 * Rows as `COPY … (FORMAT binary)` takes them: https://www.postgresql.org/docs/15/sql-copy.html. Binary, because bytes then go
 * as they are: as text each would take two characters. A row is written as soon as it is read, and nothing else is kept of it:
 * objects that live until they are sent cost more than all the rest.
 */

import { heldText } from '../engine/odd.ts';
import type { EngineColumn, EngineTable } from '../engine/tables.ts';

/** `bytea` as bytes, all other columns as text or a number. */
export type CopyValue = string | number | Uint8Array | null | undefined;

/** Of one session and table. */
export type RowCopy = {
  /**
   * The values of `valueColumns`, in their order. Text that PostgreSQL cannot hold gets its stand-in, where the table has `odd` for what
   * was meant.
   */
  add(values: readonly CopyValue[]): void;
  /** Takes out what was added since. */
  take(): Copied;
};

/** Rows between `COPY_HEAD` and `COPY_TRAILER`. */
export type Copied = { rows: number; pieces: Buffer[] };

export const COPY_HEAD: Buffer = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');

export const COPY_TRAILER: Buffer = Buffer.from([0xff, 0xff]);

/** Most copies are small, and some are many times as large. */
const FIRST_BYTES = 4 * 1024;

const GROWTH = 8;

const CHUNK_BYTES = 256 * 1024;

/** Larger values go along as they are, without being copied. */
const COPIED_WITHIN_BYTES = 32 * 1024;

/** Longer texts are written by Node, which takes as long to be called as this many letters. */
const SHORT_TEXT = 48;

const TWO_TO_32 = 2 ** 32;

/** Chunks that were sent, for the next slices. */
const spare: Buffer[] = [];

const MOST_SPARE = 48;

/** The columns of a table but those that all rows of a session have alike, and `odd`, which is made here. */
export function valueColumns({ columns }: EngineTable): EngineColumn[] {
  return columns.slice(2).filter(({ name }) => name !== 'odd');
}

/** Gives back what was copied, once the engine has it. */
export function release({ pieces }: Copied): void {
  // Several pieces may be of one chunk.
  for (const buffer of new Set(pieces.map((piece) => piece.buffer)))
    if (buffer.byteLength === CHUNK_BYTES && spare.length < MOST_SPARE) spare.push(Buffer.from(buffer));
}

/** For a `COPY` that names all columns of the table, in their order. `key` and `day` are those of the session. */
export function createRowCopy(table: EngineTable, key: string, day: string): RowCopy {
  const columns = valueColumns(table);
  const hasOdd = table.columns.at(-1)?.name === 'odd';
  const head = rowHead(table.columns.length, key, day);
  let pieces: Buffer[] = [];
  let rows = 0;
  let chunk: Buffer = Buffer.alloc(0);
  let from = 0;
  let used = 0;
  let nextBytes = FIRST_BYTES;

  function flush(): void {
    if (used > from) pieces.push(chunk.subarray(from, used));
    from = used;
  }

  function reserve(bytes: number): void {
    if (used + bytes <= chunk.length) return;
    flush();
    const size = Math.max(nextBytes, bytes);
    chunk = (size === CHUNK_BYTES ? spare.pop() : undefined) ?? Buffer.allocUnsafeSlow(size);
    nextBytes = Math.min(CHUNK_BYTES, nextBytes * GROWTH);
    from = 0;
    used = 0;
  }

  function putInt32(value: number): void {
    reserve(4);
    chunk[used] = value >>> 24;
    chunk[used + 1] = value >>> 16;
    chunk[used + 2] = value >>> 8;
    chunk[used + 3] = value;
    used += 4;
  }

  function putBytes(bytes: Uint8Array): void {
    putInt32(bytes.length);
    if (bytes.length > COPIED_WITHIN_BYTES) {
      flush();
      pieces.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
      return;
    }
    reserve(bytes.length);
    chunk.set(bytes, used);
    used += bytes.length;
  }

  /** False: it has other characters than those of ASCII. */
  function putShort(text: string): boolean {
    const { length } = text;
    reserve(4 + length);
    const at = used + 4;
    for (let i = 0; i < length; i += 1) {
      const code = text.charCodeAt(i);
      if (code === 0 || code > 127) return false;
      chunk[at + i] = code;
    }
    putInt32(length);
    used += length;
    return true;
  }

  function putText(text: string): void {
    // A character takes three bytes at most, and a pair of them four.
    if (text.length * 3 > COPIED_WITHIN_BYTES) {
      putBytes(Buffer.from(text));
      return;
    }
    reserve(4 + text.length * 3);
    const written = chunk.write(text, used + 4);
    putInt32(written);
    used += written;
  }

  function putValue(type: EngineColumn['type'], value: string | number | Uint8Array): void {
    switch (type) {
      case 'bigint': {
        const high = Math.floor(Number(value) / TWO_TO_32);
        putInt32(8);
        putInt32(high);
        putInt32(Number(value) - high * TWO_TO_32);
        break;
      }
      case 'integer':
        putInt32(4);
        putInt32(Number(value));
        break;
      case 'bytea':
        putBytes(value as Uint8Array);
        break;
      default:
        throw new RangeError(`no rows with a column of type ${type} are copied`);
    }
  }

  return {
    add(values) {
      reserve(head.length);
      chunk.set(head, used);
      used += head.length;
      const odd: Record<string, string> = {};
      let isOdd = false;
      for (let i = 0; i < columns.length; i += 1) {
        const { name, type } = columns[i] as EngineColumn;
        const value = values[i];
        if (value === null || value === undefined) putInt32(-1);
        else if (type !== 'text') putValue(type, value);
        else {
          const text = String(value);
          if (text.length <= SHORT_TEXT && putShort(text)) continue;
          const taken = hasOdd ? heldText(text) : text;
          if (taken !== text) {
            odd[name] = text;
            isOdd = true;
          }
          putText(taken);
        }
      }
      if (isOdd) putBytes(Buffer.from(JSON.stringify(odd)));
      else if (hasOdd) putInt32(-1);
      rows += 1;
    },
    take() {
      flush();
      const copied = { rows, pieces };
      pieces = [];
      rows = 0;
      return copied;
    },
  };
}

const EPOCH_DAYS = Date.UTC(2000, 0, 1) / 86_400_000;

/** How each row begins: the number of its columns, the key as the 16 bytes of a UUID, the day as days since 2000-01-01. */
function rowHead(columns: number, key: string, day: string): Buffer {
  const head = Buffer.alloc(2 + 4 + 16 + 4 + 4);
  head.writeInt16BE(columns, 0);
  head.writeInt32BE(16, 2);
  head.write(key.replaceAll('-', ''), 6, 'hex');
  head.writeInt32BE(4, 22);
  head.writeInt32BE(Date.parse(day) / 86_400_000 - EPOCH_DAYS, 26);
  return head;
}
