/** Rules that users add: `--redact-rule 'id=/pattern/flags'`. */

import { isAscii, isUtf8 } from 'node:buffer';
import { TapedeckError } from '../../errors.ts';
import type { MakeRedaction, Redaction } from './edits.ts';

export type CustomRule = { id: string; pattern: RegExp };

const FORM = /^([a-z][a-z0-9-]{0,39})=\/(.*)\/([a-z]*)$/s;

const FLAGS = /^[imsu]*$/;

/** Throws `TapedeckError` `usage`. What a group of the pattern matched is replaced, else all that it matched. */
export function readCustomRule(text: string): CustomRule {
  const [, id, source, flags = ''] = FORM.exec(text) ?? [];
  if (id === undefined || source === undefined || source === '')
    throw wrong(
      text,
      'expected id=/pattern/flags, the id of small letters, digits and hyphens, as in ticket=/TCK-\\d{8}/i',
    );
  if (!FLAGS.test(flags)) throw wrong(text, `expected some of the flags i, m, s, u, got \`${flags}\``);
  const offset = id.length + 2;
  const nested = nestedRepeat(source);
  if (nested !== null)
    throw wrong(
      text,
      `at character ${offset + nested + 1}: a repeated group that repeats inside, like (a+)+, may take for ever`,
    );
  try {
    const pattern = new RegExp(source, `dg${flags}`);
    if (new RegExp(`(?:${source})`).test('')) throw wrong(text, 'it matches the empty text');
    return { id, pattern };
  } catch (error) {
    if (error instanceof TapedeckError) throw error;
    const [, reason = 'it is no pattern'] = /: ([^:]*)$/.exec((error as Error).message) ?? [];
    throw wrong(text, `at character ${offset + validLength(source) + 1}: ${reason.toLowerCase()}`);
  }
}

function wrong(text: string, why: string): TapedeckError {
  return new TapedeckError('usage', `--redact-rule ${text}: ${why}.`);
}

/** How much of a pattern is one by itself. */
function validLength(source: string): number {
  for (let length = source.length; length > 0; length -= 1) {
    try {
      new RegExp(source.slice(0, length));
      return length;
    } catch {}
  }
  return 0;
}

/** Where a group with an unbounded repeat in it is repeated without bound itself; null where none is. */
function nestedRepeat(source: string): number | null {
  const groups: { start: number; repeats: boolean }[] = [];
  const bare = source.replaceAll(/\\.|\[(?:\\.|[^\]])*\]/gs, (part) => 'x'.padEnd(part.length, '_'));
  for (const { index, 0: token } of bare.matchAll(
    /\((?:\?(?:[:=!]|<[=!]|<\w+>))?|\)?(?:[*+]|\{\d+,\})|\)/g,
  )) {
    const repeats = /[*+}]$/.test(token);
    if (token.startsWith('(')) groups.push({ start: index, repeats: false });
    else if (token.startsWith(')')) {
      const group = groups.pop();
      if (repeats && group?.repeats) return group.start;
      const outer = groups.at(-1);
      if (outer !== undefined) outer.repeats ||= repeats || (group?.repeats ?? false);
    } else {
      const outer = groups.at(-1);
      if (outer !== undefined) outer.repeats = true;
    }
  }
  return null;
}

/** What the rules match in a text, rule by rule. */
export function customEdits(rules: readonly CustomRule[], bytes: Buffer, edit: MakeRedaction): Redaction[] {
  if (rules.length === 0) return [];
  const isText = isUtf8(bytes);
  const text = bytes.toString(isText ? 'utf8' : 'latin1');
  const offsetOf =
    !isText || isAscii(bytes) ? (i: number) => i : (i: number) => Buffer.byteLength(text.slice(0, i));
  return rules.flatMap(({ id, pattern }) =>
    [...text.matchAll(pattern)].flatMap(({ indices = [] }) => {
      const [whole, ...groups] = indices;
      const [start, end] = groups.find((group) => group !== undefined) ?? whole ?? [0, 0];
      return start === end ? [] : [edit(id, offsetOf(start), offsetOf(end), text.slice(start, end))];
    }),
  );
}
