/** The bytes of a frame, and what its sender had sent where it was edited: a range of them (RFC 9110, 14.2), or all. */

import { TapedeckError } from '../../errors.ts';
import { originalBytes, payloadBytes, type StoredBytes } from '../../store/read/slices.ts';
import { emitFreshness, entityTag, numberParam, sessionParam } from '../params.ts';
import type { Work } from '../work.ts';

export const bytesWork: Work = async (store, params, emit, isLeft) => {
  const session = sessionParam(store, params);
  const seq = numberParam(params, 'seq', { least: 1, most: Number.MAX_SAFE_INTEGER });
  const bytes = payloadBytes(store, session.number, seq);
  if (bytes === undefined) throw new TapedeckError('not-found', `Session ${session.id} has no frame ${seq}.`);
  if (await emitFreshness(store, session, params, emit)) return;
  await emitRange(
    bytes,
    `${session.id}-${seq}.bin`,
    params['range'],
    entityTag(store, session),
    emit,
    isLeft,
  );
};

export const originalWork: Work = async (store, params, emit, isLeft) => {
  const session = sessionParam(store, params);
  const seq = numberParam(params, 'seq', { least: 1, most: Number.MAX_SAFE_INTEGER });
  const bytes = originalBytes(store, session.number, seq);
  if (bytes === undefined)
    throw new TapedeckError(
      'not-found',
      `Frame ${seq} of session ${session.id} has no original: nothing edited it.`,
    );
  if (await emitFreshness(store, session, params, emit)) return;
  await emitRange(
    bytes,
    `${session.id}-${seq}-original.bin`,
    params['range'],
    entityTag(store, session),
    emit,
    isLeft,
  );
};

/** In pieces, so that a frame of any size takes no more memory than they do. */
async function emitRange(
  bytes: StoredBytes,
  name: string,
  asked: string | undefined,
  etag: string | null,
  emit: Parameters<Work>[2],
  isLeft: () => boolean,
): Promise<void> {
  const range = rangeOf(asked, bytes.size);
  const headers = {
    'Accept-Ranges': 'bytes',
    'Content-Disposition': `attachment; filename="${name}"`,
    ...(etag === null ? {} : { ETag: etag, 'Cache-Control': 'private, no-cache' }),
  };
  if (range === 'unsatisfiable') {
    await emit({
      status: 416,
      headers: { ...headers, 'Content-Range': `bytes */${bytes.size}`, 'Content-Length': '0' },
    });
    return;
  }
  const { from, to } = range ?? { from: 0, to: bytes.size };
  const part = range === null ? {} : { 'Content-Range': `bytes ${from}-${to - 1}/${bytes.size}` };
  const status = range === null ? 200 : 206;
  await emit({ status, headers: { ...headers, ...part, 'Content-Length': String(to - from) } });
  for (let at = from; at < to && !isLeft(); ) {
    const piece = bytes.from(at).subarray(0, to - at);
    // Gone meanwhile: what was promised cannot be sent.
    if (piece.length === 0) throw new TapedeckError('not-found', 'The frame was removed while it was read.');
    at += piece.length;
    await emit(piece);
  }
}

/** One range of bytes, `to` not included. Null where none is asked for, or several are, which may be answered with all. */
function rangeOf(
  asked: string | undefined,
  size: number,
): { from: number; to: number } | 'unsatisfiable' | null {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(asked ?? '') ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return null;
  if (first === '')
    return last === '0' || size === 0
      ? 'unsatisfiable'
      : { from: Math.max(0, size - Number(last)), to: size };
  const from = Number(first);
  const to = last === '' ? size : Math.min(size, Number(last) + 1);
  if (last !== '' && Number(last) < from) return null;
  return from >= size ? 'unsatisfiable' : { from, to };
}
