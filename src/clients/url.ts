/** URL entries: a local port takes the place of the server's address; path and query stay as they are written. */

/** A URL cut behind its address. */
type Cut = { origin: string; rest: string };

/** Why the address of this URL cannot be replaced; null if it can. A variable in its path or query is no hindrance. */
export function urlProblem(url: string): string | null {
  const cut = cutUrl(url);
  if (/^[^/]*[$%{]/.test(url) || (cut !== null && /[$%{]/.test(cut.origin)))
    return 'the address in its URL is a variable, which only the client can resolve';
  if (cut === null) return 'its URL does not begin with http:// or https://';
  const { origin } = cut;
  if (!URL.canParse(origin)) return 'its URL has no valid address';
  const { username, password } = new URL(origin);
  return username + password === ''
    ? null
    : 'its URL has a user or a password in it; put them into its headers';
}

/** The URL by which tapedeck is reached on this port. */
export function localUrl(url: string, port: number): string {
  return originOf(port) + (cutUrl(url)?.rest ?? '');
}

/** The server's own URL again, of one that leads to its port. A path or query that was changed since stays changed. */
export function originalUrl(local: string, original: string): string {
  return (cutUrl(original)?.origin ?? '') + (cutUrl(local)?.rest ?? '');
}

/** The port, where the URL leads to one of this machine as `localUrl` writes it; else null. */
export function localPort(url: string): number | null {
  const digits = /^http:\/\/127\.0\.0\.1:(\d{1,5})(?![\d])/.exec(url)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** The part of a URL that may be shown. Paths hold keys and tokens too. */
export function shownUrl(url: string): string {
  return cutUrl(url)?.origin ?? '';
}

function cutUrl(url: string): Cut | null {
  const [, origin, rest] = /^(https?:\/\/[^/?#\\]*)(.*)$/is.exec(url) ?? [];
  return origin === undefined || rest === undefined ? null : { origin, rest };
}

function originOf(port: number): string {
  return `http://127.0.0.1:${port}`;
}
