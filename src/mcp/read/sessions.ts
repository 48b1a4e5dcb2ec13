/** What sessions there are, and what is known of one. */

import { sessionFacts } from '../../inspect/view/json.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { badCursor, openAsked, type ToolAnswer, type ToolQuestion } from './asked.ts';
import { callRow, eachSeenCall } from './calls.ts';
import { prepareFrames } from './frames.ts';
import { readToolFilter, type SeenScope } from './scope.ts';

const SESSIONS = 20;

const NO_COUNTS =
  'The counts of frames, calls and errors: this server shows parts of sessions, and the counts are of the whole. The tool stats counts what may be seen.';

export async function listSessions({ scope, room, args }: ToolQuestion): Promise<ToolAnswer> {
  const { cursor, limit = SESSIONS } = args;
  const leftOut = scope.cutsSessions ? [NO_COUNTS] : [];
  const sessions: object[] = [];
  let last = '';
  let isBehind = cursor === undefined;
  for await (const session of scope.sessionsWith(readToolFilter(args.filter))) {
    if (!isBehind) {
      isBehind = session.id === cursor;
      continue;
    }
    const row = sessions.length < limit ? room.admit(factsOf(scope, session)) : undefined;
    if (row === undefined)
      return {
        recorded: { sessions },
        cursor: last,
        leftOut: [...leftOut, 'Older sessions: ask again with this cursor.'],
      };
    sessions.push(row);
    last = session.id;
  }
  if (!isBehind) throw badCursor(cursor ?? '');
  return { recorded: { sessions }, leftOut };
}

function factsOf(scope: SeenScope, session: SessionRow): object {
  const { frames, exchanges, errors, unanswered, dropped, ...facts } = sessionFacts(scope.head(session).row);
  return scope.cutsSessions ? facts : { ...facts, frames, exchanges, errors, unanswered, dropped };
}

/** So many calls that failed are shown with their session. */
const FAILED = 10;

/** So long they are looked for, in milliseconds. */
const LOOK_MS = 300;

export async function getSession(asked: ToolQuestion): Promise<ToolAnswer> {
  const { scope, room } = asked;
  const opened = await openAsked(asked);
  const { labels, command } = scope.head(opened.session);
  const session = room.admit({ ...factsOf(scope, opened.session), labels, command: command?.slice(0, 50) });
  const frames = prepareFrames(opened, scope);
  const failed: object[] = [];
  const until = performance.now() + LOOK_MS;
  let isWhole = true;
  for (const call of eachSeenCall(opened, scope, undefined, 0)) {
    isWhole = performance.now() < until && failed.length < FAILED;
    if (!isWhole) break;
    const hasFailed = call !== null && call.outcome !== 'ok' && call.outcome !== 'input-required';
    const answer = hasFailed && call.answerSeq !== null ? frames.at(call.answerSeq) : undefined;
    const says = answer === undefined ? {} : { says: frames.title(answer) };
    const row = hasFailed ? room.admit({ ...callRow(opened, call), ...says }) : undefined;
    if (row !== undefined) failed.push(row);
  }
  const leftOut = scope.cutsSessions ? [NO_COUNTS] : [];
  if (!isWhole)
    leftOut.push(
      'More calls that failed: ask list_calls with the filter `not (status=ok or status=input-required)`.',
    );
  return { recorded: { session, failedCalls: failed }, leftOut };
}
