/** A session as a Mermaid sequence diagram: an arrow a message. Solid: asks. Dotted: answers, with a cross for an error. */

import { jsonOf, messagesOf } from '../protocol/message/conversation.ts';
import { messageLabel } from '../protocol/message/label.ts';
import { escapeText } from '../protocol/text.ts';
import { directionOf } from '../protocol/wire/frame.ts';
import type { Store } from '../store/file/open.ts';
import { eachFrame, type MessageRow } from '../store/read/frames.ts';
import type { SessionRow } from '../store/read/sessions.ts';
import type { WriteOptions } from './format.ts';

const MAX_CHARS = 80;

export function* writeMermaid(store: Store, session: SessionRow, options: WriteOptions): Generator<string> {
  yield 'sequenceDiagram\n';
  yield `    participant Client as ${nameOf('Client', session.clientName)}\n`;
  yield `    participant Server as ${nameOf('Server', session.serverName)}\n`;
  let count = 0;
  for (const frame of eachFrame(store, session, options.only)) {
    const isAsking = directionOf(frame.channel) === 'client-to-server';
    const [from, to] = isAsking ? ['Client', 'Server'] : ['Server', 'Client'];
    const messages = messagesOf(frame);
    const json = jsonOf(frame);
    for (const row of frame.messages) {
      const message = messages[row.n];
      if (message === undefined) continue;
      const label = `${messageLabel(message, json, row.n, row.askedMethod)}${latencyOf(row)}`;
      yield `    ${from}${arrowOf(row)}${to}: ${diagramText(label)}\n`;
    }
    count += 1;
    options.onFrame(count);
  }
}

function nameOf(role: string, name: string | null): string {
  return name === null ? role : diagramText(`${role} (${name})`);
}

function arrowOf({ kind, outcome }: MessageRow): string {
  switch (kind) {
    case 'request':
      return '->>';
    case 'notification':
      return '-)';
    case 'invalid':
      return '-x';
    default:
      return outcome === 'error' || outcome === 'tool-error' ? '--x' : '-->>';
  }
}

function latencyOf({ relation, latency }: MessageRow): string {
  return relation !== 'reply' || latency === null ? '' : ` (${Math.round(latency / 1000)} ms)`;
}

/** Everything that could be read as syntax or markup stands as its character code. */
function diagramText(text: string): string {
  const line = escapeText(text);
  const short = line.length > MAX_CHARS ? `${[...line].slice(0, MAX_CHARS).join('')}…` : line;
  return short.replace(/[^\p{L}\p{N}\p{M} .,:/_()='…-]/gu, (character) => `#${character.codePointAt(0)};`);
}
