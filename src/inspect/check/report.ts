/** Findings for people: by rule, the gravest first, a few places of each. */

import { escapeText } from '../../protocol/escape.ts';
import type { Look } from '../look.ts';
import { clip } from '../text.ts';
import { SEVERITIES, type Severity } from './rule.ts';
import { type Finding, RULES, type RuleId } from './rules.ts';

const MAX_PLACES = 5;

/** What was found against one rule: how often, and the first of it. */
export type Tally = { rule: RuleId; count: number; first: Finding[] };

/** Counts findings as they come, so that any number of them fits into memory. `maxPlaces` are kept of each rule. */
export function tally(findings: Iterable<Finding>, maxPlaces = MAX_PLACES): Tally[] {
  const byRule = new Map<RuleId, Tally>();
  for (const finding of findings) {
    const known = byRule.get(finding.rule) ?? { rule: finding.rule, count: 0, first: [] };
    known.count += 1;
    if (known.first.length < maxPlaces) known.first.push(finding);
    byRule.set(finding.rule, known);
  }
  return [...byRule.values()].sort((a, b) => rank(b.rule) - rank(a.rule));
}

function rank(rule: RuleId): number {
  return SEVERITIES.indexOf(RULES[rule].severity);
}

export function isAtLeast(rule: RuleId, severity: Severity): boolean {
  return rank(rule) >= SEVERITIES.indexOf(severity);
}

export function* reportLines(tallies: readonly Tally[], { colors, width }: Look): Generator<string> {
  const paint = { error: colors.red, warning: colors.yellow, note: colors.cyan };
  for (const { rule, count, first } of tallies) {
    const { severity, text, url } = RULES[rule];
    const times = count === 1 ? '' : `  ${count} times`;
    yield `${paint[severity](severity)}  ${colors.bold(rule)}${times}`;
    yield `  ${text}`;
    for (const finding of first) yield clip(`  ${placeLine(finding)}`, width);
    if (count > first.length) yield colors.dim(`  … and ${count - first.length} more`);
    yield colors.dim(`  ${url}`);
    yield '';
  }
  yield summaryLine(tallies);
}

/** `#12 server: expected an object, saw []`. The place is the frame's number, as `show` prints it. */
export function placeLine(finding: Finding): string {
  return escapeText(`${whereOf(finding)} ${finding.side}: ${sentenceOf(finding)}`);
}

export function sentenceOf({ expected, seen }: Finding): string {
  return `expected ${expected}, saw ${seen}`;
}

export function whereOf({ place, http }: Finding): string {
  if (place !== null) return place.n === 0 ? `#${place.seq}` : `#${place.seq}.${place.n}`;
  return http === null ? 'session' : `HTTP exchange ${http}`;
}

export function summaryLine(tallies: readonly Tally[]): string {
  const counts = SEVERITIES.toReversed().flatMap((severity) => {
    const count = tallies
      .filter(({ rule }) => RULES[rule].severity === severity)
      .reduce((sum, { count }) => sum + count, 0);
    return count === 0 ? [] : [`${count} ${severity}${count === 1 ? '' : 's'}`];
  });
  return counts.length === 0 ? 'Nothing found.' : counts.join(', ');
}

/** One finding of `check --json`. */
export function findingLine(sessionId: string, finding: Finding): string {
  const { severity, url } = RULES[finding.rule];
  const { rule, side, place, http, expected, seen } = finding;
  return JSON.stringify({
    session: sessionId,
    rule,
    severity,
    side,
    seq: place?.seq ?? null,
    n: place?.n ?? null,
    http,
    expected,
    seen,
    url,
  });
}

/** The table of rules, one line each: `check --rules`. */
export function* ruleLines(): Generator<string> {
  for (const [id, { severity, text, since, until }] of Object.entries(RULES)) {
    const range = since === null && until === null ? '' : ` (${since ?? 'first'} to ${until ?? 'newest'})`;
    yield `${severity.padEnd(8)}${id.padEnd(25)}${text}${range}`;
  }
}
