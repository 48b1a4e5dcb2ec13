/** What is found in a session, by rules that ask for no schema. */
import type { Finding, RuleId } from '../../../../src/inspect/check/rules.ts';
import type { Schemas } from '../../../../src/inspect/schema/schemas.ts';
import { findingsOf, type Script, type Step } from '../session.ts';

const UNASKED: Schemas = {
  compile: () => ({ kind: 'unasked' }),
  validate: () => ({ kind: 'unasked' }),
  hasFailed: () => false,
  close: () => Promise.resolve(),
};

export function found(steps: Step[], facts: Script['facts'] = {}): Finding[] {
  return findingsOf({ steps, facts }, UNASKED);
}

/** Those of the rules whose ids begin so. */
export function rulesOf(prefix: string, steps: Step[], facts: Script['facts'] = {}): RuleId[] {
  return found(steps, facts)
    .map(({ rule }) => rule)
    .filter((rule) => rule.startsWith(prefix));
}

/** And what they saw. */
export function seenBy(prefix: string, steps: Step[], facts: Script['facts'] = {}): string[] {
  return found(steps, facts)
    .filter(({ rule }) => rule.startsWith(prefix))
    .map(({ seen }) => seen);
}
