/** The head of a response, as `writeHead` was given it. */

import type { ServerResponse } from 'node:http';
import { contentCoding } from '../protocol/http/headers.ts';

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

/** The head for a body of so many bytes, where it says how many there are. */
export function withLength(head: ResponseHead, length: number): ResponseHead {
  const rawHeaders = head.rawHeaders.map((text, i) =>
    i % 2 === 1 && head.rawHeaders[i - 1]?.toLowerCase() === 'content-length' ? String(length) : text,
  );
  return { ...head, rawHeaders, values: [...head.values.slice(0, -1), rawHeaders] };
}
