/** Frames of the events extension (SEP-3415), which has no rules here yet: they are messages like any other, and no fault. */
import { afterAll, expect, test } from 'vitest';
import {
  ask,
  client,
  createSchemas,
  findingsOf,
  give,
  LISTEN_ID,
  modern,
  note,
  type Step,
  server,
} from './session.ts';

const schemas = createSchemas();
afterAll(() => schemas.close());

const of = (id: number) => ({ _meta: { [LISTEN_ID]: id } });
const event = { eventId: 'e1', name: 'mail', timestamp: '2026-11-20T10:00:00Z', data: {}, cursor: 'c1' };
const params = (more: object) => ({ name: 'mail', arguments: {}, cursor: null, ...more, _meta: modern() });
const complete = (more: object) => ({ resultType: 'complete', ...more });

function rulesOf(...steps: Step[]): string[] {
  return findingsOf({ steps }, schemas).map(({ rule }) => rule);
}

test('a stream of events is a long request with notifications, and ends by a result or because it is cancelled', () => {
  const stream = [
    client(ask(1, 'events/stream', params({}))),
    server(note('notifications/events/active', { cursor: 'c0', truncated: false, ...of(1) })),
    server(note('notifications/events/event', { ...event, ...of(1) })),
    server(note('notifications/events/heartbeat', { cursor: 'c1', ...of(1) })),
  ];
  expect(rulesOf(...stream, server(give(1, complete(of(1)))))).toEqual([]);
  expect(rulesOf(...stream, client(note('notifications/cancelled', { requestId: 1 })))).toEqual([]);
});

test('events that are listed, polled and subscribed to are requests like any other', () => {
  const polled = complete({
    events: [event],
    cursor: 'c1',
    truncated: false,
    hasMore: false,
    nextPollMs: 1000,
  });
  const url = 'https://hooks.example.com/1';
  expect(
    rulesOf(
      client(ask(1, 'events/list', { _meta: modern() })),
      server(give(1, complete({ events: [] }))),
      client(ask(2, 'events/poll', params({}))),
      server(give(2, polled)),
      client(ask(3, 'events/subscribe', params({ delivery: { mode: 'webhook', url } }))),
      server(give(3, complete({ id: 's1', refreshBefore: null, cursor: null, truncated: false }))),
    ),
  ).toEqual([]);
});
