/**
 * Reaching an engine: where it is, who we are there, and whether it is the one that it claims to be. URL, service file,
 * password file and environment mean what they mean to psql:
 * https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING
 */

import { readFileSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import type { Client, ClientConfig } from 'pg';
import { TapedeckError } from '../errors.ts';
import { homeFolder, isEngineUrl } from '../store/file/path.ts';
import { engineError } from './trouble.ts';

/** Settings, as a URL and a service file call them. */
const SETTINGS = [
  'host',
  'port',
  'user',
  'dbname',
  'password',
  'passfile',
  'service',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'options',
  'connect_timeout',
] as const;

/** As the environment calls one, for every client of PostgreSQL. */
const variableOf = (name: string) => (name === 'dbname' ? 'PGDATABASE' : `PG${name.toUpperCase()}`);

const isSetting = (name: string) => (SETTINGS as readonly string[]).includes(name);

type Settings = { [name in (typeof SETTINGS)[number]]?: string };

export type EngineAddress = {
  /** For people: without the password. */
  text: string;
  config: ClientConfig;
};

type AddressOptions = {
  /** Reach an engine beyond loopback without knowing that it is the right one. */
  isInsecure?: boolean | undefined;
};

const DEFAULT_TIMEOUT_S = 10;

/**
 * Reads the URL of an engine, `postgres://user@host:5432/database?sslmode=verify-full`; what it leaves out comes from the
 * service file, then from the environment. Throws `TapedeckError` `usage` for what cannot be read, and for a connection beyond
 * loopback that nobody would verify.
 */
export function readAddress(
  url: string,
  env: NodeJS.ProcessEnv,
  { isInsecure = false }: AddressOptions = {},
): EngineAddress {
  const inUrl = settingsOf(url);
  const service = inUrl.service ?? env['PGSERVICE'];
  const settings: Settings = {
    ...fromEnvironment(env),
    ...(service ? serviceSettings(service, env) : {}),
    ...inUrl,
  };
  const host = settings.host || 'localhost';
  const port = Number(settings.port || 5432);
  const user = settings.user || userInfo().username;
  const database = settings.dbname || user;
  const shown = host.includes(':') ? `[${host}]` : host.startsWith('/') ? encodeURIComponent(host) : host;
  return {
    text: `postgres://${encodeURIComponent(user)}@${shown}:${port}/${encodeURIComponent(database)}`,
    config: {
      ...{ host, port, user, database },
      password:
        settings.password ?? passwordFrom(settings.passfile, env, [host, String(port), database, user]),
      ssl: tlsFor(settings, host, isInsecure),
      ...(settings.options === undefined ? {} : { options: settings.options }),
      connectionTimeoutMillis: 1000 * Number(settings.connect_timeout || DEFAULT_TIMEOUT_S),
      keepAlive: true,
    },
  };
}

/** Connects. `program`: what the engine's own lists call us. Throws `TapedeckError` where that fails (`engineError`). */
export async function connectEngine({ text, config }: EngineAddress, program = 'tapedeck'): Promise<Client> {
  const { Client, types } = await import('pg');
  const client = new Client({
    ...config,
    application_name: program,
    types: { getTypeParser: (id, format) => PARSERS[id] ?? types.getTypeParser(id, format as 'text') },
  });
  // What breaks a connection fails the query that is under way, or the next one: it must not end the process.
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (error) {
    throw engineError(error, text);
  }
  return client;
}

/** By the number of the type. `bigint` is far below 2^53 in our columns; a date has no time zone. */
const PARSERS: Readonly<Record<number, (text: string) => unknown>> = { 20: Number, 1082: String };

/** Whether the URL has a password in it, which all users of a machine can read in its list of processes. */
export function hasPassword(url: string): boolean {
  try {
    const { password, searchParams } = new URL(url);
    return password !== '' || searchParams.has('password');
  } catch {
    return false;
  }
}

function settingsOf(url: string): Settings {
  const read = isEngineUrl(url) ? parsed(url) : null;
  if (read === null)
    throw new TapedeckError(
      'usage',
      `Expected the URL of an engine, got \`${withoutPassword(url)}\`. Example: postgres://user@host:5432/database`,
    );
  const { hostname, port, username, password, pathname, searchParams } = read;
  const settings: Record<string, string> = {};
  for (const [name, value] of searchParams) {
    if (!isSetting(name))
      throw new TapedeckError(
        'usage',
        `Unknown parameter \`${name}\` in the URL of the engine. Known are: ${SETTINGS.join(', ')}.`,
      );
    settings[name] = value;
  }
  const own = { host: hostname.replace(/^\[|\]$/g, ''), port, user: username, password };
  for (const [name, value] of Object.entries({ ...own, dbname: pathname.slice(1) }))
    if (value !== '') settings[name] = decoded(value);
  return settings;
}

function parsed(url: string): URL | null {
  try {
    return new URL(url);
  } catch {
    return null;
  }
}

function withoutPassword(url: string): string {
  return url.replace(/(?<=:\/\/[^@/]*:)[^@]*(?=@)/, '…');
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TapedeckError(
      'usage',
      'Expected `%` and two digits in the URL of the engine, got a `%` alone. Write %25.',
    );
  }
}

