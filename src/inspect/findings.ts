/** What a check has found: counted by rule, and in words. Recorded text is not escaped. */

import type { Store } from '../store/file/open.ts';
import { metaOnlyOf, metaOnlyText } from '../store/read/meta-only.ts';
import type { SessionRow } from '../store/read/sessions.ts';
import { isWhole } from './check/check.ts';
import { type Finding, RULES, type RuleId, SEVERITIES, type Severity } from './check/rules.ts';
import { sampleText } from './view/session.ts';

/** A report lists at most this many findings per rule and session. Its counts are complete. */
export const MAX_FINDINGS_OF_RULE = 1000;

const NOT_WHOLE =
  'It is open, was cut off, lost frames or is from another tool: what is missing at its end is not counted.';

/** What whoever reads the findings of a session should know of it, each in a sentence. */
export function remarksOf(store: Store, session: SessionRow): string[] {
  const sample = sampleText(session);
  return [
    ...(isWhole({ ...session, metaFor: null }) ? [] : [NOT_WHOLE]),
    ...unjudgedOf(store, session),
    ...(sample === null ? [] : [`Of a sample: ${sample}.`]),
  ];
}

/** Why frames of the session were not judged, each in a sentence: every report says so, for people and for programs. */
export function unjudgedOf(store: Store, session: SessionRow): string[] {
  const metaOnly = metaOnlyOf(store, session);
  return [
    ...(metaOnly === null
      ? []
      : [`${metaOnlyText(metaOnly)}: what these would tell, of themselves or of others, is not judged.`]),
    ...(session.capture === 'meta' ? ['Recorded with --capture meta: no frame has a payload to judge.'] : []),
  ];
}

export const NO_SCHEMAS =
  'the thread that checks JSON Schema did not start, so arguments, results and answers were not held to their schemas. ' +
  'The machine may be too busy, or out of memory.';

const MAX_PLACES = 5;

/** What was found against one rule: how often, and the first of it. */
export type Tally = { rule: RuleId; count: number; first: Finding[] };

/** Counts findings as they come, so that any number of them fits into memory. Keeps `maxPlaces` of each rule. */
export function createTallies(maxPlaces = MAX_PLACES): { add(finding: Finding): void; all(): Tally[] } {
  const byRule = new Map<RuleId, Tally>();
  return {
    add(finding) {
      const known = byRule.get(finding.rule) ?? { rule: finding.rule, count: 0, first: [] };
      known.count += 1;
      if (known.first.length < maxPlaces) known.first.push(finding);
      byRule.set(finding.rule, known);
    },
    all: () => [...byRule.values()].sort((a, b) => rank(b.rule) - rank(a.rule)),
  };
}

export function tally(findings: Iterable<Finding>, maxPlaces = MAX_PLACES): Tally[] {
  const tallies = createTallies(maxPlaces);
  for (const finding of findings) tallies.add(finding);
  return tallies.all();
}

function rank(rule: RuleId): number {
  return SEVERITIES.indexOf(RULES[rule].severity);
}

export function isAtLeast(rule: RuleId, severity: Severity): boolean {
  return rank(rule) >= SEVERITIES.indexOf(severity);
}

/** `expected an object, saw []` */
export function sentenceOf({ expected, seen }: Finding): string {
  return `expected ${expected}, saw ${seen}`;
}

/** The frame's number, as `show` prints it. */
export function whereOf({ place, http }: Finding): string {
  if (place !== null) return place.n === 0 ? `#${place.seq}` : `#${place.seq}.${place.n}`;
  return http === null ? 'session' : `HTTP exchange ${http}`;
}

/** `2 errors, 1 note`. */
export function findingsSummary(tallies: readonly Tally[]): string {
  const counts = SEVERITIES.toReversed().flatMap((severity) => {
    const count = tallies
      .filter(({ rule }) => RULES[rule].severity === severity)
      .reduce((sum, { count }) => sum + count, 0);
    return count === 0 ? [] : [`${count} ${severity}${count === 1 ? '' : 's'}`];
  });
  return counts.length === 0 ? 'Nothing found.' : counts.join(', ');
}

/** One finding of `check --json`. `recording`: what was checked, by the name it has in all reports. */
export function findingJson(recording: string, sessionId: string, finding: Finding) {
  const { severity, url } = RULES[finding.rule];
  const { rule, side, place, http, expected, seen } = finding;
  return {
    recording,
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
  };
}
