import { expect, test } from 'vitest';
import type { Mock } from '../../../src/replay/mock.ts';
import { createPlayer } from '../../../src/replay/play/player.ts';
import { type Asker, LiveRequest } from '../../../src/replay/play/request.ts';
import { createTimetable } from '../../../src/replay/play/timetable.ts';
import type { Recording } from '../../../src/replay/recording/recording.ts';
import type { ScriptLine } from '../../../src/replay/recording/script.ts';
import { buildScript } from '../../../src/replay/recording/script.ts';
import { createStdioMock } from '../../../src/replay/serve/stdio.ts';
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

/** What a call with progress and an answer has sent after some turns of the event loop. */
async function sentInTurns(asked: Buffer, pauseMs?: number): Promise<string[]> {
  const progress =
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}';
  const texts = ['', TOKEN_ASKED.toString(), progress, ANSWER.toString()];
  const script = buildScript([
    line(1, 'client-to-server', 'request', null),
    { ...line(2, 'server-to-client', 'notification', 1), relation: 'progress' },
    line(3, 'server-to-client', 'result', 1),
  ]);
  const load = ({ seq }: { seq: number }) => Buffer.from(texts[seq] ?? '');
  const recording = { script, load } as Partial<Recording> as Recording;
  const events = { onRefusal() {}, onNotice() {} };
  const timetable = createTimetable('fast');
  const player = createPlayer({ recording, timetable, sendUnasked: () => {}, events });
  const sent: string[] = [];
  const send: Asker['send'] = (json) =>
    void sent.push(json.toString().includes('result') ? 'answer' : 'progress');
  const message = parseOne(asked);
  if (message.kind !== 'request') throw new Error('no request');
  const asker: Asker = pauseMs === undefined ? { send } : { send, pauseMs };
  player.play(new LiveRequest(message, asked, asker, events), 0, false);
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  timetable.end();
  return sent;
}

const TOKEN_ASKED = Buffer.from(
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":7}}}',
);

test('an answer waits after progress where its client may read both as one piece, and nowhere else', async () => {
  expect(await sentInTurns(TOKEN_ASKED, 60_000)).toEqual(['progress']);
  expect(await sentInTurns(TOKEN_ASKED)).toEqual(['progress', 'answer']);
  expect(await sentInTurns(ASKED, 60_000)).toEqual(['answer']);
});

test('over stdio a client may read several messages as one piece', () => {
  const pauses: (number | undefined)[] = [];
  const mock = {
    createClient: () => ({
      answerUnread: () => null,
      receive: (_message: unknown, _json: Buffer, asker?: Asker) => void pauses.push(asker?.pauseMs),
      begin() {},
    }),
  } as unknown as Mock;
  const { feed } = createStdioMock(mock, () => {});
  feed(Buffer.from(`${TOKEN_ASKED}\n[${TOKEN_ASKED}]\n`));
  expect(pauses).toEqual([expect.any(Number), expect.any(Number)]);
});
