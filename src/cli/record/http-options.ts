/** The options that `record <url>` has besides those of every recording. */

import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { HttpOptions } from '../../capture/http/proxy.ts';
import { readFailure, TapedeckError } from '../../errors.ts';
import { type Io, pathOf } from '../io.ts';
import { readListen } from '../listening.ts';
import { filled } from './options.ts';

export const HTTP_OPTIONS = {
  listen: {
    type: 'string',
    describe: 'With a URL: listen at host:port (default 127.0.0.1:8808; port 0 takes a free one)',
  },
  'no-edit': {
    type: 'boolean',
    describe: 'With a URL: change nothing at all, not even the server’s own addresses in its messages',
  },
  insecure: { type: 'boolean', describe: 'With a URL: accept any certificate of the server' },
  'tls-cert': {
    type: 'string',
    describe: 'With a URL: listen with TLS, with the certificate in this PEM file',
  },
  'tls-key': { type: 'string', describe: 'With a URL: the key of that certificate, as PEM' },
  'allow-host': {
    type: 'string',
    multiple: true,
    describe: 'With a URL: a Host header to accept, besides loopback; * for any; may be repeated',
  },
  'allow-origin': {
    type: 'string',
    multiple: true,
    describe: 'With a URL: an Origin to accept requests from; * for any; may be repeated',
  },
  grace: {
    type: 'string',
    describe: 'With a URL: how many seconds open streams may go on after a signal (default 5)',
  },
  drain: {
    type: 'string',
    describe: 'With --ship: how many seconds to wait at the end until all is shipped (default 10)',
  },
} as const;

/** Values as yargs returns them. */
export type RawHttpOptions = {
  listen?: string | undefined;
  'no-edit'?: boolean | undefined;
  insecure?: boolean | undefined;
  'tls-cert'?: string | undefined;
  'tls-key'?: string | undefined;
  'allow-host'?: string[] | undefined;
  'allow-origin'?: string[] | undefined;
  grace?: string | undefined;
  drain?: string | undefined;
};

/** How long an end may take, in milliseconds. */
export type EndLimits = {
  /** Open streams go on for so long. */
  graceMs: number;
  /** And then the shipper is waited for. */
  drainMs: number;
};

export type HttpRecordOptions = Omit<HttpOptions, 'onEvent' | 'onNotice' | 'onOpen'> & EndLimits;

export type ProxyOptions = Omit<HttpRecordOptions, 'upstream' | 'listen' | 'tls'>;

export const DEFAULT_LISTEN = '127.0.0.1:8808';

const DEFAULT_GRACE_S = '5';

const DEFAULT_DRAIN_S = '10';

/** Checks and completes the options. Throws `TapedeckError` `usage`. */
export function checkHttpOptions(io: Io, url: string, raw: RawHttpOptions): HttpRecordOptions {
  return {
    upstream: readUpstream(url),
    listen: readListen(filled('--listen', raw.listen) ?? DEFAULT_LISTEN),
    tls: readTls(io, filled('--tls-cert', raw['tls-cert']), filled('--tls-key', raw['tls-key'])),
    ...checkProxyOptions(raw),
  };
}

/** The options that do not say where it listens, or for which server. */
export function checkProxyOptions(raw: RawHttpOptions): ProxyOptions {
  return {
    isInsecure: raw.insecure ?? false,
    hasEdits: !(raw['no-edit'] ?? false),
    allowHosts: raw['allow-host'] ?? [],
    allowOrigins: raw['allow-origin'] ?? [],
    ...readEndLimits(raw),
  };
}

/** The first option that needs a URL, as it was written. */
export function firstHttpOption(raw: RawHttpOptions): string | undefined {
  const name = Object.keys(HTTP_OPTIONS).find((key) => raw[key as keyof RawHttpOptions] !== undefined);
  return name === undefined ? undefined : `--${name}`;
}

export function isHttpUrl(word: string): boolean {
  return /^https?:\/\//i.test(word);
}

/** Throws `TapedeckError` `usage`. */
export function readUpstream(text: string): URL {
  if (!isHttpUrl(text) || !URL.canParse(text)) {
    throw new TapedeckError(
      'usage',
      `Expected the URL of an MCP server, got \`${text}\`. Example: https://api.example.com/mcp`,
    );
  }
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') {
    throw new TapedeckError(
      'usage',
      'Expected a URL without user and password: credentials belong into the client’s config, and pass through.',
    );
  }
  return url;
}

function readTls(
  io: Io,
  certFile: string | undefined,
  keyFile: string | undefined,
): HttpRecordOptions['tls'] {
  if (certFile === undefined && keyFile === undefined) return null;
  if (certFile === undefined || keyFile === undefined) {
    throw new TapedeckError('usage', 'Expected `--tls-cert` and `--tls-key` together, got only one of them.');
  }
  const tls = { cert: readPem(io, '--tls-cert', certFile), key: readPem(io, '--tls-key', keyFile) };
  try {
    createSecureContext(tls);
    return tls;
  } catch (error) {
    const reason = (error as Error).message;
    throw new TapedeckError(
      'corrupt',
      `Expected a certificate after \`--tls-cert\` and its key after \`--tls-key\`, both as PEM: ${reason}`,
    );
  }
}

function readPem(io: Io, option: string, file: string): Buffer {
  try {
    return readFileSync(pathOf(io, file));
  } catch (error) {
    const reason = (error as Error).message;
    throw new TapedeckError(
      readFailure(error),
      `Expected a PEM file after \`${option}\`, but it cannot be read: ${reason}`,
    );
  }
}

/** Throws `TapedeckError` `usage`. */
export function readEndLimits({ grace, drain }: Pick<RawHttpOptions, 'grace' | 'drain'>): EndLimits {
  return {
    graceMs: readSeconds('--grace', grace ?? DEFAULT_GRACE_S),
    drainMs: readSeconds('--drain', drain ?? DEFAULT_DRAIN_S),
  };
}

/** In milliseconds. */
function readSeconds(option: string, text: string): number {
  const seconds = text.trim() === '' ? Number.NaN : Number(text);
  if (Number.isFinite(seconds) && seconds >= 0) return Math.min(seconds * 1000, 2 ** 31 - 1);
  throw new TapedeckError(
    'usage',
    `Expected seconds after \`${option}\`, got \`${text}\`. Example: ${option} 30`,
  );
}
