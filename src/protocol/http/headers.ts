/**
 * HTTP headers in their two forms: raw lists, as Node reads them off the wire (name, value, name, value …), and fields, as
 * the store returns them. Both keep case, order and duplicates. Lookups take the name in lower case.
 */

import { memoize } from '../bounded.ts';

/** `[[name, value], [name, value], …]` */
export type HeaderFields = [name: string, value: string][];

export const JSON_TYPE = 'application/json';

export const EVENTS_TYPE = 'text/event-stream';

/** The value of a header in a raw list, the first of several; `''` where there is none. */
export function headerOf(raw: readonly string[] | null, lowerName: string): string {
  if (raw === null) return '';
  for (let i = 0; i + 1 < raw.length; i += 2)
    if (isNamed(raw[i] as string, lowerName)) return raw[i + 1] ?? '';
  return '';
}

export function countHeader(raw: readonly string[], lowerName: string): number {
  let count = 0;
  for (let i = 0; i < raw.length; i += 2) if (isNamed(raw[i] as string, lowerName)) count += 1;
  return count;
}

export function fieldsOf(raw: readonly string[]): HeaderFields {
  const fields: HeaderFields = [];
  for (let i = 0; i + 1 < raw.length; i += 2) fields.push([raw[i] as string, raw[i + 1] as string]);
  return fields;
}

/** The value of a header, the first of several; undefined where there is none. */
export function fieldOf(fields: HeaderFields, lowerName: string): string | undefined {
  return fields.find(([name]) => isNamed(name, lowerName))?.[1];
}

/** By names in lower case. Several fields of one name are one list, with commas between (RFC 9110, 5.3). */
export function joinedFields(fields: HeaderFields): Map<string, string> {
  const joined = new Map<string, string>();
  for (const [name, value] of fields) {
    const key = name.toLowerCase();
    const before = joined.get(key);
    joined.set(key, before === undefined ? value : `${before}, ${value}`);
  }
  return joined;
}

/** The media type in the value of a `Content-Type`: in lower case, without parameters; `''` where there is none. */
export function mediaType(contentType: string | undefined): string {
  return contentType === undefined ? '' : readMediaType(contentType);
}

const readMediaType = memoize((contentType) => (contentType.split(';')[0] ?? '').trim().toLowerCase());

/** The media type of a head. */
export function mediaTypeOf(raw: readonly string[] | null): string {
  return mediaType(headerOf(raw, 'content-type'));
}

/** The coding in the value of a `Content-Encoding`, in lower case: `gzip`; `identity` where there is none. */
export function contentCoding(contentEncoding: string | undefined): string {
  return contentEncoding?.trim().toLowerCase() || 'identity';
}

/** The content coding of a head. */
export function contentCodingOf(raw: readonly string[] | null): string {
  return contentCoding(headerOf(raw, 'content-encoding'));
}

/** Compares lengths first: most names differ in them. */
function isNamed(name: string, lowerName: string): boolean {
  return name.length === lowerName.length && name.toLowerCase() === lowerName;
}
