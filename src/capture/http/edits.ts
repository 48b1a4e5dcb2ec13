import zlib from 'node:zlib';
import { eachMember, type Span, skipSpace, stringText, typeAt } from '../../protocol/json/read.ts';

/**
 * The permitted edits to headers: the few places where a server names itself by its own address, so that a client
 * following it would leave the proxy. Each is a pure function that changes nothing but the origin, and only where
 * it is the upstream's. The two edits to bodies follow below.
 */

/** The same server as seen from its two sides, as `scheme://host:port`. */
export type Origins = { upstream: string; proxy: string };

type HeaderEdit = {
  header: string;
  appliesTo: (status: number) => boolean;
  edit: (value: string, origins: Origins) => string;
};

const RESPONSE_HEADER_EDITS: readonly HeaderEdit[] = [
  { header: 'location', appliesTo: (status) => status >= 300 && status < 400, edit: replaceOrigin },
  { header: 'www-authenticate', appliesTo: () => true, edit: editChallenge },
];

export function editResponseHeader(name: string, value: string, status: number, origins: Origins): string {
  for (const { header, appliesTo, edit } of RESPONSE_HEADER_EDITS) {
    if (name === header && appliesTo(status)) return edit(value, origins);
  }
  return value;
}

/** An absolute URL (or one that only lacks the scheme) at the upstream, as the same one at the proxy. */
export function replaceOrigin(url: string, { upstream, proxy }: Origins): string {
  const start = /^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/?#\\]*/i.exec(url)?.[0];
  if (start === undefined || !URL.canParse(start, upstream)) return url;
  const named = new URL(start, upstream);
  if (named.origin !== upstream || named.username !== '' || named.password !== '') return url;
  const isSchemeGiven = !start.startsWith('//');
  return (isSchemeGiven ? proxy : proxy.slice(proxy.indexOf('//'))) + url.slice(start.length);
}

/** The `resource_metadata` parameter of a challenge (RFC 9728, 5.1), quoted or not. */
export function editChallenge(value: string, origins: Origins): string {
  return value.replace(
    /(?<=^|[\s,])(resource_metadata\s*=\s*)(?:"([^"\\]*)"|([^\s,"]+))/gi,
    (whole: string, start: string, quoted?: string, bare?: string) => {
      const url = quoted ?? bare ?? '';
      const edited = replaceOrigin(url, origins);
      // An edited URL may hold what a bare token may not, so it is always quoted.
      return edited === url ? whole : `${start}"${edited}"`;
    },
  );
}

/** The URL that a challenge names, to know its answer by. */
export function metadataUrl(challenge: string): string | null {
  const match = /(?:^|[\s,])resource_metadata\s*=\s*(?:"([^"\\]*)"|([^\s,"]+))/i.exec(challenge);
  return match?.[1] ?? match?.[2] ?? null;
}

/**
 * The permitted edit to a legacy HTTP+SSE stream: its first event, `endpoint`, names the URL to post to, and clients
 * refuse one at another origin than the stream's (specification 2024-11-05, basic/transports). An absolute URL at
 * the upstream becomes the same one at the proxy. Input: the stream's bytes, cut anywhere. Output: the same bytes,
 * as they come, except that the first event is held from its first line on until it is whole, which no reader of events
 * can notice. What stands before it (comments, `id`, `retry`) is not held.
 */

export type BodyEdit = {
  /** What may go on now. */
  feed(bytes: Buffer): EditedBytes;
  /** The body is over: what was still held. */
  end(): EditedBytes;
};

/** `original` only where the edit made a difference. */
export type EditedBytes = { bytes: Buffer; original?: Buffer };

/** A first event larger than this is no `endpoint`. */
const MAX_HELD_BYTES = 64 * 1024;

const NOTHING: Buffer = Buffer.alloc(0);

const LF = 0x0a;

const CR = 0x0d;

/** May stand at the very beginning of a stream, and belongs to no line (WHATWG HTML, 9.2.5). */
const BYTE_ORDER_MARK = '\xef\xbb\xbf';

export function createEndpointEdit(origins: Origins): BodyEdit {
  let held: Buffer = NOTHING;
  let scanned = 0;
  /** The first event has begun, and stands at the beginning of what is held. */
  let isEvent = false;
  /** Nothing has been released: a byte order mark may come. */
  let isStart = true;
  /** The line whose beginning was released last is not over. */
  let isInLine = false;
  let isDone = false;

  function feed(bytes: Buffer): EditedBytes {
    if (isDone) return { bytes };
    held = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
    const before = isEvent ? NOTHING : release();
    if (!isEvent) return { bytes: before };
    const end = blockEnd(held, scanned);
    scanned = held.length;
    if (end >= 0) return finish(before, end);
    return held.length > MAX_HELD_BYTES ? joined(before, endHeld()) : { bytes: before };
  }

  /** Takes what cannot belong to the first event from what is held. */
  function release(): Buffer {
    let from = 0;
    while (from < held.length) {
      const end = lineEnd(held, from);
      const isWhole = end < held.length;
      if (!isInLine) {
        const text = held.toString('latin1', from, Math.min(end, from + LONGEST_START));
        const start = isStart && from === 0 ? withoutMark(text) : text;
        isEvent = EVENT_LINE.test(isWhole ? `${start}:` : start);
        if (isEvent || (!isWhole && mayBecomeEvent(start))) break;
      }
      isInLine = !isWhole;
      from = isWhole ? end + 1 : end;
    }
    const bytes = held.subarray(0, from);
    held = held.subarray(from);
    if (from > 0) isStart = false;
    return bytes;
  }

  /** The first event ends at `end`: it is edited, and nothing after it is looked at. */
  function finish(before: Buffer, end: number): EditedBytes {
    const event = held.subarray(0, end);
    const edited = editEvent(event, isStart, origins);
    const rest = held.subarray(end);
    const original = endHeld();
    if (edited === null) return joined(before, original);
    return { bytes: Buffer.concat([before, edited, rest]), original: Buffer.concat([before, original]) };
  }

  function endHeld(): Buffer {
    isDone = true;
    const bytes = held;
    held = NOTHING;
    return bytes;
  }

  return { feed, end: () => ({ bytes: endHeld() }) };
}

