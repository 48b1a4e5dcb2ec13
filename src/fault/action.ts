/**
 * What a rule of `--fault` does to a message: the table of actions, and reading one. An action is written as a word, with
 * its values in parentheses or behind `=`: `drop`, `delay=200ms`, `delay=lognormal(200ms,0.6)`, `error(-32000,"try later")`.
 */

import { constants } from 'node:os';
import { parseDuration, parseSize } from '../inspect/filter/values.ts';
import { nearest } from '../protocol/nearest.ts';
import { faultError } from './fault-error.ts';

/** A time, drawn anew for each message. Milliseconds; `sigma` is that of the logarithm. */
export type Spread =
  | { type: 'fixed'; ms: number }
  | { type: 'uniform'; least: number; most: number }
  | { type: 'lognormal'; median: number; sigma: number };

export type Action =
  | { name: 'delay'; time: Spread }
  | { name: 'dribble'; chunks: number; ms: number }
  | { name: 'rate'; bytesPerSecond: number }
  | { name: 'hold' | 'drop' | 'duplicate' | 'garbage' | 'close' | 'reset' | 'stall-stderr' }
  | { name: 'error'; code: number; message: string }
  | { name: 'tool-error'; message: string }
  | { name: 'http'; status: number; retryAfter: number | null }
  | { name: 'reorder'; count: number }
  | { name: 'truncate' | 'split'; bytes: number }
  | { name: 'exit'; code: number; signal: NodeJS.Signals | null };

export type ActionName = Action['name'];

/**
 * Where faults are put in: between a client and a live server (`record`), by the mock server (`replay`), or by the
 * transport of the test kit, which passes whole messages within one process.
 */
export type FaultPlace = 'record-stdio' | 'record-http' | 'replay-stdio' | 'replay-http' | 'kit-transport';

const STDIO: readonly FaultPlace[] = ['record-stdio', 'replay-stdio'];

const HTTP: readonly FaultPlace[] = ['record-http', 'replay-http'];

const BYTES: readonly FaultPlace[] = [...STDIO, ...HTTP];

const EVERYWHERE: readonly FaultPlace[] = [...BYTES, 'kit-transport'];

type Row = {
  places: readonly FaultPlace[];
  /** Whether it may be done to what a client says. */
  mayBeClients: boolean;
  /** `message`: to any message; `answer`: to answers; `tool-answer`: to those of `tools/call`. */
  of: 'message' | 'answer' | 'tool-answer';
  /** As it is written. */
  usage: string;
  read: (values: Values) => Action;
};

/** The values of an action, each with the column where it stands. */
type Values = {
  /** The next one by `read`, which gives null for what it cannot read; `fallback` where none is left. */
  next<T>(expected: string, read: (text: string) => T | null, fallback?: T): T;
  /** The whole of the value, where it is `name(…)`. */
  nested(): { name: string; values: Values } | null;
};

const row = (
  name: 'hold' | 'drop' | 'duplicate' | 'garbage' | 'close' | 'reset' | 'stall-stderr',
  places: readonly FaultPlace[],
  more: Partial<Row> = {},
): Row => ({ places, mayBeClients: false, of: 'message', usage: name, read: () => ({ name }), ...more });

const FAILED = 'failed on purpose';

