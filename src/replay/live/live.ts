/**
 * The live server behind a recording. Each client of the mock has a connection of its own, which its first live request
 * opens. What comes back is reported as episodes; the caller stores them. A mock without a `Live` cannot reach any server.
 */

import type { Connect } from '../../talk/server.ts';
import type { Send } from '../play/request.ts';
import type { Recording } from '../recording/recording.ts';
import { createLiveClient, type LiveClient } from './client.ts';
import type { Episode } from './episode.ts';

type LiveOptions = {
  connect: Connect;
  /** The recording that is played; null where every request goes live. */
  recording: Recording | null;
  timeoutMs: number;
  /** Microseconds since the Unix epoch. */
  now: () => number;
  /** Called with every call that is over, answered or not. Calls of one client come in the order in which it asked. */
  onEpisode: (episode: Episode) => void;
};

export type Live = {
  /** True where nothing is played: every request goes live. */
  takesAll: boolean;
  /** `sendUnasked` takes messages that belong to no call; `client` tells which recorded client it is. */
  createClient(sendUnasked: Send, client: () => number): LiveClient;
  idle(): Promise<void>;
  /** Whether any server has sent anything. */
  hasHeard(): boolean;
  /** Ends all servers. Settles when they have gone and every episode has been reported. */
  close(): Promise<void>;
};

/** How many servers may run for clients that ask nothing at the moment. */
const MAX_RESTING = 64;

/** Higher ids may have lost digits in somebody's JSON parser. */
const MAX_ID = 2 ** 52;

export function createLive(options: LiveOptions): Live {
  const { recording } = options;
  const clients = new Set<LiveClient>();
  let hasHeard = false;
  let lastId = recording === null ? 0 : highestId(recording);
  const agreedVersion = recording?.session.era === 'modern' ? null : recording?.session.protocolVersion;

  function nextId(): string {
    lastId += 1;
    return String(lastId);
  }

  /** HTTP clients leave without notice, so their servers would run on. */
  function endOldest(): void {
    const resting = [...clients].filter((client) => client.isResting());
    if (resting.length >= MAX_RESTING) resting[0]?.rest();
  }

  return {
    takesAll: recording === null,
    createClient(sendUnasked, client) {
      const own = { ...options, agreedVersion: agreedVersion ?? null, nextId, sendUnasked, client };
      const unknown = createLiveClient(own);
      const known: LiveClient = {
        ...unknown,
        ask(...what) {
          endOldest();
          // The client that asked last stands at the end.
          clients.delete(known);
          clients.add(known);
          unknown.ask(...what);
        },
        async close() {
          await unknown.close();
          clients.delete(known);
          hasHeard ||= unknown.hasHeard();
        },
      };
      clients.add(known);
      return known;
    },
    async idle() {
      await Promise.all([...clients].map((client) => client.idle()));
    },
    hasHeard: () => hasHeard || [...clients].some((client) => client.hasHeard()),
    async close() {
      await Promise.all([...clients].map((client) => client.close()));
    },
  };
}

/** New ids are higher than every id of the recorded client, so no call can be taken for another. */
function highestId({ lines }: Recording): number {
  let highest = 0;
  for (const { direction, id } of lines()) {
    const [, digits] = direction === 'client-to-server' ? (/^number (\d{1,16})$/.exec(id ?? '') ?? []) : [];
    if (digits !== undefined && Number(digits) < MAX_ID) highest = Math.max(highest, Number(digits));
  }
  return highest;
}
