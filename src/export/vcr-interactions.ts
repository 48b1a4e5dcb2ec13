/** The requests of an agent-vcr recording, with their answers and notifications, as one conversation. */
import { withoutMembers, withoutSpace } from '../protocol/json-edit.ts';
import { messageOf, objectsIn, timeOf } from './foreign-members.ts';
import type { Said } from './foreign-sessions.ts';
import { BadLine, type Members, readObject, required } from './members.ts';
import { timeAfter } from './relative-time.ts';

export type Interactions = {
  addHandshake(session: Members): void;
  add(interaction: Members): void;
  /** The handshake, and then everything in order of time. */
  inOrder(): Said[];
};

/** `startedAt` is the time of what has none. */
export function createInteractions(startedAt: number): Interactions {
  const handshake: Said[] = [];
  const all: Said[] = [];

  return {
    addHandshake(session) {
      if (isThere(session, 'initialize_request'))
        handshake.push(requestOf(session, 'initialize_request', startedAt));
      if (isThere(session, 'initialize_response'))
        handshake.push(answerOf(session, 'initialize_response', startedAt));
    },
    /**
     * The client has asked: what servers ask is not recorded, and `direction` tells the two recorders of the format apart
     * rather than who it was. `timestamp` is when the answer was there, `latency_ms` since when it was asked for.
     */
    add(interaction) {
      const at = required(interaction, 'timestamp', timeOf(interaction, 'timestamp'));
      all.push(requestOf(interaction, 'request', timeAfter(at, -latencyOf(interaction))));
      // Those that came since the answer before; their own times are not kept.
      for (const { start, end } of objectsIn(interaction, 'notifications')) {
        const payload = messageFrom(interaction.bytes.subarray(start, end), ['params']);
        all.push({ channel: 'stdout', at, payload });
      }
      if (isThere(interaction, 'response')) all.push(answerOf(interaction, 'response', at));
    },
    inOrder: () => [...handshake, ...all.toSorted((a, b) => a.at - b.at)],
  };
}

function isThere(members: Members, name: string): boolean {
  return members.has(name) && members.span(name)?.type !== 'null';
}

function requestOf(members: Members, name: string, at: number): Said {
  return { channel: 'stdin', at, payload: messageFrom(messageOf(members, name), ['params']) };
}

function answerOf(members: Members, name: string, at: number): Said {
  const json = messageOf(members, name);
  // One of them is what was answered, be it null.
  const isError = members.object(name)?.span('error')?.type === 'object';
  return { channel: 'stdout', at, payload: messageFrom(json, [isError ? 'result' : 'error']) };
}

/**
 * The recorder in Python writes members that were not there as null, which no peer would take for the same. The document
 * is indented, and a line cannot be.
 */
function messageFrom(json: Buffer, nullable: readonly string[]): Buffer {
  const members = readObject(json, 0, 'the message');
  const nulls = nullable.filter((name) => members.span(name)?.type === 'null');
  return withoutSpace(nulls.length === 0 ? json : withoutMembers(json, nulls));
}

function latencyOf(interaction: Members): number {
  const ms = interaction.number('latency_ms') ?? 0;
  if (ms >= 0) return ms;
  throw new BadLine(`expected a number from 0 on as \`latency_ms\` in ${interaction.where}, got ${ms}`);
}
