/** Findings of any kind as SARIF 2.1.0 (OASIS), which code scanning shows beside the lines of text recordings. */

import { sep } from 'node:path';
import type { Invocation, Log } from 'sarif';
import { escapeText } from '../protocol/text.ts';
import { ASSERTION_KINDS, ASSERTION_TEXTS } from './assertions.ts';
import { RULE_IDS, RULES, type Severity } from './check/rules.ts';

/** `url`: where it is explained, if anywhere. The severities of a check are the levels of SARIF. */
export type SarifRule = { id: string; severity: Severity; text: string; url: string | null };

/** The rules of `check`, and what breaks an assertion. */
export const CHECK_RULES: readonly SarifRule[] = [
  ...RULE_IDS.map((id) => ({ id, severity: RULES[id].severity, text: RULES[id].text, url: RULES[id].url })),
  ...ASSERTION_KINDS.map((id) => ({
    ...{ id, severity: 'error' as const, text: ASSERTION_TEXTS[id], url: null },
  })),
];

export type SarifResult = {
  rule: string;
  severity: Severity;
  message: string;
  /** The text recording, relative to where its line was read, or absolute; null for a session of a store. */
  file: string | null;
  line: number;
  session: string;
  /** Where in the session, as `whereOf` has it. */
  where: string;
};

/**
 * One run with all results; every rule stands in it, so that viewers can explain what they show. Recorded text is escaped. `notes`:
 * what was not judged, which SARIF has as notifications of the invocation.
 */
export function sarifText(
  rules: readonly SarifRule[],
  results: readonly SarifResult[],
  version: string,
  notes: readonly string[] = [],
): string {
  const indexes = new Map(rules.map(({ id }, i) => [id, i]));
  const informationUri = 'https://modelcontextprotocol.io/specification';
  const driver = {
    ...{ name: 'tapedeck', semanticVersion: version, informationUri },
    rules: rules.map(({ id, severity, text, url }) => ({
      id,
      shortDescription: { text },
      ...(url === null ? {} : { helpUri: url }),
      defaultConfiguration: { level: severity },
    })),
  };
  const $schema = 'https://json.schemastore.org/sarif-2.1.0.json';
  const log: Log = {
    $schema,
    version: '2.1.0',
    runs: [
      {
        tool: { driver },
        ...(notes.length === 0 ? {} : { invocations: [invocationOf(notes)] }),
        results: results.map(({ rule, severity, message, file, line, session, where }) => ({
          ruleId: rule,
          ruleIndex: indexes.get(rule) ?? -1,
          level: severity,
          message: { text: escapeText(message) },
          locations: [
            {
              ...(file === null
                ? {}
                : {
                    physicalLocation: {
                      artifactLocation: { uri: uriOf(file) },
                      region: { startLine: line },
                    },
                  }),
              logicalLocations: [{ name: where, fullyQualifiedName: `${session}/${where}`, kind: 'element' }],
            },
          ],
        })),
      },
    ],
  };
  return `${JSON.stringify(log, null, 2)}\n`;
}

function invocationOf(notes: readonly string[]): Invocation {
  const toolExecutionNotifications = notes.map((note) => ({
    ...{ level: 'note' as const, message: { text: escapeText(note) } },
  }));
  return { executionSuccessful: true, toolExecutionNotifications };
}

function uriOf(file: string): string {
  return file.split(sep).map(encodeURIComponent).join('/');
}
