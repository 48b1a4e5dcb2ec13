/** The heads of HTTP messages, with what becomes of them where their bodies change. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { contentCoding } from '../../protocol/http/headers.ts';

export type ResponseHead = {
  status: number;
  contentType: string;
  coding: string;
  /** For `writeHead`. */
  values: readonly unknown[];
  /** Name, value, name, value… */
  rawHeaders: readonly string[];
};

export function headOf(values: readonly unknown[], response: ServerResponse): ResponseHead {
  const [status, second, third] = values;
  const given = third ?? (typeof second === 'string' ? undefined : second);
  const rawHeaders = flat(given);
  const valueIn = (name: string) => {
    const at = rawHeaders.findIndex((one, i) => i % 2 === 0 && one.toLowerCase() === name);
    return at < 0 ? String(response.getHeader(name) ?? '') : (rawHeaders[at + 1] ?? '');
  };
  const message = typeof second === 'string' ? [second] : [];
  return {
    status: Number(status),
    contentType: valueIn('content-type'),
    coding: contentCoding(valueIn('content-encoding')),
    values: [status, ...message, rawHeaders],
    rawHeaders,
  };
}

function flat(headers: unknown): string[] {
  if (Array.isArray(headers)) return headers.flat().map(String);
  return Object.entries(headers ?? {}).flatMap(([name, value]) =>
    Array.isArray(value) ? value.flatMap((one) => [name, String(one)]) : [name, String(value)],
  );
}

/** Headers for another body, which comes without a content coding. `length` null: it says nothing of its length. */
function headersFor(rawHeaders: readonly string[], length: number | null): string[] {
  const headers: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    const lowerName = name.toLowerCase();
    if (lowerName === 'content-encoding' || (lowerName === 'content-length' && length === null)) continue;
    headers.push(name, lowerName === 'content-length' ? String(length) : value);
  }
  return headers;
}

/** The head of a response for another body. */
export function headFor(head: ResponseHead, length: number | null): ResponseHead {
  const rawHeaders = headersFor(head.rawHeaders, length);
  return { ...head, rawHeaders, values: [...head.values.slice(0, -1), rawHeaders] };
}

/** Gives a request the head for another body, before anybody has read it. */
export function setBodyHead(request: IncomingMessage, length: number): void {
  const { headers } = request;
  request.rawHeaders = headersFor(request.rawHeaders, length);
  delete headers['content-encoding'];
  if (headers['content-length'] !== undefined) headers['content-length'] = String(length);
}
