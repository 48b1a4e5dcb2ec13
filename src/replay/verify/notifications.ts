/**
 * Compares the server's notifications: progress, logs, changes. Progress is compared call by call, by its token, in order.
 * All others are compared method by method, because overlapping calls may send them in any order.
 *
 * Notifications that belong to no call are lost over Streamable HTTP until the client has opened a stream, and take other
 * ways over other transports. Such a difference is reported, but is no drift. Cancellations are not compared, nor are the
 * states of tasks, whose number differs from run to run.
 */

import { diffOf } from '../../protocol/json/diff.ts';
import { sourceAt, substitute } from '../../protocol/json/edit.ts';
import type { NotificationMessage } from '../../protocol/message/message.ts';
import type { IgnoreRules } from '../match/ignore.ts';
import { findParams, requestKey } from '../match/key.ts';
import { tokenOf } from '../play/translate.ts';
import type { Recording } from '../recording/recording.ts';
import type { CallTopic } from '../recording/topics.ts';
import { arrayOf } from '../serve/batch.ts';
import { cameUnasked } from '../serve/profile.ts';
import { emptyCheck, type RequestCheck } from './check.ts';
import type { PlannedCall } from './plan.ts';

/** How a notification came: with a call, or by itself on the stream that Streamable HTTP has for that. */
type Way = 'with a call' | 'by itself';

type NotificationCheck = {
  /** A call of the plan is asked now. */
  asked(call: number, json: Buffer): void;
  /** The live server sent this. */
  heard(message: NotificationMessage, json: Buffer, way: Way): void;
  /** Whether a recorded notification has not come so far. */
  isMissing(): boolean;
  /** `isComplete`: no call was left out. */
  check(isComplete: boolean): RequestCheck[];
};

/** The notifications of one call, or of one method. */
type Group = CallTopic & { call: number | null; way: Way; recorded: Buffer[]; live: Buffer[] };

const PROGRESS = 'notifications/progress';

const NOT_COMPARED = new Set([
  'notifications/cancelled',
  'notifications/tasks',
  'notifications/tasks/status',
]);

const PROGRESS_TOKEN = ['params', 'progressToken'];

const SUBSCRIPTION = ['params', '_meta', 'io.modelcontextprotocol/subscriptionId'];

const MAX_DIFFERENCES = 100;

const NO_PARAMS = Buffer.from('{}');

type NotificationCheckOptions = {
  ignore: IgnoreRules;
  /** Whether the user ignores this method. */
  isLeftOut: (method: string) => boolean;
  /** Whether the live server has the transport of the recorded one. */
  isSameTransport: () => boolean;
};

export function createNotificationCheck(
  recording: Recording,
  calls: readonly PlannedCall[],
  { ignore, isLeftOut, isSameTransport }: NotificationCheckOptions,
): NotificationCheck {
  const groups = new Map<string, Group>();
  /** Calls that were asked, and the latest one of each progress token. */
  const asked = new Set<number>();
  const callOf = new Map<string, number>();

  function groupOf(method: string, call: number | null, way: Way): Group {
    const key = `${method} ${call ?? way}`;
    const known = groups.get(key);
    if (known !== undefined) return known;
    const group = { method, target: targetOf(call), call, way, recorded: [], live: [] };
    groups.set(key, group);
    return group;
  }

  function targetOf(call: number | null): string | null {
    const place = call === null ? undefined : calls[call]?.place;
    return place === undefined ? null : (recording.read(recording.load(place))?.details.target ?? null);
  }

  /** The params that count. */
  function textOf(method: string, json: Buffer): Buffer {
    const alike = recording.alike(recording.redacted(json));
    const own = substitute(alike, [{ path: SUBSCRIPTION, text: '0' }]);
    const key = requestKey({ method, target: null }, own, findParams(own, 0), ignore);
    return typeof key === 'string' ? NO_PARAMS : key.params;
  }

  function readRecorded(): void {
    const indexes = new Map(calls.map(({ place }, call) => [`${place.seq}.${place.n}`, call]));
    for (const { place, direction, kind, method, httpExchange, relation, to } of recording.lines()) {
      if (direction !== 'server-to-client' || kind !== 'notification') continue;
      if (method === null || NOT_COMPARED.has(method)) continue;
      const named = relation === 'progress' && to !== null ? indexes.get(`${to.seq}.${to.n}`) : undefined;
      const step = { place, kind, isAnswer: false, after: 0, httpExchange, waitsFor: [] };
      const isUnasked = recording.session.transport === 'http' && cameUnasked(recording, step);
      const way = isUnasked && named === undefined ? 'by itself' : 'with a call';
      groupOf(method, named ?? null, way).recorded.push(textOf(method, recording.load(place)));
    }
  }

  /** A call that was never answered, or not asked, stopped at a point of chance. */
  function mayCompare({ call }: Group): boolean {
    return call === null || (asked.has(call) && calls[call]?.answer !== null);
  }

  function comparable(): Group[] {
    return [...groups.values()].filter((group) => mayCompare(group) && !isLeftOut(group.method));
  }

  function checkGroup(group: Group, isComplete: boolean): RequestCheck {
    const { recorded, live } = group;
    const check = emptyCheck(group, null, 'server');
    const isOrdered = group.call !== null;
    const before = arrayOf(isOrdered ? recorded : without(recorded, live));
    const after = arrayOf(isOrdered ? live : without(live, recorded));
    const { differences, more } = diffOf(before, after, MAX_DIFFERENCES);
    if (differences.length === 0) return { ...check, verdict: 'equal' };
    const count =
      recorded.length === live.length ? 'they differ' : `${recorded.length} recorded, ${live.length} live`;
    const excuse = group.call === null ? excuseOf(group, isComplete) : null;
    if (excuse !== null) return { ...check, verdict: 'not compared', why: `${count}, but ${excuse}` };
    return { ...check, verdict: 'drift', why: count, differences, more };
  }

  function excuseOf({ way }: Group, isComplete: boolean): string | null {
    if (!isComplete) return 'some calls were left out';
    if (!isSameTransport()) return 'over another transport it may go another way';
    return way === 'by itself' ? 'it may come before its stream is open' : null;
  }

  readRecorded();
  return {
    asked(call, json) {
      asked.add(call);
      const token = tokenOf(json);
      if (token !== undefined) callOf.set(token, call);
    },
    heard({ canonical }, json, way) {
      if (NOT_COMPARED.has(canonical)) return;
      const token = canonical === PROGRESS ? sourceAt(json, PROGRESS_TOKEN) : undefined;
      const call = callOf.get(token ?? '') ?? null;
      const own = call === null ? way : 'with a call';
      groupOf(canonical, call, own).live.push(textOf(canonical, json));
    },
    isMissing: () =>
      comparable().some(
        (group) =>
          group.live.length < group.recorded.length &&
          (group.call !== null || excuseOf(group, true) === null),
      ),
    check: (isComplete) => comparable().map((group) => checkGroup(group, isComplete)),
  };
}

/** Drops texts that `others` has, too, each as often as it occurs there. */
function without(texts: readonly Buffer[], others: readonly Buffer[]): Buffer[] {
  const counts = new Map<string, number>();
  for (const text of others) counts.set(text.toString(), (counts.get(text.toString()) ?? 0) + 1);
  return texts.filter((text) => {
    const left = (counts.get(text.toString()) ?? 0) - 1;
    counts.set(text.toString(), left);
    return left < 0;
  });
}
