import { expect, test } from 'vitest';
import { removeSession } from '../../src/store/write/removal.ts';
import { answered, asked, ended, JSON_TYPE, rpc, startRecording } from '../support/http-store.ts';

const withSession = (id: string) => [...JSON_TYPE, 'Mcp-Session-Id', id];
const call = (id: number) => rpc({ id, method: 'tools/call', params: { name: 'x' } });
const result = (id: number) => rpc({ id, result: {} });
const INITIALIZE = rpc({
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
});

/** A conversation with a call, ended by DELETE. */
function record(recording: ReturnType<typeof startRecording>): void {
  recording.feed(
    ...asked(1, { body: INITIALIZE }),
    ...answered(1, { headers: withSession('s'), body: result(0) }),
    ended(1),
    ...asked(2, { method: 'DELETE', headers: withSession('s') }),
    ...answered(2),
    ended(2),
  );
}

test('a session that speaks again after it was pruned gets a row of its own, and nothing is left without one', async () => {
  const recording = startRecording();
  record(recording);
  recording.save();
  const [first] = recording.all<{ number: number }>('SELECT number FROM session');
  removeSession(recording.store, first?.number ?? 0);
  recording.feed(
    ...asked(3, { headers: withSession('s'), body: call(7) }),
    ...answered(3, { body: result(7) }),
    ended(3),
  );
  recording.save();
  await recording.close();
  expect(recording.all('SELECT frames, exchanges, unanswered FROM session')).toEqual([
    { frames: 2, exchanges: 1, unanswered: 0 },
  ]);
  const orphans = ['frame', 'message', 'http_exchange'].map(
    (table) => `SELECT session FROM ${table} WHERE session NOT IN (SELECT number FROM session)`,
  );
  expect(recording.all(orphans.join(' UNION '))).toEqual([]);
});

test('a session that is pruned before its index is complete stops nobody else’s index', async () => {
  const recording = startRecording();
  record(recording);
  recording.intake.save(false);
  recording.intake.confirm();
  const [first] = recording.all<{ number: number }>('SELECT number FROM session');
  recording.feed(
    ...asked(3, { headers: withSession('t'), body: call(1) }),
    ...answered(3, { body: result(1) }),
    ended(3),
  );
  removeSession(recording.store, first?.number ?? 0);
  recording.save();
  await recording.close();
  expect(recording.all('SELECT frames, indexed, exchanges FROM session')).toEqual([
    { frames: 2, indexed: 2, exchanges: 1 },
  ]);
});
