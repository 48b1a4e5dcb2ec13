/** Sampling by real recorders: the same sessions wherever they pass, traffic as ever, and decisions that outlive a kill. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { drawOf } from '../../src/store/sample/sampling.ts';
import { startServer } from '../support/http.ts';
import { query, recordUrl } from '../support/http-record.ts';
import { askAdmin, bodyOf, post, type RawClient, startRawClient, total } from '../support/operations.ts';
import { inFull } from '../support/scale.ts';
import { FAKE_JWT, storeHolds } from '../support/secrets.ts';
import { record, tapedeckInProcess, tempFolder, tempStore, until } from '../support/tapedeck.ts';

const isKept = (key: string) => drawOf(key) < 0.5;

/** A server whose sessions are `key-0`, `key-1` … ; the tool `fail` fails, and says how often it was asked. */
async function startNamedServer(): Promise<string> {
  let sessions = 0;
  const { url } = await startServer(async (asked, response) => {
    const { id, method, params } = JSON.parse(await bodyOf(asked));
    const headers: Record<string, string> = { 'Content-Type': 'application/json' };
    if (method === 'initialize') headers['Mcp-Session-Id'] = `key-${sessions++}`;
    const isFailed = params?.name === 'fail';
    const answer = isFailed ? { error: { code: -32000, message: 'no' } } : { result: { echoed: params } };
    response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  });
  return `${url}/mcp`;
}

type Kept = { session: string; sample: number | null; frames: number };

/** By the ids that their calls bring along, because the store has only placeholders of session ids. */
const kept = (db: string) =>
  query<Kept>(
    db,
    `SELECT min(json_extract(CAST(f.payload AS TEXT), '$.params.arguments.key')) AS session, s.sample, s.frames
       FROM session AS s JOIN frame AS f ON f.session = s.number WHERE f.channel = 'request' GROUP BY s.number ORDER BY s.number`,
  );

test('two recorders keep the same sessions, each whole, and what is left out passes as it is', async () => {
  const server = await startNamedServer();
  const sampled = ['--sample', '50%', '--admin', '127.0.0.1:0', '--strict'];
  const [one, other] = await Promise.all([
    recordUrl(server, { args: sampled }),
    recordUrl(server, { args: sampled }),
  ]);
  const keys: string[] = [];
  for (let i = 0; i < 12; i += 1) {
    const client = await startRawClient(one.url);
    keys.push(client.session);
    const params = { name: 'echo', arguments: { key: client.session } };
    expect(JSON.parse(await client.call('echo', params.arguments)).result).toEqual({ echoed: params });
    const answer = await post(other.url, 'tools/call', params, { 'Mcp-Session-Id': client.session });
    expect(JSON.parse(await bodyOf(answer)).result).toEqual({ echoed: params });
  }
  const names = keys.filter(isKept);
  const out = keys.length - names.length;
  expect([names.length, out]).toEqual([7, 5]);
  for (const recording of [one, other])
    await until('all are counted', async () => {
      const { text } = await askAdmin(recording.run, '/metrics');
      return total(text, 'tapedeck_sessions_sampled_out_total') === out;
    });
  await Promise.all([one.stop(), other.stop()]);
  expect(kept(one.db)).toEqual(names.map((session) => ({ session, sample: 0.5, frames: 4 })));
  expect(kept(other.db)).toEqual(names.map((session) => ({ session, sample: 0.5, frames: 2 })));
  // What was stored before the answer to `initialize` is gone.
  await until('the rest is removed', async () => {
    await tapedeckInProcess(['prune', '--db', one.db, '--max-sessions', '1000']);
    return query(one.db, 'SELECT 1 FROM removal').length === 0;
  });
  expect(query(one.db, 'SELECT DISTINCT session FROM frame')).toHaveLength(names.length);
});

