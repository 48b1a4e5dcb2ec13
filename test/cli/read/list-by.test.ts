/** `list --by server` and `list --by client`: what ever ran here. */
import { expect, test } from 'vitest';
import { openStore } from '../../../src/store/file/open.ts';
import {
  callOf,
  httpSession,
  type Line,
  replies,
  resultOf,
  says,
  stdioSession,
} from '../../support/hand-made.ts';
import { tapedeckInProcess, tempStore } from '../../support/tapedeck.ts';
import { importText } from '../../support/text-recording.ts';

type Peer = [name: string, version: string];

const infoOf = ([name, version]: Peer) => ({ name, version });

/** A handshake of `client` and `server` that agrees on `revision`, and a call that is answered; another one that is not. */
function talk(client: Peer, server: Peer, revision = '2025-11-25', more: Line[] = []): Line[] {
  const hello = { protocolVersion: revision, capabilities: {} };
  return [
    says(1, { id: 0, method: 'initialize', params: { ...hello, clientInfo: infoOf(client) } }),
    replies(2, resultOf(0, { ...hello, serverInfo: infoOf(server) })),
    says(3, callOf(1, 'echo')),
    replies(4, resultOf(1)),
    ...more,
  ];
}

const HOUR = 3_600_000;

/** The oldest first, an hour after each other. */
async function storeOf(...sessions: [lines: Line[], header?: Record<string, unknown>][]) {
  const db = tempStore();
  const store = openStore(db);
  for (const [i, [lines, header]] of sessions.entries())
    await importText(store, stdioSession(lines, header, i * HOUR));
  store.close();
  const list = async (...args: string[]) => {
    const { stdout, stderr, code } = await tapedeckInProcess(['list', ...args, '--db', db], {
      env: { COLUMNS: '80', TZ: 'UTC' },
    });
    expect(stderr).toBe('');
    expect(code).toBe(0);
    return stdout.toString();
  };
  const rows = async (...args: string[]) =>
    (await list(...args, '--json'))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { db, list, rows };
}

const desk: Peer = ['desk', '1.0'];
const files: Peer = ['files', '2.0'];

test('a server is one row with its versions, targets, clients and revisions, what was seen last first', async () => {
  const { rows } = await storeOf(
    [talk(desk, files, '2025-06-18'), { target: 'node files.js' }],
    [talk(desk, ['other', '1']), { target: 'node other.js' }],
    [
      talk(['editor', '3'], ['files', '2.1'], '2025-11-25', [says(9, callOf(2, 'slow'))]),
      { target: 'npx files' },
    ],
  );
  expect(await rows('--by', 'server')).toEqual([
    {
      server: 'files',
      versions: ['2.1', '2.0'],
      clients: ['editor', 'desk'],
      protocolVersions: ['2025-11-25', '2025-06-18'],
      transports: ['stdio'],
      targets: ['npx files', 'node files.js'],
      sessions: 2,
      firstSeenAt: '2026-11-20T10:00:00.000000Z',
      lastSeenAt: '2026-11-20T12:01:00.000000Z',
      ...{ exchanges: 5, errors: 0, unanswered: 1, dropped: 0, sessionsBehind: 0 },
    },
    expect.objectContaining({ server: 'other', sessions: 1, clients: ['desk'] }),
  ]);
  expect(await rows('--by', 'client')).toEqual([
    expect.objectContaining({ client: 'editor', program: null, versions: ['3'], servers: ['files'] }),
    expect.objectContaining({ client: 'desk', sessions: 2, servers: ['other', 'files'], exchanges: 4 }),
  ]);
  expect(await rows('--by', 'client', '--limit', '1')).toHaveLength(1);
});

test('filters choose the sessions that are put together', async () => {
  const { rows, list } = await storeOf(
    [talk(desk, files)],
    [talk(['editor', '3'], files, '2025-11-25', [says(9, callOf(2, 'slow'))])],
  );
  const [row] = await rows('--by', 'server', '--filter', 'client=desk');
  expect(row).toMatchObject({ sessions: 1, clients: ['desk'] });
  const ofFrames = await rows('--by', 'client', '--filter', 'tool=slow status=unanswered');
  expect(ofFrames.map(({ client }) => client)).toEqual(['editor']);
  expect(await rows('--by', 'client', '--filter', 'since=2026-11-20T10:30:00Z')).toHaveLength(1);
  expect(await list('--by', 'server', '--filter', 'client=nobody')).toBe(
    'The filter holds for no session.\n',
  );
});

test('sessions without a handshake are counted by their command or program, and never under a name', async () => {
  const silent = [says(1, { id: 0, method: 'initialize', params: { clientInfo: infoOf(desk) } })];
  const { rows, list, db } = await storeOf(
    [talk(desk, ['node files.js', '1'])],
    [silent, { target: 'node files.js' }],
    [[says(1, callOf(1, 'echo'))], { target: 'node files.js' }],
    [[], { target: 'node deaf.js' }],
  );
  const store = openStore(db);
  await importText(store, httpSession([]));
  store.close();
  const servers = await rows('--by', 'server');
  expect(
    servers.map(({ server, targets, sessions, clients }) => [server, targets, sessions, clients]),
  ).toEqual([
    [null, ['node deaf.js'], 1, [null]],
    [null, ['node files.js'], 2, [null, 'desk']],
    [null, ['http://127.0.0.1:1/mcp'], 1, [null]],
    ['node files.js', ['node server.js'], 1, ['desk']],
  ]);
  expect((await rows('--by', 'client')).map(({ client, sessions }) => [client, sessions])).toEqual([
    [null, 3],
    ['desk', 2],
  ]);
  const shown = await list('--by', 'server');
  expect(shown).toContain('? node deaf.js');
  expect(shown).toMatch(/\n\?: its sessions have no handshake in which the server says its name\.\n$/);
});

test('names that servers give themselves are escaped, and long lists are counted', async () => {
  const versions = Array.from({ length: 7 }, (_, i) => `1.${i}`);
  const { list } = await storeOf(
    ...versions.map((version): [Line[]] => [talk(desk, ['\u001b\u202e', version])]),
  );
  const shown = await list('--by', 'server');
  for (const hidden of ['\u001b', '\u202e']) expect(shown).not.toContain(hidden);
  expect(shown).toContain('  1.6, +6  ');
  for (const line of shown.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});

test('an empty store has a table without rows', async () => {
  const { list, rows } = await storeOf();
  expect(await list('--by', 'client')).toMatch(/^CLIENT +VERSIONS/);
  expect(await rows('--by', 'server')).toEqual([]);
});
