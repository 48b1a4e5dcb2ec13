/** What one side may do only as the other has said before: arguments of prompts, cursors, levels of logs, updates of resources. */

import { BoundedMap } from '../../protocol/bounded.ts';
import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import {
  type CheckedMessage,
  type CheckedSession,
  type Inspector,
  MAX_REMEMBERED,
  methodOf,
  resultOf,
  shown,
} from './checked-message.ts';
import type { Report } from './rules.ts';
import { LOG_LEVELS } from './shapes.ts';

/** The arguments that a prompt requires. Specification, server/prompts. */
export function inspectPrompts(report: Report): Inspector {
  /** Required arguments by prompt, as they were listed last. */
  let required = new BoundedMap<string, readonly string[]>(MAX_REMEMBERED);

  function message(seen: CheckedMessage): void {
    const method = methodOf(seen);
    if (method === 'prompts/get' && seen.message.kind === 'request') fetched(seen, seen.params ?? {});
    if (method === 'notifications/prompts/list_changed') required = new BoundedMap(MAX_REMEMBERED);
    const prompts = seen.asked?.method === 'prompts/list' ? resultOf(seen)?.['prompts'] : undefined;
    if (Array.isArray(prompts)) for (const prompt of prompts) learn(prompt);
  }

  function learn(prompt: unknown): void {
    if (!isObject(prompt) || typeof prompt['name'] !== 'string') return;
    const list = Array.isArray(prompt['arguments']) ? prompt['arguments'] : [];
    const names = list
      .filter((one) => isObject(one) && one['required'] === true)
      .map(({ name }) => String(name));
    required.set(prompt['name'], names);
  }

  function fetched(seen: CheckedMessage, { name, arguments: given }: JsonObject): void {
    const wanted = typeof name === 'string' ? (required.get(name) ?? []) : [];
    const missing = wanted.filter((one) => !isObject(given) || !Object.hasOwn(given, one));
    if (missing.length > 0)
      report(
        'prompt-argument',
        seen.side,
        seen,
        `the arguments that ${shown(name)} requires`,
        `none called ${missing.map(shown).join(', ')}`,
      );
  }

  return { message };
}

/** Cursors are opaque: nobody makes one up, or keeps it for another session. Specification, server/utilities/pagination. */
export function inspectCursors(report: Report): Inspector {
  const given = new BoundedMap<string, true>(MAX_REMEMBERED);
  /** The lists that were begun here. Of another one the cursor may have come before the recording began. */
  const begun = new Set<string>();

  function message(seen: CheckedMessage): void {
    const method = methodOf(seen);
    if (method?.endsWith('/list') && seen.message.kind === 'request') asked(seen, method);
    const next = resultOf(seen)?.['nextCursor'];
    if (seen.asked !== null && typeof next === 'string') given.set(`${seen.asked.method} ${next}`, true);
  }

  function asked(seen: CheckedMessage, method: string): void {
    const cursor = seen.params?.['cursor'];
    if (cursor === undefined) begun.add(method);
    else if (begun.has(method) && !given.has(`${method} ${cursor}`))
      report('cursor-unknown', seen.side, seen, 'a `nextCursor` of this list', shown(cursor));
  }

  return { message };
}

/** The level of logs that a client has set. Specification 2025-11-25, server/utilities/logging. */
export function inspectLogLevel(report: Report, { basis }: CheckedSession): Inspector {
  let least: string | null = null;
  const levels = [...LOG_LEVELS];

  function message(seen: CheckedMessage): void {
    const set = seen.asked?.method === 'logging/setLevel' ? seen.asked.params?.['level'] : undefined;
    if (resultOf(seen) !== null && typeof set === 'string' && LOG_LEVELS.has(set)) least = set;
    if (methodOf(seen) !== 'notifications/message' || least === null) return;
    const level = seen.params?.['level'];
    const rank = levels.indexOf(level);
    if (rank >= 0 && rank < levels.indexOf(least))
      report('log-below', seen.side, seen, `logs of level ${least} and above`, shown(level));
  }

  // Several clients may stand in one session of stateless traffic, each with a level of its own.
  return basis === 'stateless' ? {} : { message };
}

/** Updates of resources go to who subscribed to them. Specification 2025-11-25, server/resources. */
export function inspectUpdates(report: Report, { basis, isForeign }: CheckedSession): Inspector {
  const subscribed = new Set<string>();
  /** What was subscribed to before the recording began is not known. */
  let isFromStart = false;

  function message(seen: CheckedMessage): void {
    const method = methodOf(seen);
    if (method === 'initialize') isFromStart = true;
    const uri = seen.params?.['uri'];
    // The server may tell of an update before it answers.
    if (method === 'resources/subscribe' && typeof uri === 'string' && subscribed.size < MAX_REMEMBERED)
      subscribed.add(uri);
    const left = seen.asked?.params?.['uri'];
    if (seen.asked?.method === 'resources/unsubscribe' && typeof left === 'string' && resultOf(seen) !== null)
      subscribed.delete(left);
    const isUpdate = method === 'notifications/resources/updated' && isFromStart;
    if (isUpdate && !seen.message.details.isModern && seen.message.details.subscription === null)
      updated(seen, uri);
  }

  function updated(seen: CheckedMessage, uri: unknown): void {
    if (typeof uri === 'string' && subscribed.size < MAX_REMEMBERED && !isUnder(uri, subscribed))
      report('update-unasked', seen.side, seen, '`resources/subscribe` before it', shown(uri));
  }

  return basis === 'stateless' || isForeign === true ? {} : { message };
}

/** Whether one of the URIs is this one, or one that it lies under: an update may be of a part of what was subscribed to. */
export function isUnder(uri: string, others: Iterable<unknown>): boolean {
  for (const other of others) if (typeof other === 'string' && uri.startsWith(other)) return true;
  return false;
}
