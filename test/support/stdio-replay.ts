/** Sessions over stdio written by hand, and their replay. */
import { openStore } from '../../src/store/file/open.ts';
import { startInProcess } from './in-process.ts';
import { tempStore } from './tapedeck.ts';
import { importText } from './text-recording.ts';

/** What was said on which side, a millisecond after the line before unless told. */
export type SaidLine = readonly ['stdin' | 'stdout', string, number?];

/** A store with a session in which these lines were said. `more`: of its header. Gives the store's path. */
export async function importSaid(
  name: string,
  lines: readonly SaidLine[],
  db = tempStore(),
  more: object = {},
): Promise<string> {
  const session = { name, basis: 'stdio-process', transport: 'stdio', target: 'x', command: ['x'], ...more };
  const header = { tapedeck: 1, session: { ...session, startedAt: '2026-01-01T00:00:00.000000Z' } };
  const frames = lines.map(([channel, text, ms = 1]) => ({ ms, channel, text }));
  const store = openStore(db);
  await importText(store, [header, ...frames].map((line) => `${JSON.stringify(line)}\n`).join(''));
  store.close();
  return db;
}

/** Says lines to a replay of the session, closes its input, and gives its answers and how it ended. */
export async function replay(
  db: string,
  lines: readonly string[],
  options: readonly string[] = [],
  sessions: readonly string[] = ['calls'],
) {
  const { child, ended } = startInProcess(['replay', ...sessions, '--db', db, ...options]);
  child.stdin.end(lines.map((line) => `${line}\n`).join(''));
  const { code, stdout, stderr } = await ended;
  const answers = stdout.toString().split('\n').slice(0, -1);
  return { code, answers, stderr };
}
