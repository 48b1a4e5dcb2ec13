/**
 * Maps recorded handles to live ones. A handle is what a server makes up for its client to send back: a cursor, the state
 * of a request, the id of a task. A live server knows only its own.
 */

import { memberAt, type Substitution, sourceAt, substitute } from '../../protocol/json/edit.ts';
import { eachElement } from '../../protocol/json/read.ts';

const RELATED_TASK = 'io.modelcontextprotocol/related-task';

/** Where an answer gives a handle. */
const GIVEN = [
  ['result', 'nextCursor'],
  ['result', 'requestState'],
  ['result', 'taskId'],
  ['result', 'task', 'taskId'],
];

/** Where an answer names one that was given before. */
const NAMED = ['result', '_meta', RELATED_TASK, 'taskId'];

const GIVEN_BACK = [
  ['params', 'cursor'],
  ['params', 'requestState'],
  ['params', 'taskId'],
  ['params', '_meta', RELATED_TASK, 'taskId'],
];

const TASKS = ['result', 'tasks'];

type Handles = {
  /** Learns the handles of an answer. Returns both answers as they compare: the live one with the recorded handles. */
  inAnswer(method: string, recorded: Buffer, live: Buffer): { recorded: Buffer; live: Buffer };
  /** Returns what turns the recorded request's handles into the live ones. */
  inRequest(recorded: Buffer): Substitution[];
};

export function createHandles(): Handles {
  const liveOf = new Map<string, string>();
  const recordedOf = new Map<string, string>();

  function learn(recorded: Buffer, live: Buffer): Substitution[] {
    return GIVEN.flatMap((path) => {
      const before = sourceAt(recorded, path);
      const after = sourceAt(live, path);
      if (before === undefined || after === undefined || before === 'null' || after === 'null') return [];
      liveOf.set(before, after);
      recordedOf.set(after, before);
      return [{ path, text: before }];
    });
  }

  function named(live: Buffer): Substitution[] {
    const text = recordedOf.get(sourceAt(live, NAMED) ?? '');
    return text === undefined ? [] : [{ path: NAMED, text }];
  }

  /** The tasks that this run has begun, by their recorded ids: a server may know others, and lists them in any order. */
  function listed(answer: Buffer, recordedId: (id: string) => string | undefined): Substitution[] {
    const list = memberAt(answer, TASKS);
    if (list?.type !== 'array') return [];
    const tasks: { id: string; text: string }[] = [];
    eachElement(answer, list.start, ({ start, end }) => {
      const task = answer.subarray(start, end);
      const id = recordedId(sourceAt(task, ['taskId']) ?? '');
      if (id !== undefined)
        tasks.push({ id, text: substitute(task, [{ path: ['taskId'], text: id }]).toString() });
    });
    tasks.sort((a, b) => (a.id < b.id ? -1 : 1));
    return [{ path: TASKS, text: `[${tasks.map(({ text }) => text).join()}]` }];
  }

  return {
    inAnswer(method, recorded, live) {
      const given = [...learn(recorded, live), ...named(live)];
      if (method !== 'tasks/list') return { recorded, live: substitute(live, given) };
      const begun = (id: string) => (liveOf.has(id) ? id : undefined);
      return {
        recorded: substitute(recorded, listed(recorded, begun)),
        live: substitute(live, [...given, ...listed(live, (id) => recordedOf.get(id))]),
      };
    },
    inRequest(recorded) {
      return GIVEN_BACK.flatMap((path) => {
        const text = liveOf.get(sourceAt(recorded, path) ?? '');
        return text === undefined ? [] : [{ path, text }];
      });
    },
  };
}

/** How far tasks have come. Specification 2025-11-25, basic/utilities/tasks; the extension io.modelcontextprotocol/tasks. */

const ENDED = new Set(['"completed"', '"failed"', '"cancelled"']);

const WORKING = '"working"';

/** Whether the live task has yet to come to where the recorded one was: it is asked about until it has. */
export function isTaskBehind(recorded: Buffer, live: Buffer): boolean {
  const [before, now] = [statusIn(recorded), statusIn(live)];
  return before !== null && now !== null && before !== WORKING && before !== now && !ENDED.has(now);
}

/** The status of a live task that has gone further than the recorded one, which was at work; null where it has not. */
export function statusAhead(recorded: Buffer, live: Buffer): string | null {
  const [before, now] = [statusIn(recorded), statusIn(live)];
  return before === WORKING && now !== null && now !== WORKING ? now.slice(1, -1) : null;
}

const SHORTEST_MS = 10;

const USUAL_MS = 200;

const LONGEST_MS = 1000;

/** How long a live task wants to be left alone before it is asked about again. */
export function pollMsOf(live: Buffer): number {
  const wanted = Number(sourceAt(live, ['result', 'pollInterval']) ?? USUAL_MS);
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, wanted || USUAL_MS));
}

function statusIn(answer: Buffer): string | null {
  return sourceAt(answer, ['result', 'status']) ?? sourceAt(answer, ['result', 'task', 'status']) ?? null;
}
