/** Sessions by stdio with given lines, written as an import writes them, but as if they were recorded here. */

import type { SessionEnd, SessionStart } from '../../src/store/file/columns.ts';
import type { Store } from '../../src/store/file/open.ts';
import { beginImport } from '../../src/store/write/import.ts';
import { reindexSession } from '../../src/store/write/index.ts';

/** A session as it begins; nothing of it matters. */
export const START: SessionStart = {
  ...{
    name: null,
    labels: [],
    basis: 'stdio-process',
    transport: 'stdio',
    target: 'server',
    command: ['server'],
  },
  ...{ cwd: '/', at: 1e15, host: 'host', pid: 1, processStarted: null, clientPid: null, clientProgram: null },
  tapedeck: '0',
  redaction: JSON.stringify({ key: 'k', without: [], rules: [], paths: [] }),
};

const CALL: readonly string[] = [
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}',
  '{"jsonrpc":"2.0","id":1,"result":{}}',
];

type Options = { lines?: readonly (string | Buffer)[]; start?: Partial<SessionStart>; isOpen?: boolean };

/** Stores a session with these lines, from the client and from the server in turn, and indexes it. Returns its number. */
export function storeSession(
  store: Store,
  { lines = CALL, start = {}, isOpen = false }: Options = {},
): number {
  const session = beginImport(store, { ...START, ...start }, { frames: 0, bytes: 0 }, null);
  const { at = START.at } = start;
  for (const [i, line] of lines.entries()) {
    const payload = Buffer.from(line as string);
    const form = { lineEnd: '\n', size: payload.length, truncated: false, part: 'line', http: null } as const;
    session.add({ channel: i % 2 === 0 ? 'stdin' : 'stdout', at: at + i, payload, ...form });
  }
  const end: SessionEnd = {
    ...{ at: at + lines.length, reason: 'client-closed', exitCode: 0, signal: null },
    ...{ clientClosedAt: null, serverClosedAt: null },
  };
  const { number } = session.finish(isOpen ? null : end);
  store.prepare('UPDATE session SET imported_at = NULL WHERE number = ?').run(number);
  reindexSession(store, number);
  return number;
}
