/**
 * The permitted edit to protected-resource metadata (RFC 9728): its `resource` names the MCP server, and clients
 * refuse metadata whose `resource` is not the URL that they connect to. The rest of the JSON text stays as it is.
 * The body is small, so it is taken whole; one that grows beyond the bound goes on unchanged.
 */
import zlib from 'node:zlib';
import { eachMember, type Span, skipSpace, stringText, typeAt } from '../protocol/json.ts';
import { type Origins, replaceOrigin } from './edits.ts';

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
