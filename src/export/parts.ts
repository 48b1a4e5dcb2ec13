/** What exports need of the messages themselves: params, results and errors, and members of them. */

import { findMember, sourceText, stringText } from '../protocol/json/read.ts';
import { jsonOf, messagesOf } from '../protocol/message/conversation.ts';
import { bodyText } from '../protocol/message/label.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Store } from '../store/file/open.ts';
import { prepareFramesAfter } from '../store/read/frames.ts';

/** The params, result or error of the first message of a frame that `isMeant` accepts, as it was written. */
export type BodyOf = (seq: number, isMeant: (message: Message, n: number) => boolean) => Buffer | null;

export function prepareBody(store: Store, session: number): BodyOf {
  const frameAfter = prepareFramesAfter(store, session, 1);
  return (seq, isMeant) => {
    const [frame] = frameAfter(seq - 1);
    if (frame === undefined || frame.seq !== seq) return null;
    const messages = messagesOf(frame);
    const n = messages.findIndex(isMeant);
    const message = messages[n];
    return message === undefined ? null : Buffer.from(bodyText(message, jsonOf(frame), n));
  };
}

/** A frame may be a batch: the request of this id, or its answer. */
export function isOf(id: string, ...kinds: readonly Message['kind'][]): (message: Message) => boolean {
  return (message) => kinds.includes(message.kind) && 'id' in message && message.id?.text === id;
}

/** A string within a body. */
export function textOf(body: Buffer | null, ...names: string[]): string | null {
  const source = memberOf(body, ...names);
  return source === null || source[0] !== 0x22
    ? null
    : stringText(source, { start: 0, end: source.length, type: 'string' });
}

/** The source of a value within a body. */
export function memberOf(body: Buffer | null, ...names: string[]): Buffer | null {
  let found = body;
  for (const name of names) {
    if (found === null || found[0] !== 0x7b) return null;
    const span = findMember(found, 0, name);
    found = span === undefined ? null : Buffer.from(sourceText(found, span));
  }
  return found;
}

/** What exports of HTTP have in common. */

/** Where a request went: the upstream's own origin, and the path as it was asked for. */
export function upstreamUrl(target: string, path: string): URL {
  const { origin } = new URL(target);
  // `OPTIONS *` asks for no path.
  return new URL(path.startsWith('/') ? origin + path : origin);
}
