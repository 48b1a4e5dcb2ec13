/** Rules that users add: `--redact-rule 'id=/pattern/flags'`. They run in RE2's engine, so no text makes one take for ever. */

import { isUtf8 } from 'node:buffer';
import type { RE2JS } from 're2js';
import { TapedeckError } from '../../errors.ts';
import { compileRe2, unsupportedByRe2 } from '../re2.ts';
import type { MakeRedaction, Redaction } from './edits.ts';

export type CustomRule = { id: string; pattern: RE2JS };

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
  const before = id.length + 2;
  try {
    new RegExp(source, flags);
  } catch (error) {
    const [, reason = 'it is no pattern'] = /: ([^:]*)$/.exec((error as Error).message) ?? [];
    throw wrong(text, `at character ${before + validLength(source) + 1}: ${reason.toLowerCase()}`);
  }
  const pattern = compiled(text, before, source, flags);
  if (pattern.test('')) throw wrong(text, 'it matches the empty text');
  return { id, pattern };
}

function compiled(text: string, before: number, source: string, flags: string): RE2JS {
  const unsupported = unsupportedByRe2(source);
  if (unsupported !== null)
    throw wrong(
      text,
      `at character ${before + unsupported.at + 1}: expected a pattern that RE2 can run, got ${unsupported.what}. ` +
        'Write what stands around the secret out, and put the secret in a group, as in key=/key: (\\w+);/: only what the group matched is replaced',
    );
  try {
    return compileRe2(source, flags);
  } catch (error) {
    throw wrong(text, `expected a pattern that RE2 can run: ${(error as Error).message}`);
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

/** What the rules match in a text, rule by rule. */
export function customEdits(rules: readonly CustomRule[], bytes: Buffer, edit: MakeRedaction): Redaction[] {
  return rules.flatMap(({ id, pattern }) => {
    const edits: Redaction[] = [];
    // Whether there is a match is known several times sooner than where it is.
    if (!pattern.test(bytes)) return edits;
    const matcher = pattern.matcher(bytes);
    while (matcher.find()) {
      let group = 1;
      while (group <= matcher.groupCount() && matcher.start(group) < 0) group += 1;
      const replaced = group <= matcher.groupCount() ? group : 0;
      const [start, end] = [matcher.start(replaced), matcher.end(replaced)];
      if (start < end) edits.push(edit(id, start, end, textOf(bytes.subarray(start, end))));
    }
    return edits;
  });
}

function textOf(bytes: Buffer): string {
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');
}
