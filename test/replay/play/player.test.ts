import { expect, test } from 'vitest';
import { createPlayer } from '../../../src/replay/play/player.ts';
import { type Asker, LiveRequest } from '../../../src/replay/play/request.ts';
import { createTimetable } from '../../../src/replay/play/timetable.ts';
import type { Recording } from '../../../src/replay/recording/recording.ts';
import type { ScriptLine } from '../../../src/replay/recording/script.ts';
import { buildScript } from '../../../src/replay/recording/script.ts';
import { parseOne } from '../../support/messages.ts';

const ASKED = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
const ANSWER = Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}');

function line(seq: number, direction: ScriptLine['direction'], kind: string, to: number | null): ScriptLine {
  const answers = to === null ? null : { seq: to, n: 0 };
  return {
    place: { seq, n: 0 },
    id: 'number 1',
    direction,
    kind,
    method: kind === 'request' ? 'tools/list' : null,
    target: null,
    at: seq,
    httpExchange: null,
    relation: answers === null ? null : 'reply',
    to: answers,
    client: 1,
    errorCode: null,
  };
}

test('an answer whose transport has failed is not followed by another one', () => {
  const script = buildScript([
    line(1, 'client-to-server', 'request', null),
    line(2, 'server-to-client', 'result', 1),
  ]);
  const recording = { script, load: () => ANSWER } as Partial<Recording> as Recording;
  const events = { onRefusal() {}, onNotice() {} };
  const player = createPlayer({
    recording,
    timetable: createTimetable('fast'),
    sendUnasked: () => {},
    events,
  });
  const sent: string[] = [];
  const asker: Asker = {
    send(json) {
      sent.push(json.toString());
      throw new Error('the pipe is gone');
    },
  };
  const message = parseOne(ASKED);
  if (message.kind !== 'request') throw new Error('no request');
  player.play(new LiveRequest(message, ASKED, asker, events), 0, false);
  expect(sent).toEqual([ANSWER.toString()]);
});
