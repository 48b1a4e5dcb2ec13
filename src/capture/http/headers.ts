/**
 * Headers on their way through the proxy, as raw lists (name, value, name, value…): names, case, order and duplicates
 * stay. Only what belongs to the connection rather than to the message (RFC 9110, 7.6.1) is left out, for Node to
 * write anew, and the framing is made certain: where two readers could disagree about where a body ends, a hidden
 * request may stand in between (request smuggling; RFC 9112, 11.2).
 */

import type { IncomingMessage } from 'node:http';
import { countHeader } from '../../protocol/http/headers.ts';
import type { HeaderEdit } from '../../protocol/wire/http-event.ts';

/** What a header becomes; the same value means that it stays. */
type EditHeader = (lowerName: string, value: string) => string;

export type RelayedHeaders = {
  /** What goes on to the other side. */
  forwarded: string[];
  /** What its sender wrote, with the edits in place: for the record. */
  shown: readonly string[];
  edits: readonly HeaderEdit[];
};

type Framing = 'as-it-stands' | 'without-chunks';

const NO_EDITS: readonly HeaderEdit[] = [];

/** Of the connection, not of the message. `TE` stays: the only value in use, `trailers`, is one that we honour. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'upgrade']);

/** Must not be made to vanish by being named in `Connection`. */
const NEVER_HOP_BY_HOP = new Set(['host', 'content-length', 'transfer-encoding', 'te', 'trailer']);

const USUAL_CONNECTION = /^(?:keep-alive|close)?$/i;

export function relayHeaders(raw: readonly string[], edit: EditHeader, framing: Framing): RelayedHeaders {
  const forwarded: string[] = [];
  const hasChunks = framing === 'as-it-stands' && countHeader(raw, 'transfer-encoding') > 0;
  const named = namedInConnection(raw);
  let shown: string[] | undefined;
  let edits: HeaderEdit[] | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string;
    const original = raw[i + 1] as string;
    const lowerName = name.toLowerCase();
    const value = edit(lowerName, original);
    if (value !== original) {
      shown ??= [...raw];
      shown[i + 1] = value;
      edits ??= [];
      edits.push({ header: name, original });
    }
    if (HOP_BY_HOP.has(lowerName) || named?.has(lowerName)) continue;
    // Node refuses to announce trailers where no chunks can carry them.
    if (!hasChunks && (lowerName === 'trailer' || lowerName === 'transfer-encoding')) continue;
    if (hasChunks && lowerName === 'content-length') continue;
    forwarded.push(name, value);
  }
  return { forwarded, shown: shown ?? raw, edits: edits ?? NO_EDITS };
}

/** Why a request must not be forwarded, since its end could be read in two ways; null if it may. */
export function findFramingProblem(request: IncomingMessage): string | null {
  const { headers, rawHeaders, httpVersion } = request;
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined) {
    if (encoding.toLowerCase() !== 'chunked') return 'its Transfer-Encoding is not just `chunked`';
    if (headers['content-length'] !== undefined) return 'it has both Content-Length and Transfer-Encoding';
    if (httpVersion !== '1.1') return `Transfer-Encoding is unknown to HTTP/${httpVersion}`;
  }
  if (countHeader(rawHeaders, 'host') > 1) return 'it has several Host headers';
  return null;
}

/** A server may overlook a body here; its connection is not used again, lest the body be taken for a request. */
export function isBodyUnexpected({ method, headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return true;
  return isBodyless(method) && Number(headers['content-length'] ?? 0) > 0;
}

/** Methods for which no length means no body to every reader. */
export function isBodyless(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'DELETE' || method === 'OPTIONS';
}

function namedInConnection(raw: readonly string[]): Set<string> | undefined {
  let named: Set<string> | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    if (name.length !== 'connection'.length || name.toLowerCase() !== 'connection') continue;
    const value = raw[i + 1] as string;
    if (USUAL_CONNECTION.test(value)) continue;
    named ??= new Set();
    for (const token of value.toLowerCase().split(',')) {
      const header = token.trim();
      if (!NEVER_HOP_BY_HOP.has(header)) named.add(header);
    }
  }
  return named;
}
