/** The reports of verification that other programs show: JUnit's XML, and Markdown for a pull request. */

import { xml } from '../inspect/xml.ts';
import { escapeText } from '../protocol/escape.ts';
import type { Checked } from '../replay/verify-check.ts';
import type { Verification } from '../replay/verify-run.ts';
import type { ToolChange } from '../replay/verify-tools.ts';
import { checkedLines, nameOf, summaryLine, summaryOf, toolLines } from './verify-report.ts';

export function junitText(name: string, { checked, tools }: Verification): string {
  const failed = checked.filter(({ verdict }) => verdict === 'drift').length + tools.length;
  const skipped = checked.filter(isLeftOut).length;
  const count = checked.length + tools.length;
  const attributes = `name="${xml(name)}" tests="${count}" failures="${failed}" errors="0" skipped="${skipped}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites>',
    `<testsuite ${attributes}>`,
    ...checked.map(checkedCase),
    ...tools.map(toolCase),
    '</testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

function checkedCase(check: Checked, i: number): string {
  const head = `<testcase classname="exchange" name="${i + 1}. ${xml(nameOf(check))}" time="${((check.milliseconds ?? 0) / 1000).toFixed(3)}"`;
  if (check.verdict === 'equal') return `${head}/>`;
  const why = xml(check.why ?? '');
  if (isLeftOut(check)) return `${head}><skipped message="${why}"/></testcase>`;
  return `${head}><failure message="${why}">${xml(checkedLines(check).join('\n'))}</failure></testcase>`;
}

function toolCase(change: ToolChange): string {
  const message = `${change.change}, ${change.breaking.length > 0 ? 'breaking' : 'not breaking'}`;
  const text = xml(toolLines(change).join('\n'));
  return `<testcase classname="tool" name="${xml(change.tool)}"><failure message="${message}">${text}</failure></testcase>`;
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