export const ACTIONS: Readonly<Record<ActionName, Row>> = {
  delay: {
    places: EVERYWHERE,
    mayBeClients: true,
    of: 'message',
    usage: 'delay=200ms, delay=uniform(100ms,400ms) or delay=lognormal(200ms,0.6)',
    read: (values) => ({ name: 'delay', time: readSpread(values) }),
  },
  dribble: {
    places: BYTES,
    mayBeClients: true,
    of: 'message',
    usage: 'dribble(5,2s)',
    read: (values) => ({
      name: 'dribble',
      chunks: values.next('a number of pieces, from 2 to 1000', countIn(2, 1000)),
      ms: values.next(A_TIME, millisecondsOf),
    }),
  },
  rate: {
    places: BYTES,
    mayBeClients: true,
    of: 'message',
    usage: 'rate(10kb)',
    read: (values) => ({ name: 'rate', bytesPerSecond: values.next('bytes a second, as 10kb', sizeOf) }),
  },
  hold: row('hold', EVERYWHERE, { of: 'answer' }),
  error: {
    places: EVERYWHERE,
    mayBeClients: false,
    of: 'answer',
    usage: 'error(-32000) or error(-32000,"try later")',
    read: (values) => ({
      name: 'error',
      code: values.next('the code of an error, as -32000', integer),
      message: values.next('a text', textOf, FAILED),
    }),
  },
  'tool-error': {
    places: EVERYWHERE,
    mayBeClients: false,
    of: 'tool-answer',
    usage: 'tool-error or tool-error("no such city")',
    read: (values) => ({ name: 'tool-error', message: values.next('a text', textOf, FAILED) }),
  },
  http: {
    places: HTTP,
    mayBeClients: false,
    of: 'answer',
    usage: 'http(503) or http(429,2s)',
    read: (values) => ({
      name: 'http',
      status: values.next('a status from 400 to 599', countIn(400, 599)),
      retryAfter: values.next<number | null>('a time for Retry-After, as 2s', secondsOf, null),
    }),
  },
  drop: row('drop', EVERYWHERE, { mayBeClients: true }),
  duplicate: row('duplicate', EVERYWHERE, { mayBeClients: true }),
  reorder: {
    places: EVERYWHERE,
    mayBeClients: true,
    of: 'message',
    usage: 'reorder(2)',
    read: (values) => ({
      name: 'reorder',
      count: values.next('how many messages go first, from 1 to 1000', countIn(1, 1000), 1),
    }),
  },
  truncate: {
    places: EVERYWHERE,
    mayBeClients: true,
    of: 'message',
    usage: 'truncate(20)',
    read: (values) => ({
      name: 'truncate',
      bytes: values.next('how many bytes are left, as 20', sizeOrNone),
    }),
  },
  garbage: row('garbage', EVERYWHERE, { mayBeClients: true }),
  split: {
    places: BYTES,
    mayBeClients: true,
    of: 'message',
    usage: 'split(7)',
    read: (values) => ({ name: 'split', bytes: values.next('bytes a piece, as 7', sizeOf) }),
  },
  close: row('close', EVERYWHERE, { mayBeClients: true }),
  reset: row('reset', HTTP, { mayBeClients: true }),
  exit: {
    places: STDIO,
    mayBeClients: true,
    of: 'message',
    usage: 'exit(3) or exit(SIGKILL)',
    read: (values) => ({ name: 'exit', ...values.next('an exit code, or the name of a signal', exitOf) }),
  },
  'stall-stderr': row('stall-stderr', ['record-stdio'], { mayBeClients: true }),
};

export const ACTION_NAMES = Object.keys(ACTIONS) as ActionName[];

const A_TIME = 'a time with its unit, as 200ms';

/** More than any client waits. */
const MOST_MS = 24 * 60 * 60 * 1000;

function millisecondsOf(text: string): number | null {
  const time = parseDuration(text);
  return time === null || time / 1000 > MOST_MS ? null : time / 1000;
}

function secondsOf(text: string): number | null {
  const ms = millisecondsOf(text);
  return ms === null ? null : Math.ceil(ms / 1000);
}

function countIn(least: number, most: number): (text: string) => number | null {
  return (text) => (/^\d{1,4}$/.test(text) && +text >= least && +text <= most ? Number(text) : null);
}

function integer(text: string): number | null {
  return /^-?\d{1,9}$/.test(text) ? Number(text) : null;
}

function sizeOrNone(text: string): number | null {
  const size = parseSize(text);
  return size === null || !Number.isSafeInteger(Math.ceil(size)) ? null : Math.ceil(size);
}

function sizeOf(text: string): number | null {
  const size = sizeOrNone(text);
  return size === 0 ? null : size;
}

function textOf(text: string): string {
  return text;
}

function sigmaOf(text: string): number | null {
  return /^\d(?:\.\d{1,6})?$/.test(text) && Number(text) <= 5 ? Number(text) : null;
}

function exitOf(text: string): { code: number; signal: NodeJS.Signals | null } | null {
  if (/^\d{1,3}$/.test(text) && Number(text) <= 255) return { code: Number(text), signal: null };
  return Object.hasOwn(constants.signals, text) ? { code: 0, signal: text as NodeJS.Signals } : null;
}

function readSpread(values: Values): Spread {
  const nested = values.nested();
  if (nested === null) return { type: 'fixed', ms: values.next(A_TIME, millisecondsOf) };
  const { name, values: own } = nested;
  if (name === 'lognormal')
    return {
      type: 'lognormal',
      median: own.next(A_TIME, millisecondsOf),
      sigma: own.next('a sigma from 0 to 5, as 0.6', sigmaOf),
    };
  const least = own.next(A_TIME, millisecondsOf);
  const most = own.next(A_TIME, (text) => {
    const ms = millisecondsOf(text);
    return ms === null || ms < least ? null : ms;
  });
  return { type: 'uniform', least, most };
}

