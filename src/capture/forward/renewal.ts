/**
 * Keeps the certificates of a forward proxy valid for as long as it runs. A client reads what it trusts when it starts, so the
 * next CA is told of days before it is used: by then most clients have been started anew.
 */

import { type Authority, expiryOf } from './authority.ts';

/** Clients that start in the last ten days of a CA trust the next one too. */
const AHEAD_MS = 10 * 86_400_000;

/** The next one is used before the last hours, in which clocks may differ. */
export const LEAST_LEFT_MS = 86_400_000;

const CHECK_MS = 3_600_000;

export type RenewalOptions = {
  authority: Authority;
  /** The next one that is known already; null: there is none. */
  next: Authority | null;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  makeNext: () => Promise<Authority>;
  /** Writes what clients trust that start from now on, as PEM. */
  publish: (certificates: string) => void;
  /** From now on its certificates are shown. */
  use: (authority: Authority) => Promise<void>;
  /** Called with what the proxy's user should know, and its kind. */
  warn: (kind: string, text: string) => void;
};

export type Renewal = {
  /** What clients are to trust now, as PEM. */
  certificates(): string;
  /** Does what is due. Never rejects: what fails is told, once, and tried again at the next call. */
  check(): Promise<void>;
  end(): void;
};

/** Checks every hour, until `end`; a machine that sleeps is late by as much. */
export function keepRenewed(options: RenewalOptions): Renewal {
  const { now, makeNext, publish, use, warn } = options;
  let { authority, next } = options;
  let hasFailed = false;
  let isBusy = false;
  const certificates = () => `${authority.certificate}${next?.certificate ?? ''}`;

  async function renew(): Promise<void> {
    if (next === null && expiryOf(authority) - now() < AHEAD_MS) {
      const made = await makeNext();
      publish(`${authority.certificate}${made.certificate}`);
      next = made;
      warn(
        'next-authority',
        `the certificate authority ends on ${dayOf(expiryOf(authority))}; clients that start from now on trust the next one too: restart the others before that day`,
      );
    }
    if (next !== null && expiryOf(authority) - now() < LEAST_LEFT_MS) {
      await use(next);
      authority = next;
      next = null;
      publish(certificates());
      warn(
        'authority-changed',
        'the next certificate authority is used from now on; a client that does not trust it was started before it was made: restart it',
      );
    }
    hasFailed = false;
  }

  async function check(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    try {
      await renew();
    } catch (error) {
      if (!hasFailed)
        warn(
          'not-renewed',
          `the certificates could not be renewed: ${(error as Error).message}; tried again every hour`,
        );
      hasFailed = true;
    } finally {
      isBusy = false;
    }
  }

  const timer = setInterval(() => void check(), CHECK_MS);
  timer.unref();
  return { certificates, check, end: () => clearInterval(timer) };
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
