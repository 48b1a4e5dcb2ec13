/**
 * Rows of an engine as they come, by binary `COPY … TO STDOUT`: of a large result never more than a row is in memory.
 * https://www.postgresql.org/docs/15/sql-copy.html#id-1.9.3.55.9.4
 */

import type { Client } from 'pg';
import { to as copyTo } from 'pg-copy-streams';

export type Value = string | number | Buffer | null;

/** How the value of a column is read: as a `bigint` or smaller, which is below 2^53; as `text`; as `bytea` or whatever else has bytes. */
export type Reading = 'integer' | 'text' | 'bytes';

/** The signature, the flags, and how long what follows them is. */
const SIGNATURE_BYTES = 11;
const HEADER_BYTES = SIGNATURE_BYTES + 8;

/** How many fields a row has where there is none. */
const END = -1;

/**
 * The rows of a query as they come, some at a time, each with a value for every item of `readings`. Throws the engine's error; where
 * the connection ends before the last row, too.
 */
export async function* copyOut(
  client: Client,
  query: string,
  readings: readonly Reading[],
): AsyncGenerator<Value[][]> {
  const stream = client.query(copyTo(`COPY (${query}) TO STDOUT (FORMAT binary)`));
  const parser = createParser(readings);
  const lost = onceLost(client, stream);
  try {
    for await (const chunk of stream) yield parser.feed(chunk as Buffer);
  } finally {
    lost.forget();
  }
  if (!parser.isOver()) throw new Error('Connection terminated in the middle of a COPY');
}

/** A COPY whose connection breaks gets neither rows nor an error any more, by itself. */
function onceLost(client: Client, stream: { destroy(error: Error): unknown }): { forget(): void } {
  const end = () => stream.destroy(new Error('Connection terminated in the middle of a COPY'));
  const fail = (error: Error) => stream.destroy(error);
  client.once('end', end);
  client.once('error', fail);
  return {
    forget() {
      client.off('end', end);
      client.off('error', fail);
    },
  };
}

type Parser = { feed(chunk: Buffer): Value[][]; isOver(): boolean };

function createParser(readings: readonly Reading[]): Parser {
  let chunks: Buffer[] = [];
  let bytes = 0;
  /** What must be there before it is worth looking again. */
  let needed = HEADER_BYTES;
  let hasHeader = false;
  let isOver = false;

  /** A row from this place on, or how many bytes must be there to know more. */
  function rowAt(data: Buffer, start: number): { row: Value[] | null; end: number } | number {
    if (data.length < start + 2) return start + 2;
    const count = data.readInt16BE(start);
    let at = start + 2;
    if (count === END) return { row: null, end: at };
    const row: Value[] = [];
    for (const reading of readings) {
      if (data.length < at + 4) return at + 4;
      const size = data.readInt32BE(at);
      at += 4;
      if (size === END) {
        row.push(null);
        continue;
      }
      if (data.length < at + size) return at + size;
      row.push(read(data.subarray(at, at + size), reading));
      at += size;
    }
    return { row, end: at };
  }

  function feed(chunk: Buffer): Value[][] {
    const rows: Value[][] = [];
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes < needed || isOver) return rows;
    const data = chunks.length === 1 ? chunk : Buffer.concat(chunks);
    let at = 0;
    if (!hasHeader) {
      at = HEADER_BYTES + data.readInt32BE(SIGNATURE_BYTES + 4);
      hasHeader = true;
    }
    for (;;) {
      const next = rowAt(data, at);
      if (typeof next === 'number') {
        needed = next - at;
        break;
      }
      at = next.end;
      if (next.row === null) {
        isOver = true;
        return rows;
      }
      rows.push(next.row);
    }
    const rest = data.subarray(at);
    chunks = [rest];
    bytes = rest.length;
    return rows;
  }

  return { feed, isOver: () => isOver };
}

function read(data: Buffer, reading: Reading): Value {
  if (reading === 'text') return data.toString('utf8');
  if (reading === 'bytes') return data;
  return data.length === 8 ? Number(data.readBigInt64BE()) : data.readInt32BE();
}