test('over stdio the label run decides for all sessions of a run, and what is left out has no session', async () => {
  const runs = Array.from({ length: 4 }, (_, i) => `key-${i}`);
  const db = tempStore();
  for (const run of runs) {
    const wrapped = record(db, ['cat.js'], ['--sample', '50%', '--label', `run=${run}`]);
    const line = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"run":"${run}"}}\n`;
    wrapped.child.stdin.end(line);
    const { code, stdout } = await wrapped.ended;
    expect([code, stdout.toString()]).toEqual([0, line]);
  }
  expect(
    query(
      db,
      "SELECT l.value AS run, s.sample, s.frames FROM session AS s JOIN label AS l ON l.session = s.number WHERE l.key = 'run' ORDER BY s.number",
    ),
  ).toEqual(runs.filter(isKept).map((run) => ({ run, sample: 0.5, frames: 2 })));
});

inFull(
  'what a session has is known at its end only; a kill leaves the decision to the next recorder',
  async () => {
    const server = await startNamedServer();
    const args = ['--sample', '0%', '--keep', 'status~error', '--max-sessions', '1000'];
    const first = await recordUrl(server, { args });
    const [failing, fine] = [await startRawClient(first.url), await startRawClient(first.url)];
    await failing.call('fail', { key: 'failed' });
    await fine.call('echo', { key: 'fine' });
    await until('both are stored', () => kept(first.db).filter(({ frames }) => frames === 4).length === 2);
    first.run.child.kill('SIGKILL');
    await first.run.ended;
    const undecided = () => query(first.db, 'SELECT 1 FROM session WHERE sampling IS NOT NULL').length;
    expect([undecided(), kept(first.db).map(({ sample }) => sample)]).toEqual([2, [null, null]]);
    const next = await recordUrl(server, { args, db: first.db });
    await until('both are decided', () => undecided() === 0);
    const third = await startRawClient(next.url);
    await third.call('fail', { key: 'third' });
    await next.stop();
    expect(kept(first.db).map(({ session, sample }) => [session, sample])).toEqual([
      ['failed', 1],
      ['fine', 0],
      ['third', 1],
    ]);
    const { stdout } = await tapedeckInProcess(['prune', '--db', first.db, '--max-sessions', '2', '--json']);
    expect(JSON.parse(stdout.toString().split('\n')[0] ?? '')).toMatchObject({ reason: 'sample' });
    expect(kept(first.db).map(({ session }) => session)).toEqual(['failed', 'third']);
  },
);

inFull(
  'a rate that changes leaves open sessions as they were decided, and counts for those that begin',
  async () => {
    const config = join(tempFolder(), 'production.json');
    writeFileSync(config, '{ "sample": { "rate": 0.5 } }');
    const recording = await recordUrl(await startNamedServer(), { args: ['--config', config] });
    const clients: RawClient[] = [];
    const begin = async (count: number) => {
      for (let i = 0; i < count; i += 1) {
        const client = await startRawClient(recording.url);
        clients.push(client);
        await client.call('echo', { key: client.session });
      }
    };
    let told = 0;
    const configure = async (text: string) => {
      writeFileSync(config, text);
      recording.run.child.kill('SIGHUP');
      told += 1;
      await until('it was read', () => recording.run.stderr().split('read anew').length === told + 1);
    };
    await begin(6);
    await configure('{ "sample": { "rate": 1 } }');
    await begin(4);
    await configure('{}');
    await begin(2);
    for (const client of clients) {
      const params = { name: 'echo', arguments: { key: client.session } };
      expect(JSON.parse(await client.call('echo', params.arguments)).result).toEqual({ echoed: params });
    }
    await recording.stop();
    const names = clients.map(({ session }) => session);
    const begun = [
      ...names
        .slice(0, 6)
        .filter(isKept)
        .map((session) => ({ session, sample: 0.5, frames: 6 })),
      ...names.slice(6, 10).map((session) => ({ session, sample: 1, frames: 6 })),
      ...names.slice(10).map((session) => ({ session, sample: null, frames: 6 })),
    ];
    expect(begun.length).toBeLessThan(names.length);
    expect(kept(recording.db)).toEqual(begun);
  },
);

inFull(
  'what is kept is redacted; on the wire kept and left out sessions have the bytes of the server',
  async () => {
    const server = await startNamedServer();
    const recording = await recordUrl(server, { args: ['--sample', '50%', '--meta-for', 'tool=hide'] });
    const secrets = { note: FAKE_JWT, nested: JSON.stringify({ api_key: FAKE_JWT }) };
    let left = 0;
    for (let i = 0; i < 6; i += 1) {
      const client = await startRawClient(recording.url);
      if (!isKept(client.session)) left += 1;
      for (const name of ['echo', 'hide']) {
        const params = { name, arguments: { key: client.session, hidden: `for-${name}`, ...secrets } };
        const sessions = { 'Mcp-Session-Id': client.session };
        const asked = [
          await post(recording.url, 'tools/call', params, sessions),
          await post(new URL(server), 'tools/call', params, sessions),
        ];
        const [through, direct] = await Promise.all(asked.map(bodyOf));
        // The ids of two requests differ, and nothing else.
        expect(through?.replace(/"id":\d+/, '')).toBe(direct?.replace(/"id":\d+/, ''));
        expect(through).toContain(FAKE_JWT);
      }
    }
    await recording.stop();
    expect([left > 0, left < 6]).toEqual([true, true]);
    expect(query(recording.db, 'SELECT 1 FROM session')).toHaveLength(6 - left);
    expect(storeHolds(recording.db, FAKE_JWT)).toBe(false);
    expect(storeHolds(recording.db, 'for-echo')).toBe(true);
    expect(storeHolds(recording.db, 'for-hide')).toBe(false);
    expect(query(recording.db, "SELECT 1 FROM frame_redaction WHERE rules = 'meta'")).toHaveLength(
      2 * (6 - left),
    );
    expect(
      query(recording.db, "SELECT 1 FROM frame_redaction WHERE rules <> 'meta' AND instr(rules, 'jwt') > 0"),
    ).toHaveLength(2 * (6 - left));
  },
);
