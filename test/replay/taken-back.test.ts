/** Calls that the recorded client took back, and what servers still said of them. */

import { expect, test } from 'vitest';
import { startHttpMock } from '../support/http-mock.ts';
import { recordUrlInProcess } from '../support/http-record.ts';
import { startInProcess } from '../support/in-process.ts';
import { modernMeta } from '../support/messages.ts';
import { inFull } from '../support/scale.ts';
import { send } from '../support/send.ts';
import { startDualEraServer } from '../support/servers.ts';
import { importSaid, replay } from '../support/stdio-replay.ts';
import { tempStore, until } from '../support/tapedeck.ts';

const call = (id: number, name: string, token: number | null = id) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, ...(token !== null && { _meta: { progressToken: token } }) },
  });
const answer = (id: number, text: string) => JSON.stringify({ jsonrpc: '2.0', id, result: { text } });
const progress = (token: number, step: number) =>
  `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${step}}}`;
const cancel = (id: number) =>
  `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`;

const TAKEN_BACK = [
  ['stdin', call(1, 'long')],
  ['stdout', progress(1, 1)],
  ['stdin', cancel(1)],
  ['stdout', progress(1, 2)],
  ['stdin', call(2, 'short')],
  ['stdout', progress(1, 3)],
  ['stdout', progress(2, 1)],
  ['stdout', answer(2, 'of short')],
  ['stdout', answer(1, 'too late')],
] as const;

test('a call that the recorded client took back is played, and stays open until the live one takes it back', async () => {
  const db = await importSaid('calls', TAKEN_BACK);
  const { child, stdout, stderr, ended } = startInProcess(['replay', 'calls', '--db', db, '--fail-on-miss']);
  child.stdin.write(`${call(7, 'long')}\n`);
  await until('progress comes', () => stdout().includes('\n'));
  child.stdin.write(`${call(8, 'short')}\n`);
  await until('the other call is answered', () => stdout().includes('of short'));
  child.stdin.end(`${cancel(7)}\n`);
  expect((await ended).code).toBe(0);
  expect(stdout().toString()).toBe(`${[progress(7, 1), progress(8, 1), answer(8, 'of short')].join('\n')}\n`);
  expect(stderr()).toBe('');
});

test('late progress of one call is never given to another one', async () => {
  const db = await importSaid('calls', TAKEN_BACK);
  // The token of the call that was taken back is now in use by another one.
  const { answers } = await replay(db, [call(1, 'short')]);
  expect(answers).toEqual([progress(1, 1), answer(1, 'of short')]);
});

test('progress of a token that no recorded call had is left out, belated progress comes belated', async () => {
  const db = await importSaid('calls', [
    ['stdin', call(1, 'a')],
    ['stdout', progress(77, 1)],
    ['stdout', answer(1, 'of a')],
    ['stdout', progress(1, 9)],
  ]);
  expect((await replay(db, [call(77, 'a')])).answers).toEqual([answer(77, 'of a'), progress(77, 9)]);
});

test('progress of a task goes on after the answer that began it, with the live token', async () => {
  const begun = '{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t","status":"working"}}}';
  const db = await importSaid('calls', [
    ['stdin', call(1, 'a')],
    ['stdout', begun],
    ['stdin', call(2, 'b', null)],
    ['stdout', progress(1, 1)],
    ['stdout', answer(2, 'of b')],
  ]);
  const { answers } = await replay(db, [call(5, 'a'), call(6, 'b', null)]);
  expect(answers.toSorted()).toEqual(
    [begun.replace(':1', ':5'), progress(5, 1), answer(6, 'of b')].toSorted(),
  );
});

inFull(
  'over HTTP, a call that was taken back by leaving stays open until the live client leaves',
  async () => {
    const db = tempStore();
    const body = {
      id: 5,
      method: 'tools/call',
      params: { name: 'wait_for_cancellation', _meta: { ...modernMeta(), progressToken: 'p' } },
    };
    const headers = {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': 'wait_for_cancellation',
    };
    const recorder = await recordUrlInProcess(await startDualEraServer(), { db });
    const recorded = await send(recorder.url, { body, headers });
    await until('progress comes', () => recorded.text().includes('"progress"'));
    recorded.leave();
    await recorder.stop();

    const { url, misses, mock } = await startHttpMock(db);
    const live = await send(url, { body, headers });
    await until('progress comes', () => live.text().includes('"progress"'));
    await mock.idle();
    expect(live.text()).toBe(recorded.text());
    live.leave();
    await live.ended;
    expect(misses).toEqual([]);
  },
);
