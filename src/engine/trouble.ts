/** What goes wrong with an engine, by class: what waits for better times, what somebody has to do, and what one session cannot help. */

import { TapedeckError } from '../errors.ts';

/**
 * `away`: it is not there, stopping, too busy, read-only or in somebody's way; the same may succeed later. `denied`: it is there and lets
 * us do nothing: password, certificate, rights, no such database. `full`: its disk is. `data`: it does not take these rows.
 * `schema`: its tables are not ours, or not those of this version. `other`: none of these.
 */
type Trouble = 'away' | 'denied' | 'full' | 'data' | 'schema' | 'other';

/** By SQLSTATE, the longest beginning first: https://www.postgresql.org/docs/15/errcodes-appendix.html */
const BY_STATE: readonly (readonly [start: string, Trouble])[] = [
  ['25006', 'away'],
  ['3D000', 'denied'],
  ['3F000', 'schema'],
  ['42501', 'denied'],
  ['42P01', 'schema'],
  ['42703', 'schema'],
  ['42883', 'schema'],
  ['53100', 'full'],
  ['54', 'data'],
  ['22', 'data'],
  ['23', 'data'],
  ['28', 'denied'],
  // Lost connections, too many of them, out of memory, locks, deadlocks, time-outs, shutting down.
  ['08', 'away'],
  ['40', 'away'],
  ['53', 'away'],
  ['55', 'away'],
  ['57', 'away'],
  ['58', 'away'],
];

const SQLSTATE = /^[0-9A-Z]{5}$/;

/** Of a certificate: codes of OpenSSL as Node has them, and of Node. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET|ERR_TLS|ERR_SSL/;

/** What pg says without a code, and what only the other side's settings can mend. */
const DENIED_WORDS =
  /does not support SSL|password must be a string|SASL|unknown authentication|client password/i;

const AWAY_WORDS = /connection terminated|timeout|not queryable|connection error|closed/i;

export function engineTroubleOf(error: unknown): Trouble {
  const code = sqlStateOf(error) ?? '';
  const { message = '' } = error as Error;
  if (CERTIFICATE.test(code)) return 'denied';
  if (SQLSTATE.test(code) && /\d/.test(code))
    return BY_STATE.find(([start]) => code.startsWith(start))?.[1] ?? 'other';
  if (DENIED_WORDS.test(message)) return 'denied';
  // ECONNREFUSED, ENOTFOUND and their like, of the system.
  if (/^E[A-Z_]+$/.test(code) || AWAY_WORDS.test(message)) return 'away';
  return 'other';
}

/** The SQLSTATE of an error, or the system's code; null: it has none. */
export function sqlStateOf(error: unknown): string | null {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : null;
}

/** An error of the engine, said to people. `engine`: its address without the password. */
export function engineError(error: unknown, engine: string): Error {
  if (error instanceof TapedeckError) return error;
  const { message } = error as Error;
  const state = sqlStateOf(error);
  const what = `${message === '' ? (state ?? 'no answer') : message}${state === null || message.includes(state) ? '' : ` (${state})`}`;
  const trouble = engineTroubleOf(error);
  switch (trouble) {
    case 'away':
      return new TapedeckError('io', `${engine} cannot be reached: ${what}${whereabouts(error)}`, {
        cause: error,
      });
    case 'denied':
      return new TapedeckError('refused', `${engine} lets us do nothing: ${what}${adviceFor(error)}`, {
        cause: error,
      });
    case 'full':
      return new TapedeckError('io', `The disk of ${engine} is full: ${what}`, { cause: error });
    case 'schema':
      return new TapedeckError('refused', `${engine} is no engine of ours yet: ${what}. ${INIT}`, {
        cause: error,
      });
    default:
      // What is not the engine's is a fault of ours, and shown as one.
      if (state === null || !SQLSTATE.test(state)) return error as Error;
      return new TapedeckError('io', `${engine} refuses what it was asked: ${what}`, { cause: error });
  }
}

const INIT = 'Set one up: tapedeck engine init --to postgres://…';

/** Of a host or port where nobody answers; not of an engine that was there and went away. */
function whereabouts(error: unknown): string {
  const isNowhere = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/.test(
    sqlStateOf(error) ?? '',
  );
  const isSilent = /timeout expired/.test((error as Error).message);
  return isNowhere || isSilent ? '. Is it running, and is this its host and port?' : '';
}

/** By SQLSTATE, what to do about it. */
const ADVICE: Readonly<Record<string, string>> = {
  '28P01': '. The password comes from PGPASSFILE or ~/.pgpass, or else from the URL',
  '28000': '. Its pg_hba.conf says who may come from where',
  '3D000': '. The database stands at the end of the URL',
  '42501':
    '. Reading takes a role that is in tapedeck_read, shipping one in tapedeck_ship, the rest one in tapedeck_admin',
};

function adviceFor(error: unknown): string {
  const known = ADVICE[sqlStateOf(error) ?? ''];
  if (known !== undefined) return known;
  if (/password must be a string|client password/.test((error as Error).message))
    return '. It asks for a password, and none is given: PGPASSFILE or ~/.pgpass has it';
  if (CERTIFICATE.test(sqlStateOf(error) ?? ''))
    return '. PGSSLROOTCERT names the authority that has signed its certificate';
  if (/does not support SSL/.test((error as Error).message))
    return '. Beyond loopback it must: turn on `ssl`, or pass --insecure-engine';
  return '';
}
