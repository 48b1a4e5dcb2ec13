/** Findings for people: by rule, the gravest first, a few places of each. */

import { sep } from 'node:path';
import type { Log, PhysicalLocation, Result } from 'sarif';
import {
  type Finding,
  RULE_IDS,
  RULES,
  type RuleId,
  SEVERITIES,
  type Severity,
} from '../../inspect/check/rules.ts';
import { type JunitCase, type JunitSuite, junitText } from '../../inspect/view/junit.ts';
import { clip, type TerminalStyle, widthOf } from '../../inspect/view/text.ts';
import { escapeText } from '../../protocol/text.ts';

const MAX_PLACES = 5;

/** What was found against one rule: how often, and the first of it. */
export type Tally = { rule: RuleId; count: number; first: Finding[] };

/** Counts findings as they come, so that any number of them fits into memory. Keeps `maxPlaces` of each rule. */
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

export function* reportLines(tallies: readonly Tally[], { colors, width }: TerminalStyle): Generator<string> {
  const paint = { error: colors.red, warning: colors.yellow, note: colors.cyan };
  for (const { rule, count, first } of tallies) {
    const { severity, text, url } = RULES[rule];
    const times = count === 1 ? '' : `  ${count} times`;
    yield `${paint[severity](severity)}  ${colors.bold(rule)}${times}`;
    yield `  ${text}`;
    for (const finding of first) for (const line of placeLines(finding, width)) yield clip(line, width);
    if (count > first.length) yield colors.dim(`  … and ${count - first.length} more`);
    yield colors.dim(`  ${url}`);
    yield '';
  }
  yield summaryLine(tallies);
}

/** `#12 server: expected an object, saw []`. The place is the frame's number, as `show` prints it. */
function placeLine(finding: Finding): string {
  return escapeText(`${whereOf(finding)} ${finding.side}: ${sentenceOf(finding)}`);
}

/** What was seen tells one finding from another: where both do not fit it has a line of its own. */
function placeLines(finding: Finding, width: number): string[] {
  const whole = `  ${placeLine(finding)}`;
  if (widthOf(whole) <= width) return [whole];
  const { side, expected, seen } = finding;
  return [escapeText(`  ${whereOf(finding)} ${side}: expected ${expected},`), escapeText(`    saw ${seen}`)];
}

function sentenceOf({ expected, seen }: Finding): string {
  return `expected ${expected}, saw ${seen}`;
}

function whereOf({ place, http }: Finding): string {
  if (place !== null) return place.n === 0 ? `#${place.seq}` : `#${place.seq}.${place.n}`;
  return http === null ? 'session' : `HTTP exchange ${http}`;
}

function summaryLine(tallies: readonly Tally[]): string {
  const counts = SEVERITIES.toReversed().flatMap((severity) => {
    const count = tallies
      .filter(({ rule }) => RULES[rule].severity === severity)
      .reduce((sum, { count }) => sum + count, 0);
    return count === 0 ? [] : [`${count} ${severity}${count === 1 ? '' : 's'}`];
  });
  return counts.length === 0 ? 'Nothing found.' : counts.join(', ');
}

/** One finding of `check --json`. `recording`: what was checked, by the name it has in all reports. */
export function findingLine(recording: string, sessionId: string, finding: Finding): string {
  const { severity, url } = RULES[finding.rule];
  const { rule, side, place, http, expected, seen } = finding;
  return JSON.stringify({
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
  });
}

/** The table of rules, one line each: `check --rules`. */
export function* ruleLines(): Generator<string> {
  for (const [id, { severity, text, since, until }] of Object.entries(RULES)) {
    const range = since === null && until === null ? '' : ` (${since ?? 'first'} to ${until ?? 'newest'})`;
    yield `${severity.padEnd(8)}${id.padEnd(25)}${text}${range}`;
  }
}

/** Findings for other programs: SARIF 2.1.0 (OASIS), and JUnit's XML with a test case a rule. */

const LEVELS = { error: 'error', warning: 'warning', note: 'note' } as const;

export type SessionReport = {
  /** Its name in the report: a session's name or id, or the file's path. */
  name: string;
  sessionId: string;
  /** The text recording that was checked, if it was one. */
  file: string | null;
  /** The lines of its frames in that file, the first frame's first. */
  lines: readonly number[];
  /** When the check of it began, in milliseconds since the Unix epoch, and how long it took. */
  at: number;
  seconds: number;
  tallies: readonly Tally[];
};

/** One run with all sessions; every rule stands in it, so that viewers can explain what they show. */
export function sarifText(checked: readonly SessionReport[], version: string): string {
  const rules = RULE_IDS.map((id) => ({
    id,
    shortDescription: { text: RULES[id].text },
    helpUri: RULES[id].url,
    defaultConfiguration: { level: LEVELS[RULES[id].severity] },
  }));
  const informationUri = 'https://modelcontextprotocol.io/specification';
  const driver = { name: 'tapedeck', semanticVersion: version, informationUri, rules };
  const results = checked.flatMap((one) => one.tallies.flatMap(({ first }) => first.map(resultOf(one))));
  const $schema = 'https://json.schemastore.org/sarif-2.1.0.json';
  const log: Log = { $schema, version: '2.1.0', runs: [{ tool: { driver }, results }] };
  return `${JSON.stringify(log, null, 2)}\n`;
}

function resultOf({ sessionId, file, lines }: SessionReport): (finding: Finding) => Result {
  return (finding) => ({
    ruleId: finding.rule,
    ruleIndex: RULE_IDS.indexOf(finding.rule),
    level: LEVELS[RULES[finding.rule].severity],
    message: { text: escapeText(`The ${finding.side}: ${sentenceOf(finding)}.`) },
    locations: [
      {
        ...(file === null ? {} : { physicalLocation: physicalLocation(file, lines, finding) }),
        logicalLocations: [
          { name: whereOf(finding), fullyQualifiedName: `${sessionId}/${whereOf(finding)}`, kind: 'element' },
        ],
      },
    ],
  });
}

/** Of a finding about the session as a whole the first line, which is the session's own. */
function physicalLocation(file: string, lines: readonly number[], { place }: Finding): PhysicalLocation {
  const startLine = place === null ? 1 : (lines[place.seq - 1] ?? 1);
  return { artifactLocation: { uri: uriOf(file) }, region: { startLine } };
}

/** As a reference: relative to where the check ran, or absolute. */
function uriOf(file: string): string {
  return file.split(sep).map(encodeURIComponent).join('/');
}

/** A suite a session, a case a rule. */
export function junitOfChecks(checked: readonly SessionReport[], version: string): string {
  return junitText(checked.map(suiteOf), version);
}

function suiteOf({ name, at, seconds, tallies }: SessionReport): JunitSuite {
  const byRule = new Map(tallies.map((one) => [one.rule, one]));
  return { name, at, seconds, cases: RULE_IDS.map((rule) => caseOf(rule, byRule.get(rule))) };
}

function caseOf(rule: RuleId, found: Tally | undefined): JunitCase {
  const { severity, text, url } = RULES[rule];
  const head = { classname: severity, name: rule, seconds: 0 };
  if (found === undefined) return { ...head, outcome: { kind: 'passed' } };
  const message = `${text} ${found.count} found.`;
  const places = [...found.first.map(placeLine), url].join('\n');
  return { ...head, outcome: { kind: 'failed', type: severity, message, text: places } };
}
