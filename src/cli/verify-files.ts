/** The reports of verification that other programs show: JUnit's XML, and Markdown for a pull request. */

import { type JunitCase, junitText } from '../inspect/junit.ts';
import { escapeText } from '../protocol/escape.ts';
import type { Checked } from '../replay/verify-check.ts';
import type { Verification } from '../replay/verify-run.ts';
import type { ToolChange } from '../replay/verify-tools.ts';
import { VERSION } from '../version.ts';
import { checkedLines, nameOf, summaryLine, summaryOf, toolLines } from './verify-report.ts';

export function junitReport(name: string, { checked, tools }: Verification, at: number): string {
  const cases = [...checked.map(checkedCase), ...tools.map(toolCase)];
  const seconds = cases.reduce((sum, one) => sum + one.seconds, 0);
  return junitText([{ name, at, seconds, cases }], VERSION);
}

function checkedCase(check: Checked, i: number): JunitCase {
  const seconds = (check.milliseconds ?? 0) / 1000;
  const head = { classname: 'exchange', name: `${i + 1}. ${nameOf(check)}`, seconds };
  if (check.verdict === 'equal') return { ...head, outcome: { kind: 'passed' } };
  const message = check.why ?? '';
  if (isLeftOut(check)) return { ...head, outcome: { kind: 'skipped', text: message } };
  const text = checkedLines(check).join('\n');
  return { ...head, outcome: { kind: 'failed', type: check.verdict, message, text } };
}

function toolCase(change: ToolChange): JunitCase {
  const message = `${change.change}, ${change.breaking.length > 0 ? 'breaking' : 'not breaking'}`;
  const text = toolLines(change).join('\n');
  const outcome = { kind: 'failed', type: change.change, message, text } as const;
  return { classname: 'tool', name: change.tool, seconds: 0, outcome };
}

function isLeftOut({ verdict }: Checked): boolean {
  return verdict === 'skipped' || verdict === 'not compared';
}

export function markdownText(name: string, verification: Verification): string {
  const { checked, tools } = verification;
  const drifted = checked.filter(({ verdict }) => verdict === 'drift');
  const lines = [`## ${cell(name)}`, '', cell(summaryLine(summaryOf(verification))), ''];
  if (checked.length > 0) {
    lines.push('| | request | why |', '|---|---|---|');
    for (const check of checked)
      lines.push(`| ${check.verdict} | ${cell(nameOf(check))} | ${cell(check.why ?? '')} |`);
    lines.push('');
  }
  for (const part of [...drifted.map(checkedLines), ...tools.map(toolLines)])
    lines.push(...part.map((line) => `    ${line}`), '');
  return `${lines.join('\n')}`;
}

/** Nothing in it is markup. */
function cell(text: string): string {
  return escapeText(text).replace(/[\\`*_[\]<>|#~&!]/g, '\\$&');
}
