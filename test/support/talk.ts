/** A correlator as a transcript: each line is what the client or the server said, and gives what it was linked to. */
import { type Correlation, createCorrelator, type Place } from '../../src/protocol/message/correlate.ts';
import type { Direction } from '../../src/protocol/wire/frame.ts';
import { parseOne } from './messages.ts';

type Said = Correlation & { place: Place };

export type Talk = {
  /** A text is a message as it stands on the wire. Each message passes a millisecond after the one before. */
  client(message: object | string): Said;
  server(message: object | string): Said;
  unanswered(): number;
};

export function createTalk(maxOpen?: number): Talk {
  const correlator = createCorrelator(maxOpen);
  let seq = 0;

  function say(sender: Direction, message: object | string): Said {
    seq += 1;
    const place = { seq, n: 0 };
    const parsed = parseOne(typeof message === 'string' ? message : { jsonrpc: '2.0', ...message });
    return { place, ...correlator.add(parsed, sender, place, seq * 1000) };
  }

  return {
    client: (message) => say('client-to-server', message),
    server: (message) => say('server-to-client', message),
    unanswered: correlator.unanswered,
  };
}
