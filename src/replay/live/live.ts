/**
 * The live server behind a recording, as record modes want it: each client of the mock gets a connection of its own,
 * opened with the first request that goes there. What comes back is told as episodes; to add them to a recording is the
 * caller's. Without it a mock has no way to any server.
 */

import type { Connect } from '../../talk/server.ts';
import type { Send } from '../play/request.ts';
import type { Recording } from '../recording/recording.ts';
import { createLiveClient, type LiveClient } from './client.ts';
import type { Episode } from './episode.ts';

type LiveOptions = {
  connect: Connect;
  /** What is played besides; null where everything is asked live. */
  recording: Recording | null;
  timeoutMs: number;
  /** Microseconds since the Unix epoch. */
  now: () => number;
  /** Told of every call when it is over, answered or not, in the order in which each client asked. */
  onEpisode: (episode: Episode) => void;
};

export type Live = {
  /** Nothing is played: every request goes live. */
  takesAll: boolean;
  /** `sendUnasked` gets what belongs to no call. */
  createClient(sendUnasked: Send): LiveClient;
  idle(): Promise<void>;
  /** Whether any of the servers has said anything. */
  hasHeard(): boolean;
  /** Ends all servers. Settles when they have gone, and every episode has been told. */
  close(): Promise<void>;
};

/** So many servers may run for clients that ask nothing at the moment. */
const MAX_RESTING = 64;

/** Ids above it may have lost digits on their way through somebody's JSON. */
const MAX_ID = 2 ** 52;

export function createLive(options: LiveOptions): Live {
  const { recording, ...own } = options;
  const clients = new Set<LiveClient>();
  let hasHeard = false;
  let lastId = recording === null ? 0 : highestId(recording);
  const agreedVersion = recording?.session.era === 'modern' ? null : recording?.session.protocolVersion;

  function nextId(): string {
    lastId += 1;
    return String(lastId);
  }

  /** Clients of HTTP leave without a word. */
  function endOldest(): void {
    const resting = [...clients].filter((client) => client.isResting());
    if (resting.length >= MAX_RESTING) resting[0]?.rest();
  }

  return {
    takesAll: recording === null,
    createClient(sendUnasked) {
      const client = createLiveClient({
        ...own,
        agreedVersion: agreedVersion ?? null,
        nextId,
        sendUnasked,
      });
      const known: LiveClient = {
        ...client,
        ask(...what) {
          endOldest();
          // The one that asked last stands at the end.
          clients.delete(known);
          clients.add(known);
          client.ask(...what);
        },
        async close() {
          await client.close();
          clients.delete(known);
          hasHeard ||= client.hasHeard();
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

/** New ids are higher than all that the recorded client gave, so that none of its calls can be taken for another. */
function highestId({ lines }: Recording): number {
  let highest = 0;
  for (const { direction, id } of lines()) {
    const [, digits] = direction === 'client-to-server' ? (/^number (\d{1,16})$/.exec(id ?? '') ?? []) : [];
    if (digits !== undefined && Number(digits) < MAX_ID) highest = Math.max(highest, Number(digits));
  }
  return highest;
}
