/**
 * `/api/changes`: what changes in the store, as an event stream that can be resumed. Events are numbered, and the last ones kept:
 * who comes back with the number of the last one that it saw gets the others first. HTML Standard, 9.2, "Server-sent events".
 */

import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Change } from './api.ts';

export type ChangesHub = {
  /** Answers with the stream, until its client leaves. `lastEventId`: the last event that it has seen. */
  join(response: ServerResponse, lastEventId: string | undefined): void;
  publish(changes: readonly Change[]): void;
  /** The id of the last event. What is read of the store from now on has all that was told up to it. */
  lastEventId(): string;
  /** What happened meanwhile is not known: every stream ends, and whoever comes back is told so. */
  restart(): void;
  close(): void;
};

/** Minutes of a busy store. */
const MOST_KEPT = 5000;

/** A comment now and then, so that a connection that is gone is found out. */
const HEARTBEAT_MS = 15_000;

/** Whoever takes nothing any more is cut off; it can resume. */
const MOST_WAITING_BYTES = 1024 * 1024;

/** `watch` is told when somebody listens, and when nobody does any more. */
export function createChangesHub(watch: (isOn: boolean) => void): ChangesHub {
  const listeners = new Set<ServerResponse>();
  let kept: { number: number; text: string }[] = [];
  let run = newRun();
  let number = 0;
  const heartbeat = setInterval(() => {
    for (const listener of listeners) send(listener, ': still here\n\n');
  }, HEARTBEAT_MS).unref();

  function lastEventId(): string {
    return `${run}-${number}`;
  }

  function textOf(change: Change): string {
    return `id: ${lastEventId()}\nevent: ${change.kind}\ndata: ${JSON.stringify(change)}\n\n`;
  }

  function send(listener: ServerResponse, text: string): void {
    listener.write(text);
    if (listener.writableLength > MOST_WAITING_BYTES) listener.destroy();
  }

  /** What came after an event; null where that is not known any more. */
  function missedSince(lastEventId: string): string[] | null {
    const [, ofRun, digits] = /^(\w+)-(\d{1,15})$/.exec(lastEventId) ?? [];
    const seen = Number(digits);
    const oldest = kept[0]?.number ?? number + 1;
    if (ofRun !== run || seen > number || seen < oldest - 1) return null;
    return kept.filter((event) => event.number > seen).map(({ text }) => text);
  }

  function endAll(): void {
    for (const listener of listeners) listener.end();
  }

  return {
    join(response, lastEventId) {
      const missed = lastEventId === undefined ? null : missedSince(lastEventId);
      response.write(textOf({ kind: 'begin', resumed: missed !== null }));
      for (const text of missed ?? []) response.write(text);
      listeners.add(response);
      watch(true);
      response.on('close', () => {
        listeners.delete(response);
        if (listeners.size === 0) watch(false);
      });
    },
    publish(changes) {
      for (const change of changes) {
        number += 1;
        const text = textOf(change);
        kept.push({ number, text });
        for (const listener of listeners) send(listener, text);
      }
      if (kept.length > MOST_KEPT) kept = kept.slice(-MOST_KEPT);
    },
    lastEventId,
    restart() {
      run = newRun();
      number = 0;
      kept = [];
      endAll();
    },
    close() {
      clearInterval(heartbeat);
      endAll();
    },
  };
}

/** Numbers of another run of the viewer mean nothing here. */
function newRun(): string {
  return randomBytes(6).toString('hex');
}
