/**
 * Who may ask the viewer for what. Its store holds what others must not read: other users of this machine, and every web page
 * that a browser on it shows. Fetch Metadata: W3C, `Sec-Fetch-Site`.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { TapedeckError } from '../errors.ts';
import { createAccessCheck } from '../net/listen.ts';
import type { RequestFailure } from './work.ts';

type AccessOptions = {
  listenHost: string;
  allowHosts: readonly string[];
  allowOrigins: readonly string[];
  token: string;
};

export type Access = {
  /** Why a request is refused, whatever it is for; null where it may pass. */
  problemOf(request: IncomingMessage): RequestFailure | null;
  /** Why a request to the API is refused because of the page that made it. */
  siteProblemOf(request: IncomingMessage): RequestFailure | null;
  /** Why a request to the API is refused because of its token. */
  tokenProblemOf(request: IncomingMessage): RequestFailure | null;
};

/** The longest URL that is read, in bytes. */
const MAX_URL_BYTES = 16 * 1024;

const NO_TOKEN: RequestFailure = {
  status: 401,
  code: 'refused',
  message:
    'Expected the token of this viewer. It stands in the link that `tapedeck ui` printed when it was started.',
};

const WRONG_TOKEN: RequestFailure = {
  status: 401,
  code: 'refused',
  message:
    'This is not the token of this viewer: each start has its own. It stands in the link that `tapedeck ui` printed.',
};

export function createAccess({ listenHost, allowHosts, allowOrigins, token }: AccessOptions): Access {
  const hostProblem = createAccessCheck({ listenHost, allowHosts, allowOrigins: [] });
  const tokenProblem = createTokenCheck(token);
  return {
    problemOf({ method = '', url = '', headers }) {
      const { host, origin } = headers;
      const problem = hostProblem(host === undefined ? {} : { host });
      if (problem !== null) return forbidden(problem);
      const isOwn = origin === undefined || origin === `http://${host}` || allowOrigins.includes(origin);
      if (!isOwn) return forbidden(`refused the Origin ${JSON.stringify(origin)}; --allow-origin allows it`);
      if (method !== 'GET' && method !== 'HEAD')
        return {
          status: 405,
          code: 'refused',
          message: `Expected GET or HEAD, got ${method}: nothing here can be changed.`,
        };
      if (Buffer.byteLength(url) > MAX_URL_BYTES)
        return { status: 414, code: 'refused', message: `Expected a URL of at most ${MAX_URL_BYTES} bytes.` };
      return null;
    },
    siteProblemOf({ headers }) {
      const site = headers['sec-fetch-site'];
      if (site === undefined || site === 'same-origin') return null;
      return forbidden(`refused a request that another page made (Sec-Fetch-Site: ${JSON.stringify(site)})`);
    },
    tokenProblemOf({ headers }) {
      const problem = tokenProblem(headers);
      if (problem === null) return null;
      return problem === 'none' ? NO_TOKEN : WRONG_TOKEN;
    },
  };
}

/** Whether a request bears a token; null: it does. */
export function createTokenCheck(token: string): (headers: IncomingHttpHeaders) => 'none' | 'wrong' | null {
  const expected = digestOf(token);
  return ({ authorization = '' }) => {
    const [, given] = /^Bearer +(\S+)$/i.exec(authorization) ?? [];
    if (given === undefined) return 'none';
    return timingSafeEqual(digestOf(given), expected) ? null : 'wrong';
  };
}

function forbidden(message: string): RequestFailure {
  return { status: 403, code: 'refused', message };
}

/** Of one length, so that the comparison tells nothing about the length either. */
function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** An origin as browsers send it. Throws `TapedeckError` `usage`. */
export function checkedOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && (url.origin === text || `${url.origin}/` === text))
    return url.origin;
  throw new TapedeckError(
    'usage',
    `Expected an origin after \`--allow-origin\`, got \`${text}\`. Example: https://viewer.example`,
  );
}