/** A value as it was written, with its column, counted from 1. */
type Written = { text: string; column: number };

/**
 * Reads an action from a rule. `end`: where its text ends, exclusive, counted from 0. Throws `TapedeckError` `usage` with the
 * column of what is wrong.
 */
export function readAction(rule: string, start: number, end: number): Action {
  const [name = ''] = /^[a-z-]+/.exec(rule.slice(start, end)) ?? [];
  const { usage, read } = ACTIONS[name as ActionName];
  let at = start + name.length;
  let close = end;
  if (rule[at] === '=') at += 1;
  else if (rule[at] === '(') {
    if (rule[end - 1] !== ')') throw faultError(rule, '`)`', end, usage);
    at += 1;
    close -= 1;
  } else close = at;
  const written = valuesIn(rule, at, close);
  const { values, left } = reader(rule, written, close, usage);
  const action = read(values);
  const more = left();
  if (more !== undefined) throw faultError(rule, 'no more values', more.column - 1, usage);
  return action;
}

function reader(
  rule: string,
  written: Written[],
  end: number,
  usage: string,
): { values: Values; left: () => Written | undefined } {
  let next = 0;
  let inner: (() => Written | undefined) | undefined;
  const values: Values = {
    next(expected, read, fallback) {
      const value = written[next];
      if (value === undefined && fallback !== undefined) return fallback;
      const found = value === undefined ? null : read(value.text);
      if (found === null)
        throw faultError(rule, expected, value === undefined ? end : value.column - 1, usage);
      next += 1;
      return found;
    },
    nested() {
      const value = written[next];
      const [, name = '', open = ''] = /^([a-z]+)(\()/i.exec(value?.text ?? '') ?? [];
      if (value === undefined || open === '') return null;
      const from = value.column - 1;
      if (name !== 'lognormal' && name !== 'uniform')
        throw faultError(rule, 'a time, `lognormal(…)` or `uniform(…)`', from, usage);
      const close = from + value.text.length - 1;
      if (rule[close] !== ')') throw faultError(rule, '`)`', close + 1, usage);
      next += 1;
      const own = reader(rule, valuesIn(rule, from + name.length + 1, close), close, usage);
      inner = own.left;
      return { name, values: own.values };
    },
  };
  return { values, left: () => inner?.() ?? written[next] };
}

/** What stands between commas. A text in double quotes may hold anything. */
function valuesIn(rule: string, start: number, end: number): Written[] {
  const values: Written[] = [];
  if (start >= end) return values;
  let from = start;
  let depth = 0;
  for (let at = start; at <= end; at += 1) {
    const character = at === end ? ',' : rule[at];
    if (character === '"') at = closingQuote(rule, at, end);
    else if (character === '(') depth += 1;
    else if (character === ')') depth -= 1;
    else if (character === ',' && (depth === 0 || at === end)) {
      values.push(valueIn(rule, from, at));
      from = at + 1;
    }
  }
  return values;
}

function valueIn(rule: string, from: number, end: number): Written {
  const written = rule.slice(from, end);
  const text = written.trim();
  const column = from + (written.length - written.trimStart().length) + 1;
  if (!text.startsWith('"')) return { text, column };
  return { text: text.slice(1, -1).replaceAll(/\\(["\\])/g, '$1'), column };
}

/** Where the text ends that begins here. Throws where it does not. */
export function closingQuote(rule: string, at: number, end: number): number {
  for (let i = at + 1; i < end; i += 1) {
    if (rule[i] === '\\') i += 1;
    else if (rule[i] === '"') return i;
  }
  throw faultError(rule, 'a closing "', end, `The text began at column ${at + 1}`);
}

/** The action that somebody may have meant. */
export function nearestAction(written: string): ActionName | null {
  const near = nearest(written, ACTION_NAMES);
  return ACTION_NAMES.find((name) => name === near) ?? null;
}

/** Why an action cannot be done there, or null. */
export function whyNotThere({ name }: Action, place: FaultPlace): string | null {
  const { places } = ACTIONS[name];
  if (places.includes(place)) return null;
  return `${name} goes with ${places.map((one) => PLACE_TEXT[one]).join(', ')}, not with ${PLACE_TEXT[place]}`;
}

const PLACE_TEXT: Record<FaultPlace, string> = {
  'record-stdio': '`record -- <command>`',
  'record-http': '`record <url>`',
  'replay-stdio': '`replay`',
  'replay-http': '`replay --listen`',
  'kit-transport': '`deck.transport()`',
};
