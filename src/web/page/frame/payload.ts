/** The bytes of a frame as text, whatever they are, and all of them where the answer had only the beginning. */
import { useEffect, useState } from 'preact/hooks';
import type { FrameDetail } from '../../api.ts';
import { type ApiFailure, failureOf, source } from '../shell/source.ts';

export type Payload = { text: string | null; failure: ApiFailure | null };

/** The text of the whole frame; null until it is there. */
export function usePayload(frame: FrameDetail): Payload {
  const atHand = frame.cut ? null : (frame.text ?? null);
  const [payload, setPayload] = useState<Payload>({ text: atHand, failure: null });
  useEffect(() => {
    if (atHand !== null) return setPayload({ text: atHand, failure: null });
    const abort = new AbortController();
    source()
      .bytes(bytesPath(frame), abort.signal)
      .then((bytes) => decode(bytes, abort.signal))
      .then((text) => setPayload({ text, failure: null }))
      .catch((error) => {
        if (!abort.signal.aborted) setPayload({ text: null, failure: failureOf(error) });
      });
    return () => abort.abort();
  }, [frame]);
  return payload;
}

export function bytesPath({ session, seq }: FrameDetail): string {
  return `sessions/${session}/frames/${seq}/bytes`;
}

const PIECE = 1 << 20;

/** As UTF-8; a byte that is none becomes a character that no UTF-8 has (U+DC80 and up), so that it is shown as what it is. */
async function decode(bytes: Uint8Array, signal: AbortSignal): Promise<string> {
  const pieces: string[] = [];
  for (let from = 0; from < bytes.length; ) {
    const to = boundary(bytes, Math.min(bytes.length, from + PIECE));
    pieces.push(decodePiece(bytes.subarray(from, to)));
    from = to;
    if (from < bytes.length) await new Promise((done) => setTimeout(done));
    signal.throwIfAborted();
  }
  return pieces.join('');
}

/** The start of the character that a place is in. */
function boundary(bytes: Uint8Array, place: number): number {
  let at = place;
  while (at > place - 3 && at > 0 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at -= 1;
  return at === bytes.length || ((bytes[at] ?? 0) & 0xc0) !== 0x80 ? at : place;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decodePiece(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    return decodeByCharacter(bytes);
  }
}

function decodeByCharacter(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const length = lengthAt(bytes[at] ?? 0);
    try {
      text += UTF8.decode(bytes.subarray(at, at + length));
      at += length;
    } catch {
      text += String.fromCharCode(0xdc00 + (bytes[at] ?? 0));
      at += 1;
    }
  }
  return text;
}

function lengthAt(lead: number): number {
  if (lead < 0xc0) return 1;
  if (lead < 0xe0) return 2;
  return lead < 0xf0 ? 3 : 4;
}

/** What an event of a stream carries; the text itself of any other frame. */
export function carriedText(frame: FrameDetail, text: string): string {
  if (frame.sse === null) return text;
  if (!frame.cut && frame.sse.data != null) return frame.sse.data;
  const lines = text.split(/\r\n|\r|\n/).filter((line) => line.startsWith('data:'));
  return lines.map((line) => line.slice(line.startsWith('data: ') ? 6 : 5)).join('\n');
}
