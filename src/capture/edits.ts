/**
 * The permitted edits to headers: the few places where a server names itself by its own address, so that a client
 * following it would leave the proxy. Each is a pure function that changes nothing but the origin, and only where
 * it is the upstream's. (The two in bodies: endpoint-edit.ts and metadata-edit.ts.)
 */

/** The same server as seen from its two sides, as `scheme://host:port`. */
export type Origins = { upstream: string; proxy: string };

type HeaderEdit = {
  header: string;
  appliesTo: (status: number) => boolean;
  edit: (value: string, origins: Origins) => string;
};

const RESPONSE_HEADER_EDITS: readonly HeaderEdit[] = [
  { header: 'location', appliesTo: (status) => status >= 300 && status < 400, edit: replaceOrigin },
  { header: 'www-authenticate', appliesTo: () => true, edit: editChallenge },
];

export function editResponseHeader(name: string, value: string, status: number, origins: Origins): string {
  for (const { header, appliesTo, edit } of RESPONSE_HEADER_EDITS) {
    if (name === header && appliesTo(status)) return edit(value, origins);
  }
  return value;
}

/** An absolute URL (or one that only lacks the scheme) at the upstream, as the same one at the proxy. */
export function replaceOrigin(url: string, { upstream, proxy }: Origins): string {
  const start = /^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/?#\\]*/i.exec(url)?.[0];
  if (start === undefined || !URL.canParse(start, upstream)) return url;
  const named = new URL(start, upstream);
  if (named.origin !== upstream || named.username !== '' || named.password !== '') return url;
  const isSchemeGiven = !start.startsWith('//');
  return (isSchemeGiven ? proxy : proxy.slice(proxy.indexOf('//'))) + url.slice(start.length);
}

/** The `resource_metadata` parameter of a challenge (RFC 9728, 5.1), quoted or not. */
export function editChallenge(value: string, origins: Origins): string {
  return value.replace(
    /(?<=^|[\s,])(resource_metadata\s*=\s*)(?:"([^"\\]*)"|([^\s,"]+))/gi,
    (whole: string, start: string, quoted?: string, bare?: string) => {
      const url = quoted ?? bare ?? '';
      const edited = replaceOrigin(url, origins);
      // An edited URL may hold what a bare token may not, so it is always quoted.
      return edited === url ? whole : `${start}"${edited}"`;
    },
  );
}

/** The URL that a challenge names, to know its answer by. */
export function metadataUrl(challenge: string): string | null {
  const match = /(?:^|[\s,])resource_metadata\s*=\s*(?:"([^"\\]*)"|([^\s,"]+))/i.exec(challenge);
  return match?.[1] ?? match?.[2] ?? null;
}
