/**
 * What `record` says while it runs: words for people, or a JSON object a line for machines. Never a payload, and nothing of one.
 * This file is loaded before the first byte flows, so it imports next to nothing.
 */

import type { Watcher } from '../../store/record/thread.ts';
import { asTyped } from '../io.ts';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

export type LogLevel = (typeof LEVELS)[number];

export type LogOptions = { isJson: boolean; level: LogLevel };

/** `session`: the public id of the one that a line is about. */
type LogFields = Readonly<Record<string, string | number | boolean | null>> & { session?: string };

/** `event` says what happened in a word that stays the same, `text` the same in words for people. */
type Say = (event: string, text: string, fields?: LogFields) => void;

export type Log = Record<LogLevel, Say> & {
  setLevel(level: LogLevel): void;
  /** Whether lines of this level are written. */
  has(level: LogLevel): boolean;
};

/** `write` gets whole lines, with their ends. */
export function createLog(
  { isJson, level: least }: LogOptions,
  env: NodeJS.ProcessEnv,
  write: (line: string) => void,
): Log {
  let lowest = LEVELS.indexOf(least);
  const has = (level: LogLevel) => LEVELS.indexOf(level) >= lowest;
  const at =
    (level: LogLevel): Say =>
    (event, text, fields = {}) => {
      if (!has(level)) return;
      const message = asTyped({ env }, text);
      if (isJson)
        write(`${JSON.stringify({ time: new Date().toISOString(), level, event, ...fields, message })}\n`);
      else write(`tapedeck: ${message}\n`);
    };
  return {
    ...{ debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
    setLevel(level) {
      lowest = LEVELS.indexOf(level);
    },
    has,
  };
}

/** Sessions that begin and end are said at `debug`. Undefined where nobody wants to know; `isAsked`: a service's watchdog does. */
export function watcherFor(
  log: Log,
  { isJson }: LogOptions,
  operations: Pick<Watcher, 'onCommit'> | null,
  isAsked: boolean,
): Watcher | undefined {
  if (operations === null && !isAsked && !isJson && !log.has('debug')) return undefined;
  return {
    onCommit: (ms) => operations?.onCommit(ms),
    onSession(news) {
      const { type, session, ...fields } = news;
      const how = news.type === 'ended' ? news.reason : news.basis;
      log.debug(`session-${type}`, `session ${session} ${type}: ${how}`, { session, ...fields });
    },
  };
}

/**
 * Whether the command line of a recorder asks for lines of JSON: what is wrong before there is a log, be it the command line or
 * the configuration, is then said in one too.
 */
export function asksForJson([command, ...words]: readonly string[]): boolean {
  if (command !== 'record' && command !== 'run') return false;
  const dashes = words.indexOf('--');
  const own = dashes === -1 ? words : words.slice(0, dashes);
  const at = own.findLastIndex((word) => word === '--log' || word.startsWith('--log='));
  return own[at] === '--log=json' || (own[at] === '--log' && own[at + 1] === 'json');
}

export function isLogLevel(text: string): text is LogLevel {
  return (LEVELS as readonly string[]).includes(text);
}
