/**
 * The permitted edit to a legacy HTTP+SSE stream: its first event, `endpoint`, names the URL to post to, and clients
 * refuse one at another origin than the stream's (specification 2024-11-05, basic/transports). An absolute URL at
 * the upstream becomes the same one at the proxy. Input: the stream's bytes, cut anywhere. Output: the same bytes,
 * as they come, except that the first event is held until it is whole, which no reader of events can notice.
 */
import { type Origins, replaceOrigin } from './edits.ts';

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

export function createEndpointEdit(origins: Origins): BodyEdit {
  let held: Buffer = NOTHING;
  let scanned = 0;
  let isDone = false;

  function feed(bytes: Buffer): EditedBytes {
    if (isDone) return { bytes };
    held = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
    let released = 0;
    for (;;) {
      const end = blockEnd(held, scanned, released);
      if (end < 0) break;
      scanned = end;
      if (isEvent(held.subarray(released, end))) return finish(released, end);
      released = end;
    }
    if (held.length - released > MAX_HELD_BYTES) return end();
    return release(released);
  }

  /** The first event stands at `start` up to `end`: it is edited, and nothing after it is looked at. */
  function finish(start: number, end: number): EditedBytes {
    isDone = true;
    const event = held.subarray(start, end);
    const edited = editEvent(event, origins);
    const original = held;
    held = NOTHING;
    if (edited === null) return { bytes: original };
    return {
      bytes: Buffer.concat([original.subarray(0, start), edited, original.subarray(end)]),
      original,
    };
  }

  function release(length: number): EditedBytes {
    const bytes = held.subarray(0, length);
    held = held.subarray(length);
    scanned = held.length;
    return { bytes };
  }

  function end(): EditedBytes {
    isDone = true;
    const bytes = held;
    held = NOTHING;
    return { bytes };
  }

  return { feed, end };
}

/** Position after the first empty line at or after `from`, or -1. A line ends with LF, CR LF or CR. */
function blockEnd(bytes: Buffer, from: number, blockStart: number): number {
  for (let i = from; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (byte !== LF && byte !== CR) continue;
    const before = i === blockStart ? LF : bytes[i - 1];
    if (byte === LF && before === CR) continue;
    if (before === LF || before === CR) return byte === CR && bytes[i + 1] === LF ? i + 2 : i + 1;
  }
  return -1;
}

/** Comments, `id` and `retry` alone make no event. */
function isEvent(block: Buffer): boolean {
  return /^(?:\xef\xbb\xbf)?(?:event|data)(?::|$)/m.test(linesOf(block));
}

/** The event with its URL replaced, or null if it has none to replace. */
function editEvent(event: Buffer, origins: Origins): Buffer | null {
  if (!/^event: ?endpoint$/m.test(linesOf(event))) return null;
  const text = event.toString('latin1');
  const edited = text.replace(
    /(^|[\r\n])(data: ?)([^\r\n]*)/,
    (_whole, before: string, field: string, url: string) => before + field + replaceOrigin(url, origins),
  );
  return edited === text ? null : Buffer.from(edited, 'latin1');
}

/** Latin-1 keeps every byte; what the fields mean is ASCII. */
function linesOf(block: Buffer): string {
  return block.toString('latin1').replaceAll('\r', '\n');
}
