/**
 * One rule of `--fault`: a filter, an action, a chance.
 *
 *   tool=search delay=lognormal(200ms,0.6) p=0.2
 *
 * The action, `p=` and `dir=` may stand anywhere outside of parentheses; all else is the filter, in the language of every
 * command (inspect/filter). Without `dir=` a rule is about what the server says.
 */

import { TapedeckError } from '../errors.ts';
import { FIELD_NAMES } from '../inspect/filter/fields.ts';
import { type Filter, parseFilter } from '../inspect/filter/filter.ts';
import type { Direction } from '../protocol/wire/frame.ts';
import {
  ACTION_NAMES,
  ACTIONS,
  type Action,
  closingQuote,
  type FaultPlace,
  nearestAction,
  readAction,
  whyNotThere,
} from './action.ts';
import { faultError } from './fault-error.ts';

export type FaultRule = {
  /** From 1 on, in the order in which they were given. */
  number: number;
  /** As it was written. */
  text: string;
  filter: Filter;
  action: Action;
  /** From 0 to 1. */
  chance: number;
  direction: Direction;
};

const MAX_LENGTH = 4000;

const MAX_RULES = 100;

/** Reads all rules. Throws `TapedeckError` `usage` with the column of what is wrong, and for what cannot be done there. */
export function readFaultRules(texts: readonly string[], place: FaultPlace): FaultRule[] {
  if (texts.length > MAX_RULES)
    throw new TapedeckError('usage', `Expected at most ${MAX_RULES} faults, got ${texts.length}.`);
  return texts.map((text, i) => {
    const rule = readFaultRule(text, i + 1);
    const problem = whyNotThere(rule.action, place);
    if (problem !== null)
      throw new TapedeckError('usage', `The fault \`${rule.text}\` cannot be done here: ${problem}.`);
    return rule;
  });
}

/** A word of a rule that is not part of its filter. Positions count from 0, `end` is exclusive. */
type Part = { name: string; start: number; end: number };

const PART = new RegExp(`^(?:(p|dir)=|(${ACTION_NAMES.join('|')})(?=$|[=(]))`);

/** Reads one rule. Throws `TapedeckError` `usage` with the column of what is wrong. */
export function readFaultRule(text: string, number: number): FaultRule {
  if (text.length > MAX_LENGTH)
    throw new TapedeckError('usage', `Expected a fault of at most ${MAX_LENGTH} characters.`);
  const parts = partsOf(text);
  const actions = parts.filter(({ name }) => name !== 'p' && name !== 'dir');
  const [only, second] = actions;
  if (only === undefined) throw missingAction(text);
  if (second !== undefined)
    throw faultError(text, 'one action', second.start, `\`${only.name}\` is one already`);
  const action = readAction(text, only.start, only.end);
  const direction = readDirection(text, parts);
  const { mayBeClients } = ACTIONS[action.name];
  if (direction === 'client-to-server' && !mayBeClients)
    throw faultError(
      text,
      'an action for what a client says',
      only.start,
      `\`${action.name}\` is for what a server says`,
    );
  // As long as the rule, so that its columns are those of the rule.
  let rest = text;
  for (const { start, end } of parts) rest = rest.slice(0, start) + ' '.repeat(end - start) + rest.slice(end);
  const filter = parseFilter(rest.trim() === '' ? '' : rest, 0);
  return { number, text, filter, action, chance: readChance(text, parts), direction };
}

/** The words at the top of a rule that are no filter. */
function partsOf(rule: string): Part[] {
  const parts: Part[] = [];
  let at = 0;
  while (at < rule.length) {
    if (/\s/.test(rule[at] ?? '')) {
      at += 1;
      continue;
    }
    const end = wordEnd(rule, at);
    const [, key, action] = PART.exec(rule.slice(at, end)) ?? [];
    const name = key ?? action;
    // `http=503` is a term of the filter, `http(503)` the action.
    if (name !== undefined && !(name === 'http' && rule[at + name.length] === '='))
      parts.push({ name, start: at, end });
    at = end;
  }
  return parts;
}

/** Up to a space outside of quotes and parentheses. */
function wordEnd(rule: string, start: number): number {
  let depth = 0;
  for (let at = start; at < rule.length; at += 1) {
    const character = rule[at] ?? '';
    if (character === '"') at = closingQuote(rule, at, rule.length);
    else if (character === '(') depth += 1;
    else if (character === ')') depth -= 1;
    else if (depth <= 0 && /\s/.test(character)) return at;
  }
  return rule.length;
}

function missingAction(rule: string): TapedeckError {
  for (const { 0: name, index } of rule.matchAll(/(?<=^|\s)[a-z-]+(?=[=(\s]|$)/gi)) {
    const near = FIELD_NAMES.some((field) => field === name) ? null : nearestAction(name);
    if (near === null) continue;
    const { usage } = ACTIONS[near];
    return faultError(rule, 'an action', index, `Nearest: \`${near}\`, as ${usage}`);
  }
  return faultError(rule, 'an action', rule.length, `Actions: ${ACTION_NAMES.join(', ')}`);
}

function readDirection(rule: string, parts: readonly Part[]): Direction {
  const [part, again] = parts.filter(({ name }) => name === 'dir');
  if (again !== undefined) throw faultError(rule, 'one `dir=`', again.start);
  if (part === undefined) return 'server-to-client';
  const value = rule.slice(part.start + 'dir='.length, part.end).toLowerCase();
  if (value === 'client' || value === 'client-to-server') return 'client-to-server';
  if (value === 'server' || value === 'server-to-client') return 'server-to-client';
  throw faultError(
    rule,
    '`client` or `server`',
    part.start + 'dir='.length,
    'It says whose messages are meant',
  );
}

function readChance(rule: string, parts: readonly Part[]): number {
  const [part, again] = parts.filter(({ name }) => name === 'p');
  if (again !== undefined) throw faultError(rule, 'one `p=`', again.start);
  if (part === undefined) return 1;
  const at = part.start + 'p='.length;
  const value = rule.slice(at, part.end);
  if (/^(?:0|1|0?\.\d{1,9}|1\.0{1,9}|0\.\d{1,9})$/.test(value)) return Number(value);
  throw faultError(rule, 'a chance from 0 to 1', at, 'For one message in five, p=0.2');
}
