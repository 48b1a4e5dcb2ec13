/**
 * HTTP headers that repeat what a message's body says: how their values are written, and which arguments of a tool its
 * input schema wants repeated as `Mcp-Param-<name>`.
 * Specification: 2026-07-28, basic/transports/streamable-http, "Custom Headers from Tool Parameters".
 */

/** The keyword of a schema that names a header. */
export const ANNOTATION = 'x-mcp-header';

/** `path`: from the arguments to the value. */
export type ParamHeader = { header: string; path: readonly string[] };

/** The names of headers that repeat arguments begin so. */
export const PARAM_PREFIX = 'Mcp-Param-';

const ENCODED = /^=\?base64\?(.*)\?=$/;

const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/** Deeper than any schema. */
const MAX_DEPTH = 100;

/** A header's value for a text: in base64 what no header can hold. */
export function headerText(text: string): string {
  const isPlain = text === '' || (PLAIN.test(text) && !ENCODED.test(text));
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}

export function decodedHeader(value: string): string {
  const base64 = ENCODED.exec(value)?.[1];
  return base64 === undefined ? value : Buffer.from(base64, 'base64').toString();
}

/** Why nobody may send such a value: `é` as it is, base64 that is none. Null where all is well. */
export function headerFault(value: string): string | null {
  if (!/^[\t\x20-\x7e]*$/.test(value)) return 'characters that belong into base64';
  const base64 = ENCODED.exec(value)?.[1];
  return base64 === undefined || BASE64.test(base64) ? null : 'no base64';
}

/** Whether a name can be that of a header (RFC 9110, 5.1). */
export function isToken(name: string): boolean {
  return TOKEN.test(name);
}

/** What an input schema wants repeated: `x-mcp-header` counts where a chain of `properties` leads to it. */
export function paramHeadersOf(inputSchema: unknown, path: readonly string[] = []): ParamHeader[] {
  if (path.length > MAX_DEPTH) return [];
  const name = memberOf(inputSchema, ANNOTATION);
  const own =
    path.length > 0 && typeof name === 'string' && isToken(name)
      ? [{ header: PARAM_PREFIX + name, path }]
      : [];
  const properties = memberOf(inputSchema, 'properties');
  if (typeof properties !== 'object' || properties === null) return own;
  const inner = Object.entries(properties).flatMap(([key, value]) => paramHeadersOf(value, [...path, key]));
  return [...own, ...inner];
}

/** The argument that a header repeats; undefined where there is none. */
export function paramValue(args: unknown, { path }: ParamHeader): unknown {
  let value = args;
  for (const key of path) value = memberOf(value, key);
  return value;
}

/** Its text; null where none is repeated: no such argument, null, or no scalar. */
export function paramText(args: unknown, param: ParamHeader): string | null {
  const value = paramValue(args, param);
  if (typeof value === 'number') {
    const isExact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
    return isExact ? String(value) : null;
  }
  return typeof value === 'string' || typeof value === 'boolean' ? String(value) : null;
}

/** Numbers are compared as numbers: `42.0` is `42`. */
export function saysSame(header: string, text: string): boolean {
  const value = decodedHeader(header);
  return value === text || (DECIMAL.test(value) && DECIMAL.test(text) && Number(value) === Number(text));
}

function memberOf(value: unknown, name: string): unknown {
  const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
  return isThere ? (value as Record<string, unknown>)[name] : undefined;
}
