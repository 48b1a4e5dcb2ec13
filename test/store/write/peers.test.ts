import { expect, test } from 'vitest';
import type { SessionStart } from '../../../src/store/file/columns.ts';
import { openStore } from '../../../src/store/file/open.ts';
import type { ClientProcess } from '../../../src/store/file/process.ts';
import { runsOf } from '../../../src/store/read/runs.ts';
import { createPeers } from '../../../src/store/write/peers.ts';
import { createPendingSession } from '../../../src/store/write/pending.ts';
import { insertSession } from '../../../src/store/write/rows.ts';
import { tempStore } from '../../support/tapedeck.ts';

const HTTP: Omit<SessionStart, 'name'> = {
  ...{
    basis: 'stateless',
    transport: 'http',
    target: 'http://127.0.0.1/',
    labels: [],
    command: null,
    cwd: null,
  },
  ...{
    at: 1,
    host: 'here',
    pid: 7,
    processStarted: '7',
    clientPid: null,
    clientProgram: null,
    tapedeck: '0',
  },
};

const client = (pid: number): ClientProcess => ({ pid, program: 'client', started: String(pid) });

/** A store with two sessions, and what is asked of the finder. */
function setUp(owners: Record<string, ClientProcess>) {
  const store = openStore(tempStore());
  const asked: string[] = [];
  let looks = 0;
  const peers = createPeers(
    () => store,
    'here',
    async (addresses) => {
      looks += 1;
      asked.push(...addresses);
      return addresses.map((address) => owners[address] ?? null);
    },
  );
  const session = (name: string) => {
    const pending = createPendingSession({ basis: 'stateless', transport: 'http', id: name });
    pending.key = insertSession(store, { ...HTTP, name });
    return pending;
  };
  /** Time enough between looks is a matter of the clock: tries until nothing new is asked. */
  async function lookAll(count: number): Promise<void> {
    while (asked.length < count) await peers.look();
  }
  const runs = () =>
    runsOf(store).map(({ sessions }) => sessions.map(({ name, clientPid }) => [name, clientPid]));
  return { asked, looks: () => looks, peers, session, lookAll, runs };
}

test('sessions of connections from one process are one run, and each connection is looked up once', async () => {
  const { asked, peers, session, lookAll, runs } = setUp({
    '127.0.0.1:1': client(5),
    '127.0.0.1:2': client(5),
  });
  const [one, two] = [session('one'), session('two')];
  for (let i = 0; i < 3; i += 1) peers.saw(one, '127.0.0.1:1');
  peers.saw(two, '127.0.0.1:2');
  peers.saw(two, '192.0.2.1:3');
  await lookAll(2);
  await peers.look();
  expect(asked).toEqual(['127.0.0.1:1', '127.0.0.1:2']);
  expect(runs()).toEqual([
    [
      ['one', 5],
      ['two', 5],
    ],
  ]);
});

test('a session that two processes speak in belongs to the run of neither', async () => {
  const { peers, session, lookAll, runs } = setUp({ '127.0.0.1:1': client(5), '127.0.0.1:2': client(6) });
  const [one, own] = [session('one'), session('own')];
  peers.saw(one, '127.0.0.1:1');
  peers.saw(own, '127.0.0.1:1');
  await lookAll(2);
  peers.saw(one, '127.0.0.1:2');
  await lookAll(3);
  expect(runs()).toEqual([[['own', 5]]]);
});

test('a session is not looked up before it is stored, nor after the end', async () => {
  const { asked, peers, session } = setUp({ '127.0.0.1:1': client(5) });
  const waiting = session('waiting');
  const key = waiting.key;
  waiting.key = null;
  peers.saw(waiting, '127.0.0.1:1');
  await peers.look();
  waiting.key = key;
  peers.stop();
  await peers.look();
  expect(asked).toEqual([]);
});

test('connections that wait together are looked up together, up to a hundred at once', async () => {
  const { asked, looks, peers, session, lookAll, runs } = setUp({ '127.0.0.1:1': client(5) });
  const [one, other] = [session('one'), session('other')];
  for (let port = 1; port <= 100; port += 1) peers.saw(one, `127.0.0.1:${port}`);
  await lookAll(100);
  expect([asked.length, looks()]).toEqual([100, 1]);
  for (let port = 101; port <= 220; port += 1) peers.saw(other, `127.0.0.1:${port}`);
  await lookAll(220);
  expect([asked.length, looks()]).toEqual([220, 3]);
  expect(runs()).toContainEqual([['one', 5]]);
});
