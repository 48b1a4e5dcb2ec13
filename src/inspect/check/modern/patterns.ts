/** Requests that take several rounds. Specification 2026-07-28, basic/patterns/mrtr. */

import { BoundedMap } from '../../../protocol/bounded.ts';
import { isObject, type JsonObject } from '../../../protocol/json/read.ts';
import {
  type CheckedMessage,
  type Inspector,
  MAX_REMEMBERED,
  methodOf,
  resultOf,
  shown,
} from '../checked-message.ts';
import { isUnder } from '../given.ts';
import type { Report } from '../rules.ts';

const METHODS = new Set(['tools/call', 'prompts/get', 'resources/read']);

const INPUTS = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list']);

export function inspectRounds(report: Report): Inspector {
  /** By place of the request: its id. */
  const ids = new BoundedMap<string, string>(MAX_REMEMBERED);

  function message(seen: CheckedMessage): void {
    if (seen.message.kind === 'request') request(seen, seen.message.id.key, seen.message.id.text);
    const result = resultOf(seen);
    if (result?.['resultType'] === 'input_required') required(seen, result);
  }

  function request(seen: CheckedMessage, key: string, text: string): void {
    ids.set(`${seen.place.seq}.${seen.place.n}`, key);
    const { relation, to } = seen.correlation;
    const isRetry =
      seen.params?.['inputResponses'] !== undefined || seen.params?.['requestState'] !== undefined;
    if (relation === 'round' && to !== null) {
      if (ids.get(`${to.seq}.${to.n}`) === key)
        report('round-id', seen.side, seen, 'an id of its own', `id ${text} again`);
    } else if (isRetry && METHODS.has(seen.message.kind === 'request' ? seen.message.canonical : ''))
      report(
        'round-unknown',
        seen.side,
        seen,
        'a request that required this input',
        'none with these params and this `requestState`',
      );
  }

  function required(seen: CheckedMessage, result: JsonObject): void {
    const { inputRequests, requestState } = result;
    if (seen.asked !== null && !METHODS.has(seen.asked.method))
      report('round-method', seen.side, seen, `an answer to ${seen.asked.method}`, '`input_required`');
    if (inputRequests === undefined && requestState === undefined)
      report('round-empty', seen.side, seen, '`inputRequests` or `requestState`', 'neither');
    if (!isObject(inputRequests)) return;
    for (const [key, input] of Object.entries(inputRequests)) {
      const method = isObject(input) ? input['method'] : undefined;
      if (!INPUTS.has(String(method)))
        report('round-input', seen.side, seen, [...INPUTS].join(', '), `${shown(method)} as ${shown(key)}`);
    }
  }

  return { message };
}

/** Subscriptions and logs of the 2026-07-28 era. Specification, basic/patterns/subscriptions, server/utilities/logging. */

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** What must be asked for to get a notification. */
const FILTER_OF: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'notifications/tools/list_changed': 'toolsListChanged',
    'notifications/prompts/list_changed': 'promptsListChanged',
    'notifications/resources/list_changed': 'resourcesListChanged',
  }),
);

type Subscription = { filter: JsonObject; isAcknowledged: boolean };

/** They belong to an `events/stream` (SEP-3415), which has no rules here yet. */
const OF_EVENTS = /^notifications\/events\/(?!list_changed$)/;

export function inspectSubscriptions(report: Report): Inspector {
  const byPlace = new BoundedMap<string, Subscription>(MAX_REMEMBERED);
  let wantsLogs = false;

  function message(seen: CheckedMessage): void {
    const method = methodOf(seen);
    if (method === null) return;
    const meta = seen.params?.['_meta'];
    if (isObject(meta) && meta['io.modelcontextprotocol/logLevel'] !== undefined) wantsLogs = true;
    if (method === 'subscriptions/listen') {
      const filter = seen.params?.['notifications'];
      byPlace.set(`${seen.place.seq}.${seen.place.n}`, {
        filter: isObject(filter) ? filter : {},
        isAcknowledged: false,
      });
    } else if (seen.message.kind === 'notification' && seen.side === 'server')
      notification(seen, method, meta);
  }

  function notification(seen: CheckedMessage, method: string, meta: unknown): void {
    if (method === 'notifications/message' && !wantsLogs && seen.revision !== null)
      report('log-unasked', 'server', seen, 'a request with a `logLevel` before it', 'none');
    const id = isObject(meta) ? meta[SUBSCRIPTION_ID] : undefined;
    if (id === undefined || OF_EVENTS.test(method)) return;
    const { relation, to } = seen.correlation;
    const own = relation === 'subscription' && to !== null ? byPlace.get(`${to.seq}.${to.n}`) : undefined;
    if (own === undefined) {
      report('subscription-unknown', 'server', seen, 'the id of an open `subscriptions/listen`', shown(id));
      return;
    }
    if (method === ACKNOWLEDGED) own.isAcknowledged = true;
    else if (!own.isAcknowledged) {
      own.isAcknowledged = true;
      report('subscription-first', 'server', seen, ACKNOWLEDGED, method);
    }
    wanted(seen, method, own.filter);
  }

  function wanted(seen: CheckedMessage, method: string, filter: JsonObject): void {
    const name = FILTER_OF.get(method);
    if (name !== undefined && filter[name] !== true)
      report('subscription-type', 'server', seen, `\`${name}\` to be asked for`, method);
    const uris = filter['resourceSubscriptions'];
    const uri = seen.params?.['uri'];
    const isWanted = typeof uri === 'string' && Array.isArray(uris) && isUnder(uri, uris);
    if (method === 'notifications/resources/updated' && !isWanted)
      report('subscription-type', 'server', seen, '`resourceSubscriptions` that ask for it', shown(uri));
  }

  return { message };
}

/** Tasks. Specification 2025-11-25, basic/utilities/tasks; later the extension io.modelcontextprotocol/tasks. */

const FINAL = new Set(['completed', 'failed', 'cancelled']);

const STATUSES = new Set([...FINAL, 'working', 'input_required']);

/** What asks about one task. */
const ABOUT = new Set(['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/update']);

export function inspectTasks(report: Report): Inspector {
  /** By task id: the last status. */
  const statuses = new BoundedMap<string, string>(MAX_REMEMBERED);

  function message(seen: CheckedMessage): void {
    const method = methodOf(seen);
    const taskId = seen.params?.['taskId'];
    if (method !== null && ABOUT.has(method) && typeof taskId === 'string' && !statuses.has(taskId))
      report('task-unknown', seen.side, seen, 'a task that an answer began', shown(taskId));
    if (method === 'notifications/tasks' || method === 'notifications/tasks/status') task(seen, seen.params);
    const result = resultOf(seen);
    if (result === null) return;
    if (isObject(result['task'])) task(seen, result['task']);
    else if (result['resultType'] === 'task' || seen.asked?.method === 'tasks/get') task(seen, result);
    if (seen.asked?.method === 'tasks/list' && Array.isArray(result['tasks']))
      for (const one of result['tasks']) task(seen, one);
  }

  function task(seen: CheckedMessage, value: unknown): void {
    if (!isObject(value)) return;
    const { taskId, status } = value;
    if (typeof taskId !== 'string' || typeof status !== 'string') return;
    if (!STATUSES.has(status))
      report('task-status', seen.side, seen, [...STATUSES].join(', '), shown(status));
    const last = statuses.get(taskId);
    if (last !== undefined && FINAL.has(last) && status !== last)
      report('task-after-end', seen.side, seen, `${last} for good`, `${status}`);
    statuses.set(taskId, status);
  }

  return { message };
}
