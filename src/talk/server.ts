/** A live server, as seen by code that plays a client's part: the same for every transport. */

import { sourceAt } from '../protocol/json/edit.ts';

/** One message of the client, and what a transport has to know of it. */
export type OutgoingMessage = {
  /** JSON without a line end. */
  json: Buffer;
  kind: 'request' | 'notification' | 'answer';
  /** Of a request the JSON text of its id. */
  id: string | null;
  /** The canonical method; null for an answer. */
  method: string | null;
  /** The tool, prompt, resource or task that it is about. */
  target: string | null;
  /** Arguments of a tool that are repeated as HTTP headers in 2026-07-28: header and text of each. */
  mirrored: readonly (readonly [name: string, text: string])[];
  /** The protocol version that the message itself states, as messages of 2026-07-28 do. */
  version: string | null;
};

export type LiveServer = {
  /** Settles once what is sent next cannot overtake it. */
  send(message: OutgoingMessage): Promise<void>;
  /** As sessions have it. Over HTTP it is known once the first request has been answered. */
  transport(): 'stdio' | 'http' | 'sse';
  /** Nobody waits for the answer to this request any more: closes what it would come on. Only where that cancels it. */
  abandon?(id: string): void;
  /** The handshake has settled this protocol version. */
  agreed(version: string): void;
  /** Ends the conversation, and a server that was started for it. Settles when it has gone. Called again, it hurries. */
  close(): Promise<void>;
};

/** `isUnasked`: on a stream that is for what belongs to no request. `status`: of the HTTP answer whose body it is. */
export type PayloadAbout = { isUnasked?: boolean; status?: number | undefined };

export type LiveEvents = {
  /** A line, a body or an event's data. */
  onPayload(payload: Buffer, about?: PayloadAbout): void;
  /** Nothing can answer this request any more; `id` as it was sent. */
  onFailed(id: string, why: string): void;
  /** Nothing will come any more. */
  onClosed(why: string): void;
};

export type Connect = (events: LiveEvents) => LiveServer;

/** Tells the transport which protocol version this answer to `initialize` has settled; nothing where it names none. */
export function settleVersion(server: LiveServer, answer: Buffer): void {
  const version: unknown = JSON.parse(sourceAt(answer, ['result', 'protocolVersion']) ?? 'null');
  if (typeof version === 'string') server.agreed(version);
}
