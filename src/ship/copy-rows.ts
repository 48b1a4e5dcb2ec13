/**
 * Rows as `COPY … (FORMAT binary)` takes them: https://www.postgresql.org/docs/15/sql-copy.html. Binary, because bytes then go
 * as they are: as text each would take two characters.
 */

import type { EngineColumn, EngineTable } from '../engine/tables.ts';

/** By column. `session` as the 16 bytes of a UUID, `day` as days since 2000-01-01, `bytea` as bytes, all `jsonb` as its text. */
export type CopyRow = Readonly<Record<string, string | number | Uint8Array | null | undefined>>;

export type RowCopy = {
  add(row: CopyRow): void;
  /** Takes out what is large enough to be sent, the head first. */
  taken(): Buffer[];
  /** What is left, with the trailer. */
  finish(): Buffer[];
};

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');

const TRAILER = Buffer.from([0xff, 0xff]);

const CHUNK_BYTES = 128 * 1024;

/** Larger values go along as they are, without being copied. */
const COPIED_WITHIN_BYTES = 32 * 1024;

const JSONB_VERSION = 1;

const TWO_TO_32 = 2 ** 32;

/** For a `COPY` that names all columns of the table, in their order. */
export function createRowCopy({ columns }: EngineTable): RowCopy {
  const chunks: Buffer[] = [SIGNATURE];
  let chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let used = 0;

  function flush(): void {
    if (used > 0) chunks.push(chunk.subarray(0, used));
    chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    used = 0;
  }

  function reserve(bytes: number): void {
    if (used + bytes > CHUNK_BYTES) flush();
  }

  function putInt32(value: number): void {
    reserve(4);
    used = chunk.writeInt32BE(value, used);
  }

  function putBytes(bytes: Uint8Array): void {
    putInt32(bytes.length);
    if (bytes.length > COPIED_WITHIN_BYTES) {
      flush();
      chunks.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
      return;
    }
    reserve(bytes.length);
    chunk.set(bytes, used);
    used += bytes.length;
  }

  function putText(text: string): void {
    // A character takes three bytes at most, and a pair of them four.
    if (text.length * 3 > COPIED_WITHIN_BYTES) {
      putBytes(Buffer.from(text));
      return;
    }
    reserve(4 + text.length * 3);
    const written = chunk.write(text, used + 4);
    chunk.writeInt32BE(written, used);
    used += 4 + written;
  }

  function putValue(type: EngineColumn['type'], value: string | number | Uint8Array): void {
    switch (type) {
      case 'bigint': {
        reserve(12);
        const high = Math.floor(Number(value) / TWO_TO_32);
        used = chunk.writeInt32BE(8, used);
        used = chunk.writeInt32BE(high, used);
        used = chunk.writeUInt32BE(Number(value) - high * TWO_TO_32, used);
        break;
      }
      case 'integer':
      case 'date':
        putInt32(4);
        putInt32(Number(value));
        break;
      case 'uuid':
      case 'bytea':
        putBytes(value as Uint8Array);
        break;
      case 'jsonb': {
        const json = Buffer.from(` ${value}`);
        json.writeUInt8(JSONB_VERSION, 0);
        putBytes(json);
        break;
      }
      case 'text':
        putText(String(value));
        break;
      default:
        throw new RangeError(`no rows with a column of type ${type} are copied`);
    }
  }

  return {
    add(row) {
      reserve(2);
      used = chunk.writeInt16BE(columns.length, used);
      for (const { name, type } of columns) {
        const value = row[name];
        if (value === null || value === undefined) putInt32(-1);
        else putValue(type, value);
      }
    },
    taken: () => chunks.splice(0),
    finish() {
      flush();
      chunks.push(TRAILER);
      return chunks.splice(0);
    },
  };
}

const EPOCH_DAYS = Date.UTC(2000, 0, 1) / 86_400_000;

/** `2026-11-23` as days since 2000-01-01. */
export function dayNumber(day: string): number {
  return Date.parse(day) / 86_400_000 - EPOCH_DAYS;
}

/** A UUID as its 16 bytes. */
export function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex');
}
