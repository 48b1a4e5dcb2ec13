/** The secrets of one viewer: its token, which every request to the API bears, and tickets in its place. */

import { randomBytes } from 'node:crypto';
import { TapedeckError } from '../errors.ts';

/** 256 random bits, as they may stand in a URL. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Long enough that nobody guesses it, and of characters that a URL and a header take as they are. */
const TOKEN = /^[\w.~-]{16,512}$/;

/** Checks a token that its user has chosen. Throws `TapedeckError` `usage`, without repeating it. */
export function checkedToken(token: string, from: string): string {
  if (TOKEN.test(token)) return token;
  throw new TapedeckError(
    'usage',
    `Expected a token of 16 to 512 letters, digits, \`.\`, \`_\`, \`~\` and \`-\` in ${from}. One to use: ${newSecret()}`,
  );
}

/**
 * What one may have once within a minute without the token: a browser's own download cannot send it, and what a browser is started
 * with is seen by whoever lists the processes of the machine.
 */
export type Tickets = {
  /** Returns the ticket. */
  issue(what: string): string;
  /** Null for a ticket that was never issued, was used, or is too old. */
  redeem(ticket: string): string | null;
};

const TICKET_MS = 60_000;

const MOST_TICKETS = 1000;

/** `now`: milliseconds that never go back. */
export function createTickets(now: () => number): Tickets {
  const issued = new Map<string, { what: string; until: number }>();

  function forgetOld(): void {
    for (const [ticket, { until }] of issued)
      if (until < now() || issued.size >= MOST_TICKETS) issued.delete(ticket);
      else return;
  }

  return {
    issue(what) {
      forgetOld();
      const ticket = newSecret();
      issued.set(ticket, { what, until: now() + TICKET_MS });
      return ticket;
    },
    redeem(ticket) {
      const found = issued.get(ticket);
      issued.delete(ticket);
      return found !== undefined && found.until >= now() ? found.what : null;
    },
  };
}
