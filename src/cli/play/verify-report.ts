/** The result of a verification, for people and for programs. Recorded and live text is escaped. */

import { type JunitCase, junitText } from '../../inspect/view/junit.ts';
import { clip } from '../../inspect/view/text.ts';
import { type Difference, jsonPointer } from '../../protocol/json/diff.ts';
import { escapeText } from '../../protocol/text.ts';
import { changesText, type RequestCheck } from '../../replay/verify/check.ts';
import type { ListChange } from '../../replay/verify/offers.ts';
import type { Verification } from '../../replay/verify/run.ts';
import { VERSION } from '../../version.ts';

const MAX_DIFFERENCES = 10;

const MAX_VALUE = 100;

const SIGN = { equal: 'equal  ', drift: 'DRIFT  ', skipped: 'skipped', 'not compared': '-      ' } as const;

type Summary = {
  equal: number;
  drift: number;
  skipped: number;
  notCompared: number;
  /** Of what the server lists. */
  changed: number;
  breaking: number;
  isEqual: boolean;
};

export function summaryOf({ checked, lists }: Verification): Summary {
  const count = (verdict: RequestCheck['verdict']) =>
    checked.filter((check) => check.verdict === verdict).length;
  const drift = count('drift');
  return {
    equal: count('equal'),
    drift,
    skipped: count('skipped'),
    notCompared: count('not compared'),
    changed: lists.length,
    breaking: lists.filter(({ breaking }) => breaking.length > 0).length,
    isEqual: drift === 0 && lists.length === 0,
  };
}

export function askedName({ method, target, askedBy }: RequestCheck): string {
  const name = target === null ? method : `${method} ${target}`;
  const isQuestion = askedBy === 'server' && !isNews(method);
  return isQuestion ? `asked by the server: ${name}` : name;
}

/** What a server says by itself is compared all together, not one by one. */
function isNews(method: string): boolean {
  return method.startsWith('notifications/');
}

export function checkedLines(check: RequestCheck): string[] {
  const why = check.why === null ? '' : `: ${check.why}`;
  return [
    `${SIGN[check.verdict]}  ${escapeText(askedName(check) + why)}`,
    ...differenceLines(check.differences, check.more),
  ];
}

/** What the two sides of a difference are called. */
type SideNames = { from: string; to: string };

const RECORDED_AND_LIVE: SideNames = { from: 'recorded', to: 'live' };

export function differenceLines(
  differences: readonly Difference[],
  more = 0,
  names: SideNames = RECORDED_AND_LIVE,
): string[] {
  const shown = differences.slice(0, MAX_DIFFERENCES);
  const lines = shown.map((difference) => `           ${differenceText(difference, names)}`);
  const rest = differences.length - shown.length + more;
  return rest === 0 ? lines : [...lines, `           and ${rest} more`];
}

function differenceText({ change, path, from, to }: Difference, names: SideNames): string {
  const sides = [
    ...(from === null ? [] : [`${names.from} ${valueText(from)}`]),
    ...(to === null ? [] : [`${names.to} ${valueText(to)}`]),
  ];
  return `${escapeText(jsonPointer(path)) || '(all of it)'} ${change}: ${sides.join(', ')}`;
}

function valueText(value: Buffer): string {
  return clip(escapeText(value.toString('utf8', 0, MAX_VALUE * 4)), MAX_VALUE);
}

export function listLines({ kind, name, change, breaking, differences }: ListChange): string[] {
  const effect = breaking.length > 0 ? 'breaking' : 'not breaking';
  return [
    `${kind.padEnd(8)} ${escapeText(name)} ${change}, ${effect}`,
    ...breaking.map((why) => `           ${escapeText(why)}`),
    ...differenceLines(differences),
  ];
}

export function summaryLine(verification: Verification): string {
  const { equal, drift, skipped, notCompared, changed, isEqual } = summaryOf(verification);
  const parts = [`${equal} equal`, `${drift} drifted`];
  if (skipped > 0) parts.push(`${skipped} skipped`);
  if (notCompared > 0) parts.push(`${notCompared} not compared`);
  if (changed > 0) parts.push(changesText(verification.lists));
  return `${isEqual ? 'equal' : 'drift'}: ${parts.join(', ')}`;
}

export function checkedJson(check: RequestCheck): string {
  const { place, differences, more, recorded, live, ...rest } = check;
  const said = isNews(check.method) ? { type: 'notifications' } : { type: 'exchange', recorded, live };
  return JSON.stringify({
    ...said,
    seq: place?.seq ?? null,
    ...rest,
    differences: differences.map(differenceData),
    moreDifferences: more,
  });
}

export function listJson({ differences, breaking, ...rest }: ListChange): string {
  const isBreaking = breaking.length > 0;
  return JSON.stringify({
    type: 'list',
    ...rest,
    breaking: isBreaking,
    reasons: breaking,
    differences: differences.map(differenceData),
  });
}

export function summaryJson(summary: Summary): string {
  return JSON.stringify({ type: 'summary', ...summary });
}

/** Values as JSON text, so that no number loses digits; null where there is none. */
function differenceData({ change, path, from, to }: Difference) {
  const recorded = from === null ? null : from.toString();
  return { change, pointer: jsonPointer(path), recorded, live: to === null ? null : to.toString() };
}

/** The reports of verification that other programs show: JUnit's XML, and Markdown for a pull request. */

export function junitReport(name: string, { checked, lists }: Verification, at: number): string {
  const cases = [...checked.map(checkedCase), ...lists.map(listCase)];
  const seconds = cases.reduce((sum, one) => sum + one.seconds, 0);
  return junitText([{ name, at, seconds, cases }], VERSION);
}

function checkedCase(check: RequestCheck, i: number): JunitCase {
  const seconds = (check.milliseconds ?? 0) / 1000;
  const head = { classname: 'exchange', name: `${i + 1}. ${askedName(check)}`, seconds };
  if (check.verdict === 'equal') return { ...head, outcome: { kind: 'passed' } };
  const message = check.why ?? '';
  if (isLeftOut(check)) return { ...head, outcome: { kind: 'skipped', text: message } };
  const text = checkedLines(check).join('\n');
  return { ...head, outcome: { kind: 'failed', type: check.verdict, message, text } };
}

function listCase(change: ListChange): JunitCase {
  const message = `${change.change}, ${change.breaking.length > 0 ? 'breaking' : 'not breaking'}`;
  const text = listLines(change).join('\n');
  const outcome = { kind: 'failed', type: change.change, message, text } as const;
  return { classname: change.kind, name: change.name, seconds: 0, outcome };
}

function isLeftOut({ verdict }: RequestCheck): boolean {
  return verdict === 'skipped' || verdict === 'not compared';
}

export function markdownText(name: string, verification: Verification): string {
  const { checked, lists } = verification;
  const drifted = checked.filter(({ verdict }) => verdict === 'drift');
  const lines = [`## ${cell(name)}`, '', cell(summaryLine(verification)), ''];
  if (checked.length > 0) {
    lines.push('| | request | why |', '|---|---|---|');
    for (const check of checked)
      lines.push(`| ${check.verdict} | ${cell(askedName(check))} | ${cell(check.why ?? '')} |`);
    lines.push('');
  }
  for (const part of [...drifted.map(checkedLines), ...lists.map(listLines)])
    lines.push(...part.map((line) => `    ${line}`), '');
  return `${lines.join('\n')}`;
}

/** Nothing in it is markup. */
function cell(text: string): string {
  return escapeText(text).replace(/[\\`*_[\]<>|#~&!]/g, '\\$&');
}
