/**
 * Packed payloads: what upkeep and `tapedeck pack` have deflated. A row of `frame` or `frame_part` with a `codec` has its bytes packed,
 * and their number before that in `unpacked`. All SQL that reads such bytes takes them from here, so that no reader has to know.
 */

import type Database from 'better-sqlite3';

/** Raw deflate (RFC 1951). */
export const DEFLATE = 'deflate';

/** Shorter bytes gain little, and stay text for everybody's SQL. */
const LEAST_BYTES = 256;

/** A fifth has to be gained. */
const MOST_OF_BEFORE = 0.8;

/** Fast: the best level gains a few hundredths more, and takes several times as long. */
const LEVEL = 1;

/** Of what zlib fills at once: no less is allowed, and no more is taken at the word of a damaged row. */
const LEAST_CHUNK = 64;

const MOST_CHUNK = 1024 * 1024;

/** The bytes of a row as they were recorded, in SQL. `row`: the alias of `frame` or of `frame_part` with its point, or nothing. */
export const payloadSql = (row = '') => bytesSql(row, 'payload');

export const partSql = (row = '') => bytesSql(row, 'bytes');

/** How many bytes that are. It unpacks nothing. */
export const payloadLengthSql = (row = '') => `ifnull(${row}unpacked, length(${row}payload))`;

export const partLengthSql = (row = '') => `ifnull(${row}unpacked, length(${row}bytes))`;

function bytesSql(row: string, column: string): string {
  return `iif(${row}codec IS NULL, ${row}${column}, tapedeck_unpacked(${row}codec, ${row}${column}, ${row}unpacked))`;
}

/** Lets the SQL above run on this connection. */
export function addUnpacking(store: Database.Database): void {
  store.function('tapedeck_unpacked', { deterministic: true, directOnly: true }, unpacked);
}

/** Loaded with the first packed frame: who records has none. */
let zlib: typeof import('node:zlib') | undefined;

function loadZlib(): typeof import('node:zlib') {
  zlib ??= process.getBuiltinModule('node:zlib');
  return zlib;
}

/** The bytes of a row that has a codec. Throws where they are not what was packed: never a wrong payload. */
export function unpacked(codec: unknown, bytes: unknown, size: unknown): Buffer {
  if (codec !== DEFLATE)
    throw new Error(`a payload is packed by \`${codec}\`, which this tapedeck does not know`);
  const whole = quicklyInflated(bytes, Number(size)) ?? inflated(bytes as Buffer, Number(size));
  if (whole.length !== size) throw new Error(`a packed payload has ${whole.length} bytes, not ${size}`);
  return whole;
}

function inflated(bytes: Buffer, size: number): Buffer {
  const most = Math.max(1, size);
  // A byte more than there is to come lets zlib end in one step; what it would take unasked is 16 kB for each payload.
  const chunkSize = Math.max(LEAST_CHUNK, Math.min(most + 1, MOST_CHUNK));
  return loadZlib().inflateRawSync(bytes, { maxOutputLength: most, chunkSize });
}

/** What a stream of zlib has inside. `_writeState`: how much room was left by the last write, and how many bytes were not read. */
type Inside = {
  _handle?: {
    writeSync?(
      flush: number,
      from: Buffer,
      at: number,
      bytes: number,
      to: Buffer,
      place: number,
      room: number,
    ): void;
  };
  _writeState?: Uint32Array;
};

/** One for all payloads: `inflateRawSync` makes one for each, which takes several times as long as inflating a usual payload. */
let stream: (import('node:zlib').InflateRaw & Inside) | undefined;

const NOT_TOLD = 0xffff_ffff;

/**
 * Calls what `inflateRawSync` calls, which Node keeps to itself. So null wherever anything is not just as it should be: then that
 * function is asked, and knows the reason.
 */
function quicklyInflated(bytes: unknown, size: number): Buffer | null {
  if (!Buffer.isBuffer(bytes) || !Number.isInteger(size) || size < 0 || size > MOST_CHUNK) return null;
  const { createInflateRaw, constants } = loadZlib();
  stream ??= createInflateRaw({ chunkSize: LEAST_CHUNK }).on('error', () => {});
  const left = stream._writeState;
  if (typeof stream._handle?.writeSync !== 'function' || left === undefined) return null;
  // With a byte more than there is to come, zlib ends in one step.
  const room = size + 1;
  const whole = Buffer.allocUnsafe(room);
  left.fill(NOT_TOLD);
  stream.reset();
  stream._handle.writeSync(constants.Z_FINISH, bytes, 0, bytes.length, whole, 0, room);
  if (!stream.destroyed && left[0] === 1 && left[1] === 0) return whole.subarray(0, size);
  stream = undefined;
  return null;
}

/** Null: packing does not gain enough. */
export function packed(bytes: Buffer): Buffer | null {
  if (bytes.length < LEAST_BYTES) return null;
  const smaller = loadZlib().deflateRawSync(bytes, { level: LEVEL });
  return smaller.length <= bytes.length * MOST_OF_BEFORE ? smaller : null;
}
