/** Findings for people: by rule, the gravest first, a few places of each. */

import {
  ASSERTION_TEXTS,
  type Assertion,
  type Breach,
  type BrokenAssertion,
  breachPlace,
} from '../../inspect/assertions.ts';
import { type Finding, RULE_IDS, RULES, type RuleId } from '../../inspect/check/rules.ts';
import { findingsSummary, sentenceOf, type Tally, whereOf } from '../../inspect/findings.ts';
import { CHECK_RULES, type SarifResult, sarifText } from '../../inspect/sarif.ts';
import { type JunitCase, type JunitSuite, junitText } from '../../inspect/view/junit.ts';
import { clip, formatCount, type TerminalStyle, widthOf } from '../../inspect/view/text.ts';
import { escapeText } from '../../protocol/text.ts';

export function* reportLines(
  tallies: readonly Tally[],
  broken: readonly BrokenAssertion[],
  style: TerminalStyle,
): Generator<string> {
  for (const one of broken) yield* brokenLines(one, style);
  yield* tallyLines(tallies, style);
  const summary = findingsSummary(tallies);
  const unheld = `${formatCount(broken.length, 'assertion')} ${broken.length === 1 ? 'does' : 'do'} not hold`;
  if (broken.length === 0) yield summary;
  else yield tallies.length === 0 ? unheld : `${unheld}, ${summary}`;
}

/** The filter is the user's own, but for one of a project's file. */
function* brokenLines(
  { assertion, count, first }: BrokenAssertion,
  { colors, width }: TerminalStyle,
): Generator<string> {
  const times = count === 1 ? '' : `  ${count} times`;
  yield `${colors.red('broken')}  ${colors.bold(escapeText(`${assertion.kind} ${assertion.filter}`))}${times}`;
  for (const breach of first) yield clip(`  ${breachLine(breach)}`, width);
  if (count > first.length) yield colors.dim(`  … and ${count - first.length} more`);
  yield '';
}

/** `#12 client: tools/call search, ok after 2.3 s, 300 B` */
function breachLine(breach: Breach): string {
  const { side, seen } = breach;
  return escapeText(`${breachPlace(breach)}${side === null ? '' : ` ${side}`}: ${seen}`);
}

function* tallyLines(tallies: readonly Tally[], { colors, width }: TerminalStyle): Generator<string> {
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

/** The table of rules, one line each: `check --rules`. */
export function* ruleLines(): Generator<string> {
  for (const [id, { severity, text, since, until }] of Object.entries(RULES)) {
    const range = since === null && until === null ? '' : ` (${since ?? 'first'} to ${until ?? 'newest'})`;
    yield `${severity.padEnd(8)}${id.padEnd(25)}${text}${range}`;
  }
}

/** Findings for other programs: SARIF 2.1.0 (OASIS), and JUnit's XML with a test case a rule. */

export type SessionReport = {
  /** Its name in the report: a session's name or id, or the file's path. */
  name: string;
  sessionId: string;
  /** The text recording that was checked, if it was one. */
  file: string | null;
  /** The lines of its frames in that file, the first frame's first. */
  lines: readonly number[];
  /** Why frames of it were not judged, each in a sentence. */
  unjudged: readonly string[];
  /** When the check of it began, in milliseconds since the Unix epoch, and how long it took. */
  at: number;
  seconds: number;
  tallies: readonly Tally[];
  broken: readonly BrokenAssertion[];
};

export function sarifOfChecks(checked: readonly SessionReport[], version: string): string {
  const notes = checked.flatMap(({ name, unjudged }) => unjudged.map((one) => `${name}: ${one}`));
  return sarifText(CHECK_RULES, checked.flatMap(sarifResults), version, notes);
}

/** Of a finding about the session as a whole the first line, which is the session's own. */
function sarifResults({ sessionId, file, lines, tallies, broken }: SessionReport): SarifResult[] {
  const placed = (seq: number | null) => ({
    ...{ file, session: sessionId, line: seq === null ? 1 : (lines[seq - 1] ?? 1) },
  });
  const breaches = broken.flatMap(({ first }) => first);
  return [
    ...breaches.map((breach) => ({
      ...{ rule: breach.assertion.kind, severity: 'error' as const, where: breachPlace(breach) },
      ...{ message: breachSentence(breach), ...placed(breach.seq) },
    })),
    ...tallies.flatMap(({ rule, first }) =>
      first.map((finding) => ({
        ...{ rule, severity: RULES[rule].severity, where: whereOf(finding) },
        message: `The ${finding.side}: ${sentenceOf(finding)}.`,
        ...placed(finding.place?.seq ?? null),
      })),
    ),
  ];
}

function breachSentence({ side, expected, seen }: Breach): string {
  return `The ${side ?? 'session'}: expected ${expected}, saw ${seen}.`;
}

/** A suite a session, a case a rule and a case an assertion. */
export function junitOfChecks(
  checked: readonly SessionReport[],
  assertions: readonly Assertion[],
  version: string,
): string {
  return junitText(
    checked.map((one) => suiteOf(one, assertions)),
    version,
  );
}

function suiteOf(
  { name, at, seconds, tallies, broken, unjudged }: SessionReport,
  assertions: readonly Assertion[],
): JunitSuite {
  const byRule = new Map(tallies.map((one) => [one.rule, one]));
  const byAssertion = new Map(broken.map((one) => [one.assertion, one]));
  const cases = [
    ...assertions.map((one) => assertionCase(one, byAssertion.get(one))),
    ...RULE_IDS.map((rule) => caseOf(rule, byRule.get(rule))),
  ];
  return { name, at, seconds, cases, out: unjudged };
}

function assertionCase({ kind, filter }: Assertion, broken: BrokenAssertion | undefined): JunitCase {
  const head = { classname: 'assertion', name: `${kind} ${filter}`, seconds: 0 };
  if (broken === undefined) return { ...head, outcome: { kind: 'passed' } };
  const message = `${ASSERTION_TEXTS[kind]} ${broken.count} found.`;
  const text = broken.first.map(breachLine).join('\n');
  return { ...head, outcome: { kind: 'failed', type: kind, message, text } };
}

function caseOf(rule: RuleId, found: Tally | undefined): JunitCase {
  const { severity, text, url } = RULES[rule];
  const head = { classname: severity, name: rule, seconds: 0 };
  if (found === undefined) return { ...head, outcome: { kind: 'passed' } };
  const message = `${text} ${found.count} found.`;
  const places = [...found.first.map(placeLine), url].join('\n');
  return { ...head, outcome: { kind: 'failed', type: severity, message, text: places } };
}
