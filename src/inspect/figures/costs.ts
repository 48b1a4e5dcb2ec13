/**
 * Of a session, or of several together: whose time passed, what the definitions of tools weigh, and what became of calls that
 * their clients have no answer to.
 */

import { eachElement, membersOf, stringText } from '../../protocol/json/read.ts';
import { jsonOf } from '../../protocol/message/conversation.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { messageSpan } from '../../protocol/message/payload.ts';
import type { Store } from '../../store/file/open.ts';
import { preparePayloads } from '../../store/read/frames.ts';
import type { CallVerdict } from '../verdict/fate.ts';

export type Costs = {
  times: Times;
  /** How many lists of tools came, whole or a page, and their bytes together. */
  lists: number;
  listBytes: number;
  /** The bytes of the definition of each tool, as they were listed last; of several sessions the most. */
  tools: Map<string, number>;
  /** Calls of clients without an answer that they could use. */
  lost: Map<CallVerdict, number>;
};

export function noCosts(): Costs {
  return { times: noTimes(), lists: 0, listBytes: 0, tools: new Map(), lost: new Map() };
}

export function addCosts(to: Costs, more: Costs): void {
  to.times.server += more.times.server;
  to.times.person += more.times.person;
  to.times.client += more.times.client;
  to.lists += more.lists;
  to.listBytes += more.listBytes;
  for (const [tool, bytes] of more.tools) to.tools.set(tool, Math.max(bytes, to.tools.get(tool) ?? 0));
  for (const [verdict, count] of more.lost) to.lost.set(verdict, count + (to.lost.get(verdict) ?? 0));
}

/** What JSON keeps of it. */
export function costsRow({ times, lists, listBytes, tools, lost }: Costs) {
  return [times.server, times.person, times.client, lists, listBytes, [...tools], [...lost]] as const;
}

export type CostsRow = ReturnType<typeof costsRow>;

export function readCosts([server, person, client, lists, listBytes, tools, lost]: CostsRow): Costs {
  const times = { server, person, client };
  return { times, lists, listBytes, tools: new Map(tools), lost: new Map(lost) };
}

/** Of several definitions together. */
export function definitionBytes(sizes: Iterable<number>): number {
  return [...sizes].reduce((sum, bytes) => sum + bytes, 0);
}

/** Counts what answers to `tools/list` define. */
export function weighLists(costs: Costs, store: Store, session: number, answers: readonly Place[]): void {
  const payloadOf = preparePayloads(store, session);
  for (const { seq, n } of answers) {
    const frame = payloadOf(seq);
    if (frame === undefined) continue;
    const bytes = jsonOf(frame);
    const message = messageSpan(bytes, n);
    const result = message?.type === 'object' ? membersOf(bytes, message).get('result') : undefined;
    const list = result?.type === 'object' ? membersOf(bytes, result).get('tools') : undefined;
    if (list?.type !== 'array') continue;
    costs.lists += 1;
    costs.listBytes += list.end - list.start;
    eachElement(bytes, list.start, (tool) => {
      const name = tool.type === 'object' ? membersOf(bytes, tool).get('name') : undefined;
      if (name?.type === 'string') costs.tools.set(stringText(bytes, name), tool.end - tool.start);
    });
  }
}

/**
 * Whose time it was, in microseconds, from the first request to the last answer. `person`: the server has asked for something
 * that a person is asked for too (a form, the approval of sampling, input for the next round of a call), and waits. `server`:
 * otherwise, while a call of the client is open. `client`: the rest, between calls.
 */
export type Times = { server: number; person: number; client: number };

function noTimes(): Times {
  return { server: 0, person: 0, client: 0 };
}

/** From when until when somebody was waited for. */
export type Wait = { who: 'server' | 'person'; from: number; until: number };

type Moment = { at: number; who: Wait['who']; by: 1 | -1 };

/** Takes waits in the order in which their calls began; a wait may begin later than that. */
export function createClock(): { add(waits: readonly Wait[]): void; end(): Times } {
  const times = noTimes();
  const open = { server: 0, person: 0 };
  /** What comes, the soonest last. */
  const coming: Moment[] = [];
  let now: number | null = null;

  function pass(at: number): void {
    if (now !== null && at > now) {
      const whose = open.person > 0 ? 'person' : open.server > 0 ? 'server' : 'client';
      times[whose] += at - now;
    }
    now = Math.max(now ?? at, at);
  }

  function passUntil(at: number): void {
    for (let next = coming.at(-1); next !== undefined && next.at <= at; next = coming.at(-1)) {
      coming.pop();
      pass(next.at);
      open[next.who] += next.by;
    }
  }

  function schedule(moment: Moment): void {
    let [low, high] = [0, coming.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((coming[middle] as Moment).at >= moment.at) low = middle + 1;
      else high = middle;
    }
    coming.splice(low, 0, moment);
  }

  return {
    add(waits) {
      for (const { who, from, until } of waits) {
        if (until < from) continue;
        schedule({ at: from, who, by: 1 });
        schedule({ at: until, who, by: -1 });
      }
      const first = waits[0];
      if (first !== undefined) passUntil(first.from - 1);
    },
    end() {
      passUntil(Number.POSITIVE_INFINITY);
      return times;
    },
  };
}
