/** The log of `tapedeck ci`, for people and for programs. What was recorded is escaped. */

import {
  type CiFinding,
  type CiOutcome,
  type CiStep,
  exitCodeOf,
  grave,
  headline,
} from '../../ci/findings.ts';
import type { CommentResult } from '../../ci/github.ts';
import { terminalStyle } from '../../inspect/view/text.ts';
import { escapeText } from '../../protocol/text.ts';
import type { Io } from '../io.ts';

const STEPS: readonly CiStep[] = ['check', 'verify', 'diff'];

/** A log is read in a browser: nothing is cut to a width. */
export function* humanLines(io: Io, outcome: CiOutcome): Generator<string> {
  const { colors } = terminalStyle(io.stdout, io.env);
  const paint = { error: colors.red, warning: colors.yellow, note: colors.cyan };
  const { recordings, findings, troubles } = outcome;
  for (const recording of recordings) {
    yield colors.bold(escapeText(recording.file));
    for (const step of STEPS)
      if (recording[step] !== null) yield `  ${step.padEnd(6)}  ${escapeText(recording[step])}`;
    for (const one of recording.unjudged) yield `  ${colors.dim(escapeText(one))}`;
    for (const one of findings.filter(({ file }) => file === recording.file))
      yield* findingLines(one, paint[one.severity]);
    yield '';
  }
  const known = new Set(recordings.map(({ file }) => file));
  for (const one of findings.filter(({ file }) => !known.has(file))) {
    yield colors.bold(escapeText(one.file));
    yield* findingLines(one, paint[one.severity]);
    yield '';
  }
  for (const { step, file, message } of troubles)
    yield `${colors.red('not done')}  ${step}${file === null ? '' : ` ${escapeText(file)}`}: ${escapeText(message)}`;
  yield headline(outcome);
}

function* findingLines(
  { severity, rule, seq, detail }: CiFinding,
  paint: (text: string) => string,
): Generator<string> {
  const [first = '', ...rest] = detail.split('\n');
  const where = seq === null ? '' : ` #${seq}`;
  yield `  ${paint(severity)}  ${rule}${where}  ${escapeText(first)}`;
  for (const line of rest) yield `  ${escapeText(line)}`;
}

/** docs/json.md has the shapes. `comment`: null where none was asked for. */
export function* jsonLines(outcome: CiOutcome, comment: CommentResult | null): Generator<string> {
  const { recordings, findings, troubles } = outcome;
  for (const { file, unjudged, ...rest } of recordings) {
    const remarks = unjudged.length === 0 ? {} : { unjudged };
    yield JSON.stringify({ type: 'recording', recording: file, ...rest, ...remarks });
  }
  for (const { file, session, ...rest } of findings)
    yield JSON.stringify({ type: 'finding', recording: file, session: session || null, ...rest });
  for (const { step, file, message } of troubles)
    yield JSON.stringify({ type: 'trouble', step, recording: file, message });
  yield JSON.stringify({
    ...{ type: 'summary', exitCode: exitCodeOf(outcome), recordings: recordings.length },
    ...{ findings: grave(outcome).length, troubles: troubles.length, comment },
  });
}
