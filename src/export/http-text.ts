/** What exports of HTTP have in common. */
import type { HeaderFields } from '../store/http-reader.ts';

/** Where a request went: the upstream's own origin, and the path as it was asked for. */
export function upstreamUrl(target: string, path: string): URL {
  const { origin } = new URL(target);
  // `OPTIONS *` asks for no path.
  return new URL(path.startsWith('/') ? origin + path : origin);
}

/** The first value of a header. */
export function headerOf(headers: HeaderFields, lowerName: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === lowerName)?.[1];
}
