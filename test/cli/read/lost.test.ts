import { expect, test } from 'vitest';
import { readBody, startServer } from '../../support/http.ts';
import { recordUrlInProcess } from '../../support/http-record.ts';
import { inFull } from '../../support/scale.ts';
import { send } from '../../support/send.ts';
import { record, tapedeckInProcess, tempStore, until } from '../../support/tapedeck.ts';

type Fate = { verdict: string; by: string | null; text: string };

/** What show says became of each call, by its tool, and what stands behind it. */
async function fatesOf(db: string): Promise<Record<string, Fate>> {
  const { stdout } = await tapedeckInProcess(['show', '--db', db, '--json']);
  const frames = stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return Object.fromEntries(
    frames
      .filter(({ messages: [message] }) => message?.fate !== undefined)
      .map(({ text, messages: [{ fate }] }) => [JSON.parse(text).params.name, fate]),
  );
}

const call = (id: number, name: string) => ({ id, method: 'tools/call', params: { name } });

test('a server that leaves one call, answers another and dies at a third is told so of each', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['dies.js']);
  const write = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  for (const message of [call(1, 'silent'), call(2, 'fine'), call(3, 'exits')]) write(message);
  expect(await ended).toMatchObject({ code: 7 });
  const { silent, exits, ...others } = await fatesOf(db);
  expect(others).toEqual({});
  expect(silent?.text).toMatch(
    /^the server never answered it: after .+ m?s the server exited with 7; it had come to the server, which answered #2 that came later$/,
  );
  expect(exits?.text).toMatch(/^the server never answered it: after .+ m?s the server exited with 7$/);
  const check = await tapedeckInProcess(['check', '--db', db]);
  expect(check.stdout.toString()).toMatch(/saw none to tools\/call: the server never answered it: after/);
  const stats = await tapedeckInProcess(['stats', '--db', db]);
  expect(stats.stdout.toString()).toContain('\nlost: 2 never answered\n');
});

inFull(
  'over HTTP it is told who closed: the client that left, the server that broke off, or was not there',
  async () => {
    const upstream = await startServer(async (request, response) => {
      const { params } = JSON.parse((await readBody(request)).toString());
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
      if (params.name === 'breaks') setImmediate(() => response.destroy());
    });
    const db = tempStore();
    const recording = await recordUrlInProcess(`${upstream.url}/mcp`, { db });
    const left = await send(recording.url, { body: call(1, 'left') });
    left.leave();
    const broken = await send(recording.url, { body: call(2, 'breaks') });
    await broken.ended;
    upstream.server.closeAllConnections();
    await new Promise((over) => upstream.server.close(over));
    const away = await send(recording.url, { body: call(3, 'away') });
    await away.ended;
    await until('all three are over', () => {
      const rows = recording.rows('SELECT 1 FROM http_exchange WHERE ended_at IS NOT NULL');
      return rows.length === 3;
    });
    await recording.stop();
    const fates = await fatesOf(db);
    expect(fates).toMatchObject({
      left: { verdict: 'client-left', by: 'client' },
      breaks: { verdict: 'no-answer', by: 'server' },
      away: { verdict: 'not-forwarded', by: 'tapedeck' },
    });
    expect(fates['away']?.text).toMatch(/^it never reached the server: cannot reach http.*ECONNREFUSED/);
  },
);
