/** Findings for other programs: SARIF 2.1.0 (OASIS), and JUnit's XML with a test case a rule. */

import type { Log, Result } from 'sarif';
import { escapeText } from '../../protocol/escape.ts';
import { xml } from '../xml.ts';
import { placeLine, sentenceOf, type Tally, whereOf } from './report.ts';
import { type Finding, RULE_IDS, RULES } from './rules.ts';

const LEVELS = { error: 'error', warning: 'warning', note: 'note' } as const;

export type Checked = {
  /** How the report calls it: a session's name or id, or the file's path. */
  name: string;
  sessionId: string;
  /** The text recording that was checked, if it was one. */
  file: string | null;
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

function resultOf({ sessionId, file }: Checked): (finding: Finding) => Result {
  return (finding) => ({
    ruleId: finding.rule,
    ruleIndex: RULE_IDS.indexOf(finding.rule),
    level: LEVELS[RULES[finding.rule].severity],
    message: { text: escapeText(`The ${finding.side}: ${sentenceOf(finding)}.`) },
    locations: [
      {
        ...(file === null ? {} : { physicalLocation: { artifactLocation: { uri: encodeURI(file) } } }),
        logicalLocations: [
          { name: whereOf(finding), fullyQualifiedName: `${sessionId}/${whereOf(finding)}`, kind: 'element' },
        ],
      },
    ],
  });
}

/** A suite a session, a case a rule. */
export function junitText(checked: readonly Checked[]): string {
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites>',
    ...checked.flatMap(suiteLines),
    '</testsuites>',
    '',
  ].join('\n');
}

function suiteLines({ name, tallies }: Checked): string[] {
  const byRule = new Map(tallies.map((one) => [one.rule, one]));
  const cases = RULE_IDS.map((rule) => {
    const head = `<testcase classname="${RULES[rule].severity}" name="${rule}"`;
    const found = byRule.get(rule);
    if (found === undefined) return `${head}/>`;
    const text = [...found.first.map(placeLine), RULES[rule].url].join('\n');
    return `${head}><failure message="${xml(`${RULES[rule].text} ${found.count} found.`)}">${xml(text)}</failure></testcase>`;
  });
  const attributes = `tests="${RULE_IDS.length}" failures="${tallies.length}" errors="0" skipped="0"`;
  return [`<testsuite name="${xml(name)}" ${attributes}>`, ...cases, '</testsuite>'];
}