function joined(a: Buffer, b: Buffer): EditedBytes {
  return { bytes: a.length === 0 ? b : Buffer.concat([a, b]) };
}

/** Comments, `id` and `retry` alone make no event. */
const EVENT_LINE = /^(?:event|data):/;

/** A byte order mark, the longer field name, and its colon. */
const LONGEST_START = BYTE_ORDER_MARK.length + 'event:'.length;

function mayBecomeEvent(start: string): boolean {
  return (
    EVENT_LINE.test(start) || ['event:', 'data:', `${BYTE_ORDER_MARK}e`].some((one) => one.startsWith(start))
  );
}

function withoutMark(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(BYTE_ORDER_MARK.length) : text;
}

/** Position of the next LF or CR at or after `from`, or the length. */
function lineEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== LF && bytes[at] !== CR) at += 1;
  return at;
}

/** Position after the first empty line at or after `from`, or -1. A line ends with LF, CR LF or CR. */
function blockEnd(bytes: Buffer, from: number): number {
  for (let i = from; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (byte !== LF && byte !== CR) continue;
    const before = bytes[i - 1];
    if (byte === LF && before === CR) continue;
    if (before === LF || before === CR) return byte === CR && bytes[i + 1] === LF ? i + 2 : i + 1;
  }
  return -1;
}

/** The event with its URL replaced, or null if it has none to replace. `isStart`: nothing of the stream was before it. */
function editEvent(event: Buffer, isStart: boolean, origins: Origins): Buffer | null {
  const text = event.toString('latin1');
  const body = isStart ? withoutMark(text) : text;
  if (!/^event: ?endpoint$/m.test(body.replaceAll('\r', '\n'))) return null;
  const edited = body.replace(
    /(^|[\r\n])(data: ?)([^\r\n]*)/,
    (_whole, before: string, field: string, url: string) => before + field + replaceOrigin(url, origins),
  );
  return edited === body ? null : Buffer.from(text.slice(0, text.length - body.length) + edited, 'latin1');
}

/**
 * The permitted edit to protected-resource metadata (RFC 9728): its `resource` names the MCP server, and clients
 * refuse metadata whose `resource` is not the URL that they connect to. The rest of the JSON text stays as it is.
 * The body is small, so it is taken whole; one that grows beyond the bound goes on unchanged.
 */

export const MAX_METADATA_BYTES = 1024 * 1024;

type Coding = { decode: (bytes: Buffer) => Buffer; encode: (bytes: Buffer) => Buffer };

const LIMIT = { maxOutputLength: MAX_METADATA_BYTES };

const CODINGS: Readonly<Record<string, Coding>> = {
  identity: { decode: (bytes) => bytes, encode: (bytes) => bytes },
  gzip: { decode: (bytes) => zlib.gunzipSync(bytes, LIMIT), encode: (bytes) => zlib.gzipSync(bytes) },
  deflate: { decode: (bytes) => zlib.inflateSync(bytes, LIMIT), encode: (bytes) => zlib.deflateSync(bytes) },
  br: {
    decode: (bytes) => zlib.brotliDecompressSync(bytes, LIMIT),
    encode: (bytes) => zlib.brotliCompressSync(bytes),
  },
};

/** The body to send in place of `body`, in the same content coding; null if there is nothing to edit in it. */
export function editMetadata(body: Buffer, contentCoding: string, origins: Origins): Buffer | null {
  const coding = CODINGS[contentCoding];
  if (coding === undefined) return null;
  try {
    const edited = editResource(coding.decode(body), origins);
    return edited === null ? null : coding.encode(edited);
  } catch {
    // Not what its Content-Encoding says, or too large: not ours to judge.
    return null;
  }
}

function editResource(json: Buffer, origins: Origins): Buffer | null {
  const start = skipSpace(json, 0);
  if (typeAt(json, start) !== 'object') return null;
  const resources: Span[] = [];
  const end = eachMember(json, start, (key, value) => {
    if (key === 'resource' && value.type === 'string') resources.push(value);
  });
  if (end < 0) return null;
  const pieces: Buffer[] = [];
  let copied = 0;
  for (const span of resources) {
    const url = stringText(json, span);
    const edited = replaceOrigin(url, origins);
    if (edited === url) continue;
    pieces.push(json.subarray(copied, span.start), Buffer.from(JSON.stringify(edited)));
    copied = span.end;
  }
  return pieces.length === 0 ? null : Buffer.concat([...pieces, json.subarray(copied)]);
}
