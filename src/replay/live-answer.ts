/**
 * Whether a live client answers a question of the server (sampling, elicitation, roots) as the recorded client did. What
 * the recorded server said next rested on the recorded answer, so a difference is told. The call goes on all the same:
 * who answers may be a person or a model, which give no answer twice.
 */
import { differenceText } from './miss-text.ts';
import { type Answer, compareAnswers } from './verify-compare.ts';

/** Something for people: a line for stderr, and everything, in several lines, for a report. Recorded text is not escaped. */
export type Told = { line: string; text: string };

const MAX_VALUE_IN_LINE = 60;

/** Null where both answers are equal as JSON values. `method`: what was asked; `frame`: the one that asked it. */
export function tellOtherAnswer(method: string, frame: string, recorded: Answer, live: Answer): Told | null {
  const { isEqual, differences, more, problem, ...kinds } = compareAnswers(
    { method, target: null },
    recorded,
    live,
  );
  if (isEqual) return null;
  const what = `${method}: the client’s answer is not the recorded one (to ${frame}); what follows was recorded for that`;
  const why =
    problem ?? (kinds.recorded === kinds.live ? null : `recorded ${kinds.recorded}, live ${kinds.live}`);
  const [first] = differences;
  const rest = differences.length - 1 + more;
  const shown = first === undefined ? '' : differenceText(first, MAX_VALUE_IN_LINE, NOT_THERE);
  const line = `${what}: ${why ?? `${shown}${rest > 0 ? `, and ${rest} more` : ''}`}`;
  const lines = [what, ...(why === null ? [] : [`  ${why}`])];
  for (const difference of differences) lines.push(`    ${differenceText(difference, undefined, NOT_THERE)}`);
  if (more > 0) lines.push(`    and ${more} more`);
  return { line, text: `${lines.join('\n')}\n` };
}

const NOT_THERE = 'not in the live answer';
