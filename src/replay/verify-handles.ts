/**
 * What a server makes up for its client to give back: cursors, states of requests, ids of tasks. A live server knows only
 * its own, so each recorded one has a live one that stands for it.
 */
import { type Substitution, sourceAt } from './substitute.ts';

const GIVEN = [
  ['result', 'nextCursor'],
  ['result', 'requestState'],
  ['result', 'taskId'],
  ['result', 'task', 'taskId'],
];
const RELATED_TASK = 'io.modelcontextprotocol/related-task';
const GIVEN_BACK = [
  ['params', 'cursor'],
  ['params', 'requestState'],
  ['params', 'taskId'],
  ['params', '_meta', RELATED_TASK, 'taskId'],
];

export type Handles = {
  /** Learns what stands for what, and gives what makes the live answer's handles the recorded ones. */
  inAnswer(recorded: Buffer, live: Buffer): Substitution[];
  /** What makes the recorded request's handles the live ones. */
  inRequest(recorded: Buffer): Substitution[];
};

export function createHandles(): Handles {
  const liveOf = new Map<string, string>();
  return {
    inAnswer(recorded, live) {
      return GIVEN.flatMap((path) => {
        const before = sourceAt(recorded, path);
        const after = sourceAt(live, path);
        if (before === undefined || after === undefined || before === 'null' || after === 'null') return [];
        liveOf.set(before, after);
        return [{ path, text: before }];
      });
    },
    inRequest(recorded) {
      return GIVEN_BACK.flatMap((path) => {
        const text = liveOf.get(sourceAt(recorded, path) ?? '');
        return text === undefined ? [] : [{ path, text }];
      });
    },
  };
}
