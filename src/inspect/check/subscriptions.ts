/** Subscriptions and logs of the 2026-07-28 era. Specification, basic/patterns/subscriptions, server/utilities/logging. */
import { createRecent } from './recent.ts';
import type { Report } from './rules.ts';
import { type Inspector, isObject, type Json, methodOf, type Seen, shown } from './seen.ts';

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

type Subscription = { filter: Json; isAcknowledged: boolean };

export function inspectSubscriptions(report: Report): Inspector {
  const byPlace = createRecent<Subscription>();
  let wantsLogs = false;

  function message(seen: Seen): void {
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

  function notification(seen: Seen, method: string, meta: unknown): void {
    if (method === 'notifications/message' && !wantsLogs && seen.revision !== null)
      report('log-unasked', 'server', seen, 'a request with a `logLevel` before it', 'none');
    const id = isObject(meta) ? meta[SUBSCRIPTION_ID] : undefined;
    if (id === undefined) return;
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

  function wanted(seen: Seen, method: string, filter: Json): void {
    const name = FILTER_OF.get(method);
    if (name !== undefined && filter[name] !== true)
      report('subscription-type', 'server', seen, `\`${name}\` to be asked for`, method);
    const uris = filter['resourceSubscriptions'];
    const uri = seen.params?.['uri'];
    if (method === 'notifications/resources/updated' && !(Array.isArray(uris) && uris.length > 0))
      report('subscription-type', 'server', seen, '`resourceSubscriptions` to be asked for', shown(uri));
  }

  return { message };
}
