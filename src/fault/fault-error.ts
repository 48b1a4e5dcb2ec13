import { TapedeckError } from '../errors.ts';
import { escapeText } from '../protocol/text.ts';

/** What is wrong with a rule, where (`at` counts from 0), and what to write. */
export function faultError(rule: string, expected: string, at: number, advice = ''): TapedeckError {
  const rest = rule.slice(at).trim();
  const found = rest === '' ? 'its end' : `\`${escapeText(rest.slice(0, MAX_SHOWN))}\``;
  const more = advice === '' ? '' : ` ${advice}.`;
  return new TapedeckError(
    'usage',
    `Expected ${expected} at column ${at + 1} of the fault \`${escapeText(rule.slice(0, MAX_RULE_SHOWN))}\`, got ${found}.${more}`,
  );
}

const MAX_SHOWN = 40;

const MAX_RULE_SHOWN = 200;
