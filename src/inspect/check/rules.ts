/** Every rule of the check, by id. */

import type { Finding as AnyFinding, Report as AnyReport, Rule } from './rule.ts';
import { BASE_RULES } from './rules-base.ts';
import { FEATURE_RULES } from './rules-features.ts';

const TABLE = { ...BASE_RULES, ...FEATURE_RULES };

export type RuleId = keyof typeof TABLE;
export type Finding = AnyFinding<RuleId>;
export type Report = AnyReport<RuleId>;

export const RULES: Readonly<Record<RuleId, Rule>> = TABLE;
export const RULE_IDS = Object.keys(TABLE) as RuleId[];