function fromEnvironment(env: NodeJS.ProcessEnv): Settings {
  const pairs = SETTINGS.map((name) => [name, env[variableOf(name)]] as const);
  return Object.fromEntries(pairs.filter(([, value]) => value));
}

/** https://www.postgresql.org/docs/15/libpq-pgservice.html */
function serviceSettings(service: string, env: NodeJS.ProcessEnv): Settings {
  const own = env['PGSERVICEFILE'] || join(homeFolder(env), '.pg_service.conf');
  const files = [own, ...(env['PGSYSCONFDIR'] ? [join(env['PGSYSCONFDIR'], 'pg_service.conf')] : [])];
  for (const file of files) {
    const text = readIfThere(file);
    const lines = text?.split('\n').map((line) => line.trim()) ?? [];
    const from = lines.indexOf(`[${service}]`);
    if (from === -1) continue;
    const rest = lines.slice(from + 1);
    const end = rest.findIndex((line) => line.startsWith('['));
    const pairs = (end === -1 ? rest : rest.slice(0, end)).filter((line) => /^[^#=]+=/.test(line));
    const settings = pairs.map((line) => [
      line.slice(0, line.indexOf('=')).trim(),
      line.slice(line.indexOf('=') + 1).trim(),
    ]);
    return Object.fromEntries(settings.filter(([name = '']) => isSetting(name)));
  }
  throw new TapedeckError('not-found', `There is no service \`${service}\` in ${files.join(' or ')}.`);
}

/** https://www.postgresql.org/docs/15/libpq-pgpass.html: `host:port:database:user:password`, the first that fits. */
function passwordFrom(
  named: string | undefined,
  env: NodeJS.ProcessEnv,
  wanted: readonly string[],
): string | undefined {
  const file = named ?? join(homeFolder(env), '.pgpass');
  const text = readIfThere(file);
  if (text === null) return undefined;
  if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0)
    throw new TapedeckError('refused', `Others may read the passwords in ${file}. Run: chmod 600 ${file}`);
  const place = wanted.map((value, i) => (i === 0 && value.startsWith('/') ? 'localhost' : value));
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue;
    const fields = (line.match(/(?:\\.|[^:\\])*(?::|$)/g) ?? []).map((field) =>
      field.replace(/:$/, '').replaceAll(/\\(.)/g, '$1'),
    );
    if (fields.length >= 5 && place.every((value, i) => fields[i] === '*' || fields[i] === value))
      return fields[4];
  }
  return undefined;
}

function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

const MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'];

/** Beyond loopback the engine's certificate must be of its name and of an authority that we know, unless somebody says otherwise. */
function tlsFor(settings: Settings, host: string, isInsecure: boolean): false | ConnectionOptions {
  const { sslmode: mode = null } = settings;
  if (mode !== null && !MODES.includes(mode))
    throw new TapedeckError('usage', `Expected one of ${MODES.join(', ')} for \`sslmode\`, got \`${mode}\`.`);
  const isPlain = mode === null || ['disable', 'allow', 'prefer'].includes(mode);
  const isVerified = mode === 'verify-ca' || mode === 'verify-full';
  if (host.startsWith('/')) return false;
  if (!isLoopback(host)) {
    if (isInsecure) return mode === 'disable' ? false : { ...filesFor(settings), rejectUnauthorized: false };
    if (mode !== null && mode !== 'verify-full')
      throw new TapedeckError(
        'usage',
        `Expected \`sslmode=verify-full\` for ${host}, which is not loopback, got \`sslmode=${mode}\`. PGSSLROOTCERT names an authority of your own; --insecure-engine goes without.`,
      );
    return verified(settings, host);
  }
  if (isVerified) return verified(settings, host);
  return isPlain ? false : { ...filesFor(settings), rejectUnauthorized: false };
}

function verified(settings: Settings, host: string): ConnectionOptions {
  // pg names no host to Node where it is an address.
  return {
    ...filesFor(settings),
    checkServerIdentity: (_, certificate) => checkServerIdentity(host, certificate),
  };
}

function filesFor({ sslrootcert, sslcert, sslkey }: Settings): ConnectionOptions {
  return {
    ...(sslrootcert === undefined || sslrootcert === 'system' ? {} : { ca: textOf(sslrootcert) }),
    ...(sslcert === undefined ? {} : { cert: textOf(sslcert) }),
    ...(sslkey === undefined ? {} : { key: textOf(sslkey) }),
  };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new TapedeckError('io', `A certificate or key cannot be read: ${(error as Error).message}`);
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
