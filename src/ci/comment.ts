/**
 * The comment on a pull request. It names recordings, frames, calls and JSON pointers, and never a value that was recorded or
 * that a live server has sent: whoever reads the pull request may read it.
 */

import { formatCount } from '../inspect/view/text.ts';
import { escapeText } from '../protocol/text.ts';
import {
  type CiFinding,
  type CiOutcome,
  type CiRecording,
  exitCodeOf,
  grave,
  headline,
  slight,
} from './findings.ts';

/** GitHub counts characters; none of them has more than one byte more than it is counted for. */
export const MAX_COMMENT_BYTES = 65_536;

/** Of a longer name the beginning tells enough. */
const MAX_NAME = 200;

const MAX_NAMES = 8;

export type CommentAbout = {
  /** Tells several comments of one pull request apart, and stands at its head. */
  title: string;
  version: string;
  /** Where the log of this run is; null where nobody knows. */
  runUrl: string | null;
};

/** What a comment begins with, by which it is found again. Nobody sees it. */
export function commentMarker(title: string): string {
  return `<!-- mcp-tapedeck ci ${encodeURIComponent(title).replaceAll('--', '-%2D')} -->`;
}

/** Whether there is more to tell than that all is as it was. */
export function isWorthTelling({ findings, troubles }: CiOutcome): boolean {
  return findings.length > 0 || troubles.length > 0;
}

/** Markdown of at most 65,536 bytes; what does not fit is counted. Nothing that was recorded is markup in it. */
export function commentText(outcome: CiOutcome, { title, version, runUrl }: CommentAbout): string {
  const head = [
    commentMarker(title),
    `### ${SIGNS[exitCodeOf(outcome)] ?? ''} ${plain(title)}: ${headline(outcome)}`,
    '',
  ];
  const log = runUrl === null ? '' : `, [log of this run](${encodeURI(runUrl)})`;
  const foot = ['', `<sub>tapedeck ${version}${log}. Values stand in the recordings, never here.</sub>`];
  const whole = [head, foot].flat().join('\n');
  const room = MAX_COMMENT_BYTES - Buffer.byteLength(whole) - RESERVED_BYTES;
  return [...head, ...fitting(sectionsOf(outcome), room), ...foot].join('\n');
}

const SIGNS = [':white_check_mark:', ':x:', ':warning:'];

/** For the line that says what was left out. */
const RESERVED_BYTES = 200;

function fitting(lines: readonly string[], room: number): string[] {
  let left = room;
  const fits = lines.findIndex((line) => {
    left -= Buffer.byteLength(line) + 1;
    return left < 0;
  });
  if (fits === -1) return [...lines];
  const rest = lines.slice(fits).filter((line) => line !== '').length;
  return [...lines.slice(0, fits), '', `… and ${formatCount(rest, 'line')} more, which the log has.`];
}

/** The gravest first: the end is what may not fit. */
function sectionsOf(outcome: CiOutcome): string[] {
  const troubles = outcome.troubles.map(
    ({ step, file, message }) => `- ${step}${file === null ? '' : ` ${code(file)}`}: ${code(message)}`,
  );
  return [
    ...section('Could not be checked', troubles),
    ...section('Findings', grave(outcome).map(findingLine)),
    ...tableOf(outcome),
    ...section('Not judged', outcome.recordings.flatMap(unjudgedLines)),
    ...section('Also changed', slight(outcome).map(findingLine)),
  ];
}

function unjudgedLines({ file, unjudged }: CiRecording): string[] {
  return unjudged.map((one) => `- ${code(file)}: ${plain(one)}`);
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`**${title}**`, '', ...lines, ''];
}

function tableOf({ recordings }: CiOutcome): string[] {
  const cell = (words: string | null) => (words === null ? '–' : plain(words));
  const rows = recordings.map(
    ({ file, check, verify, diff }) =>
      `| ${code(file).replaceAll('|', '\\|')} | ${cell(check)} | ${cell(verify)} | ${cell(diff)} |`,
  );
  return rows.length === 0 ? [] : ['| recording | check | verify | diff |', '|---|---|---|---|', ...rows, ''];
}

/** `- **error** drift in recordings/a.ndjson, frame 9: 2 differences: tools/call echo, /content/0/text` */
function findingLine({ severity, rule, file, seq, what, names }: CiFinding): string {
  const frame = seq === null ? '' : `, frame ${seq}`;
  const shown = names.slice(0, MAX_NAMES).map(code).join(', ');
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
  const about = shown === '' ? '' : ` ${shown}${more}`;
  return `- **${severity}** ${code(rule)} in ${code(file)}${frame}: ${plain(what)}${about}`;
}

/** As code nothing becomes a link, a mention or markup. */
function code(text: string): string {
  const escaped = escapeText(text).replaceAll(/\s+/g, ' ');
  const shown = [...escaped].length > MAX_NAME ? `${[...escaped].slice(0, MAX_NAME).join('')}…` : escaped;
  const longest = Math.max(0, ...[...shown.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const space = /^`|`$|^ .* $/.test(shown) ? ' ' : '';
  return `${fence}${space}${shown === '' ? ' ' : shown}${space}${fence}`;
}

/** Own words, with the code that stands in them; a title of the user's. */
function plain(text: string): string {
  return escapeText(text).replaceAll(/(`[^`]*`)|[\\*_[\]<>|#~&!@]/g, (found, span) => span ?? `\\${found}`);
}
