/** Findings for other programs: SARIF 2.1.0 (OASIS), and JUnit's XML with a test case a rule. */

import { sep } from 'node:path';
import type { Log, PhysicalLocation, Result } from 'sarif';
import { escapeText } from '../../protocol/escape.ts';
import { type JunitCase, type JunitSuite, junitText } from '../junit.ts';
import { placeLine, sentenceOf, type Tally, whereOf } from './report.ts';
import { type Finding, RULE_IDS, RULES, type RuleId } from './rules.ts';

const LEVELS = { error: 'error', warning: 'warning', note: 'note' } as const;

export type Checked = {
  /** How the report calls it: a session's name or id, or the file's path. */
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
export function sarifText(checked: readonly Checked[], version: string): string {
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

function resultOf({ sessionId, file, lines }: Checked): (finding: Finding) => Result {
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
export function junitReport(checked: readonly Checked[], version: string): string {
  return junitText(checked.map(suiteOf), version);
}

function suiteOf({ name, at, seconds, tallies }: Checked): JunitSuite {
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
