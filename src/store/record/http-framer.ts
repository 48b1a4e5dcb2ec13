/** From the events of the HTTP proxy to frames and HTTP exchanges, of as many sessions as the traffic turns out to have. */

import { BoundedMap } from '../../protocol/bounded.ts';
import { createHttpSessions, MAX_SESSIONS, type SessionChange } from '../../protocol/http/sessions.ts';
import { NumberMap } from '../../protocol/number-map.ts';
import type { HttpEndEvent } from '../../protocol/wire/http-event.ts';
import type { PendingSession } from '../write/pending.ts';
import type { Framer } from './framer.ts';
import { type HttpRun, OpenHttpExchange } from './http-exchange.ts';
import { createHttpItemReader, type HttpLoss } from './http-items.ts';

export type HttpFramerOptions = Pick<
  HttpRun,
  'maxFrameBytes' | 'firstSign' | 'keepsUndecoded' | 'mcpPath' | 'onConnection'
> & {
  /** The session of this number; where it is new, it began `at`. */
  sessionOf: (number: number, at?: number) => PendingSession;
  /** It is known by what a session is told from others; null: nothing on the wire tells it, or will. May come more than once. */
  onTold: (session: PendingSession, key: string | null) => void;
  /** Nothing more comes of the session of this number. */
  onForgotten: (number: number) => void;
  /** Called once, when sessions that are idle had to be ended because too many were open. */
  onCrowd: (mostOpen: number) => void;
};

export function createHttpFramer({
  sessionOf,
  onTold,
  onForgotten,
  onCrowd,
  ...options
}: HttpFramerOptions): Framer {
  const sessions = createHttpSessions({ onChange });
  const readItem = createHttpItemReader();
  const seen = createSeenEvents();
  const run: HttpRun = { ...options, sessions, sessionOf, hasSeen: seen.hasSeen };
  const open = new NumberMap<OpenHttpExchange>();
  /** Those of them to which something came since nothing of them was left to store. */
  const stirred = new NumberMap<OpenHttpExchange>();
  const ending = new Set<Promise<void>>();

  let isCrowded = false;

  function onChange(change: SessionChange): void {
    if (change.type === 'forgotten') {
      onForgotten(change.session);
      return;
    }
    const session = sessionOf(change.session, change.type === 'opened' ? change.at : undefined);
    if (change.type === 'basis') {
      session.change({ basis: change.basis, transport: change.transport });
      onTold(session, change.key);
    } else if (change.type === 'unnamed') onTold(session, null);
    else if (change.type === 'reopened') session.change({ end: null });
    else if (change.type === 'ended') {
      const { at, reason } = change;
      onTold(session, null);
      session.change({ end: { at, reason, ...NO_PROCESS } });
      if (reason === 'crowded-out' && !isCrowded) {
        isCrowded = true;
        onCrowd(MAX_SESSIONS);
      }
      // After idleness alone may a session be resumed.
      if (reason !== 'idle' && reason !== 'crowded-out') seen.forget(session);
    }
  }

  /** Of exchanges that were lost from their beginning on, nothing tells the session. */
  function loseWhole({ exchange, at, pieces, bytes }: HttpLoss): void {
    sessionOf(sessions.assign({ exchange, at, ...UNKNOWN_REQUEST }, null)).lose(pieces, bytes);
    sessions.ended(exchange, at, 'proxy');
  }

  /** What is left in a decoder comes out later. */
  function end(exchange: OpenHttpExchange, event: HttpEndEvent): void {
    const close = () => {
      open.delete(event.exchange);
      stirred.delete(event.exchange);
      sessions.ended(event.exchange, event.at, event.closedBy);
    };
    const left = exchange.end(event);
    if (left === undefined) {
      close();
      return;
    }
    const ended = left.then(close).finally(() => ending.delete(ended));
    ending.add(ended);
  }

  return {
    feed(bytes) {
      const item = readItem(bytes);
      if (item.type === 'request') {
        const begun = new OpenHttpExchange(item, run);
        open.set(item.exchange, begun);
        stirred.set(item.exchange, begun);
        return;
      }
      const exchange = open.get(item.exchange);
      if (exchange === undefined) {
        if (item.type === 'lost') loseWhole(item);
        return;
      }
      stirred.set(item.exchange, exchange);
      if (item.type === 'lost') exchange.lose(item);
      else if (item.type === 'end') end(exchange, item);
      else if (item.type !== 'response-body' || !exchange.session?.isLeftOut) exchange.feed(item);
    },
    /** Forgets an exchange that it cannot go on with. */
    abandon({ owner, bytes: { length: bytes }, at }) {
      const session = open.get(owner)?.session;
      stirred.delete(owner);
      open.delete(owner);
      if (session) session.lose(1, bytes);
      else loseWhole({ type: 'lost', exchange: owner, at, side: 'exchange', pieces: 1, bytes });
      sessions.ended(owner, at, 'proxy');
    },
    gap() {},
    unfinished() {
      const all = stirred.values();
      for (const exchange of all) exchange.assign(null);
      return all.flatMap((exchange) => exchange.unfinished());
    },
    hasUnfinished() {
      for (const exchange of stirred.values()) {
        if (exchange.session === null || exchange.unfinished().length > 0) return true;
        if (!exchange.isDecoding) stirred.delete(exchange.id);
      }
      return false;
    },
    tick: sessions.tick,
    async finish() {
      while (ending.size > 0) await Promise.all(ending);
    },
  };
}

const NO_PROCESS = { exitCode: null, signal: null, clientClosedAt: null, serverClosedAt: null };

const UNKNOWN_REQUEST = {
  method: '',
  target: '',
  connection: '',
  sessionId: null,
  credentials: null,
  agent: null,
  protocolVersion: null,
  acceptsEvents: false,
};

/** A client that resumes its stream gets events again: they are recognized by their ids and data. */

type SeenEvents = {
  /** Whether an event with this id and these data came before in the session; remembers it. */
  hasSeen(session: PendingSession, eventId: string, data: Buffer): boolean;
  forget(session: PendingSession): void;
};

/** Of each session. */
const MAX_EVENTS = 65_536;

function createSeenEvents(): SeenEvents {
  const bySession = new WeakMap<PendingSession, BoundedMap<string, number>>();
  return {
    hasSeen(session, eventId, data) {
      const events = bySession.get(session) ?? new BoundedMap<string, number>(MAX_EVENTS);
      bySession.set(session, events);
      const before = events.get(eventId);
      const now = fingerprint(data);
      events.set(eventId, now);
      return before === now;
    },
    forget: (session) => void bySession.delete(session),
  };
}

/** FNV-1a. */
function fingerprint(data: Buffer): number {
  let hash = 0x811c9dc5;
  for (const byte of data) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}
