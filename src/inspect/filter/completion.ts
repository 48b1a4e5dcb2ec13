/** What may stand at a place of a filter that somebody is writing. What a store holds is for others to add. */

import { FIELD_NAMES, type FieldName, filterField, OPERATORS_OF, type Operator } from './fields.ts';

/** `from` to `to` is what a word takes the place of; `about` says what it means. */
export type Completion = { from: number; to: number; words: Word[]; value: ValuePlace | null };

export type Word = { text: string; about: string };

/** A value is being written: what of it is there, and how a value is to be spelt there. */
export type ValuePlace = { field: FieldName; prefix: string; spell: (value: string) => string };

/** As docs/filter.md has it, in few words. */
const ABOUT: Readonly<Record<FieldName, string>> = {
  method: 'of the message, or of its call',
  tool: 'that is called',
  prompt: 'that is fetched',
  resource: 'that is read or has changed',
  status: 'how the call ended',
  kind: 'of the message',
  id: 'of the message, or of its call',
  dir: 'who sent it',
  channel: 'on which it passed',
  dur: 'how long the call took',
  size: 'of the frame',
  code: 'of the error that ended the call',
  http: 'status of the HTTP exchange',
  problem: 'what is wrong with the message',
  text: 'of the frame',
  since: 'passed at this time or later',
  until: 'passed before this time',
  session: 'id, name or latest',
  name: 'of the session',
  label: 'of the session, as key=value',
  client: 'name, or name and version',
  server: 'name, or name and version',
  transport: 'of the session',
  run: 'of the client, by its id',
  trace: 'id of the call’s trace',
};

const OPERATOR_ABOUT: Readonly<Record<Operator, string>> = {
  '=': 'is exactly',
  '!=': 'is not',
  '~': 'has this part, or matches /an expression/',
  '!~': 'has no such part',
  '>=': 'at least',
  '<=': 'at most',
  '>': 'more than',
  '<': 'less than',
};

const MARKS: readonly Word[] = [
  { text: 'or', about: 'one of both sides' },
  { text: 'not', about: 'what does not hold' },
  { text: 'and', about: 'both sides, as without it' },
];

/** Values that fit a type of fields, where no store knows better. */
const SAMPLES: Readonly<Record<string, readonly string[]>> = {
  duration: ['100ms', '1s', '10s', '1m'],
  size: ['1kb', '100kb', '1mb'],
  time: ['10m', '1h', 'today', 'yesterday', '7d'],
};

/** `at` counts characters before the cursor. Nothing fits inside a text in quotes or an expression. */
export function completionAt(filter: string, at: number): Completion {
  const term = termAround(filter, Math.max(0, Math.min(at, filter.length)));
  if (term.value !== null) return valueCompletion(term, term.value);
  const { name, start, end } = term;
  const field = FIELD_NAMES.find((known) => known === name.toLowerCase());
  if (field !== undefined && at >= end) return operatorCompletion(field, end);
  const begun = (word: string) => name !== '' && word.startsWith(name.toLowerCase());
  const fields = FIELD_NAMES.filter((known) => name === '' || begun(known)).map((known) => ({
    text: known,
    about: ABOUT[known],
  }));
  const marks = MARKS.filter(({ text }) => begun(text));
  return { from: start, to: end, words: term.isText ? [] : [...fields, ...marks], value: null };
}

function operatorCompletion(field: FieldName, at: number): Completion {
  const operators = OPERATORS_OF[filterField(field).type];
  const words = operators.map((text) => ({ text, about: OPERATOR_ABOUT[text] }));
  return { from: at, to: at, words, value: null };
}

function valueCompletion(term: WrittenTerm, value: WrittenValue): Completion {
  const field = FIELD_NAMES.find((known) => known === term.name.toLowerCase());
  const nothing = { from: value.start, to: value.end, words: [], value: null };
  if (field === undefined || (value.isExpression && term.operator.endsWith('~'))) return nothing;
  const { type, choices } = filterField(field);
  const prefix = value.prefix.toLowerCase();
  const fits = (text: string) => text.startsWith(prefix) && text !== prefix;
  const words = [...Object.keys(choices ?? {}), ...(SAMPLES[type] ?? [])].filter(fits);
  const hasValues = type === 'text' || type === 'number';
  return {
    ...nothing,
    words: words.map((text) => ({ text, about: ABOUT[field] })),
    value: hasValues
      ? { field, prefix: value.prefix, spell: (text) => spellValue(text, term.operator, value.quote) }
      : null,
  };
}

type WrittenValue = { start: number; end: number; prefix: string; quote: string; isExpression: boolean };

/** What stands around the cursor: a name or a word, or a term with its operator and what there is of its value. */
type WrittenTerm = {
  name: string;
  start: number;
  end: number;
  operator: string;
  value: WrittenValue | null;
  /** A text in quotes. */
  isText: boolean;
};

const TERM = /(?<name>[A-Za-z_][\w.-]*)(?<gap>\s*)(?<operator>[=!~<>]+)\s*/y;

/** Goes through the filter as `tokensOf` does, but takes what is not finished. */
function termAround(filter: string, at: number): WrittenTerm {
  for (let start = 0; start < filter.length; ) {
    if (/[\s()]/.test(filter[start] ?? '')) {
      start += 1;
      continue;
    }
    TERM.lastIndex = start;
    const { groups, 0: head = '' } = TERM.exec(filter) ?? { 0: '' };
    const valueAt = start + head.length;
    const end = valueEnd(filter, valueAt);
    const name = groups?.['name'] ?? filter.slice(start, end);
    const operatorAt = start + name.length + (groups?.['gap']?.length ?? 0);
    const operator = groups?.['operator'] ?? '';
    const isText = /["']/.test(filter[start] ?? '');
    if (at < start) break;
    if (head !== '' && at >= operatorAt + operator.length && at <= end)
      return { name, start, end, operator, value: writtenValue(filter, valueAt, end, at), isText };
    const nameEnd = start + name.length;
    if (at <= nameEnd)
      return { name: filter.slice(start, at), start, end: nameEnd, operator, value: null, isText };
    start = Math.max(end, start + 1);
  }
  return { name: '', start: at, end: at, operator: '', value: null, isText: false };
}

function writtenValue(filter: string, start: number, end: number, at: number): WrittenValue {
  const first = filter[start] ?? '';
  const quote = /["']/.test(first) ? first : '';
  const prefix = filter.slice(start + quote.length, Math.max(at, start + quote.length));
  return { start: Math.min(start, at), end, prefix, quote, isExpression: first === '/' };
}

function valueEnd(filter: string, at: number): number {
  const quote = filter[at];
  if (quote === '"' || quote === "'") {
    for (let end = at + 1; end < filter.length; end += 1) {
      if (filter[end] === '\\') end += 1;
      else if (filter[end] === quote) return end + 1;
    }
    return filter.length;
  }
  const rest = /[\s)]/.exec(filter.slice(at));
  return rest === null ? filter.length : at + rest.index;
}

/** A term as the language takes it. */
export function termText(field: FieldName, operator: Operator, value: string): string {
  return `${field}${operator}${spellValue(value, operator, '')}`;
}

/** A value that its first reader would take otherwise stands in quotes. */
function spellValue(value: string, operator: string, quote: string): string {
  const isBare =
    quote === '' && /^[^\s"'()]+$/.test(value) && !(value.startsWith('/') && operator.endsWith('~'));
  if (isBare) return value;
  const mark = quote === '' ? '"' : quote;
  return `${mark}${value.replaceAll('\\', '\\\\').replaceAll(mark, `\\${mark}`)}${mark}`;
}
