/**
 * Redacts credentials in the heads of HTTP messages, by the name of the header or query parameter that carries them. The
 * same secret gets the same placeholder, so equal secrets can still be recognised; no part of a secret is kept.
 */

import { isSecretInHeads } from './names.ts';

/** Makes the placeholder of a secret. */
export type Placeholder = (secret: string) => string;

/** Headers that hold a URL. */
const URL_HEADERS = new Set(['location', 'referer', 'content-location', 'x-original-url', 'x-forwarded-uri']);

/** They say how, not what. Any other first word may be a part of the secret. */
const SCHEME =
  /^(?:basic|bearer|digest|dpop|gnap|hoba|mutual|negotiate|ntlm|oauth|privatetoken|scram-sha-1|scram-sha-256|vapid|aws4-hmac-sha256|token|apikey|api-key) +(?=\S)/i;

const COOKIE = /^([^=;]*=)?([^;]*)/;

/** A header's value with what is secret in it replaced. */
export function redactHeader(name: string, value: string, placeholder: Placeholder): string {
  const lowerName = name.toLowerCase();
  if (URL_HEADERS.has(lowerName)) return redactUrl(value, placeholder);
  if (value === '' || !isSecretInHeads(name)) return value;
  if (lowerName === 'cookie')
    return value
      .split(';')
      .map((pair) => redactCookie(pair, placeholder))
      .join(';');
  if (lowerName === 'set-cookie') return redactCookie(value, placeholder);
  const scheme = /auth(?:orization|entication)?$/.test(lowerName) ? (SCHEME.exec(value)?.[0] ?? '') : '';
  return scheme + placeholder(value.slice(scheme.length));
}

/** A URL or request target with the secrets of its query and its user information replaced. */
export function redactUrl(url: string, placeholder: Placeholder): string {
  const withoutUser = url.replace(
    /^((?:[a-z][a-z0-9+.-]*:)?\/\/)([^/?#]*)@/i,
    (_whole, start: string, user: string) => `${start}${placeholder(user)}@`,
  );
  return withoutUser.replace(
    /([?&#;])([^=?&#;]+)=([^&#;]*)/g,
    (whole, before: string, name: string, value: string) =>
      value !== '' && isSecretInHeads(decoded(name)) ? `${before}${name}=${placeholder(value)}` : whole,
  );
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Name, value, name, value … with the secret values replaced. */
export function redactHeaders(rawHeaders: readonly string[], placeholder: Placeholder): string[] {
  return rawHeaders.map((text, i) =>
    i % 2 === 0 ? text : redactHeader(rawHeaders[i - 1] ?? '', text, placeholder),
  );
}

/** One pair, or a cookie without a name; the attributes of a `Set-Cookie` stay. */
function redactCookie(pair: string, placeholder: Placeholder): string {
  return pair.replace(COOKIE, (whole, name: string | undefined, value: string) =>
    value.trim() === '' ? whole : (name ?? '') + placeholder(value),
  );
}
