/** A store that a filter takes minutes to look through, in one statement that asks nobody whether it may go on. */
import Database from 'better-sqlite3';
import { storeOnce } from './once.ts';
import { record, tapedeckInProcess, until } from './tapedeck.ts';

const WORDS = 'no pattern holds for this, however long it is looked at. ';

export const slowStore = storeOnce(async (db) => {
  const run = record(db, ['cat.js'], ['--no-redact']);
  const line = `${JSON.stringify({ jsonrpc: '2.0', method: 'x', params: [WORDS.repeat(100_000)] })}\n`;
  for (let i = 0; i < 2; i += 1) run.child.stdin.write(line);
  await until('all came back', () => run.stdout().length === 2 * line.length);
  run.child.stdin.end();
  await run.ended;
});

/** Every word may begin a match that never ends, of each pattern anew. */
export const SLOW: string = Array.from(
  { length: 40 },
  (_, i) => `text~/(no|pattern|holds|looked)[a-z,. ]*[0-9]{${i + 1}}/`,
).join(' or ');

/** The same with a newer session, which is looked through at once, and finds what it has of `tool=echo or …`. */
export async function slowStoreWithCalls(): Promise<string> {
  const db = await slowStore();
  await tapedeckInProcess(['import', 'recordings/everything-stdio.ndjson', '--db', db]);
  const store = new Database(db);
  store.exec("UPDATE session SET started_at = 9000000000000000 WHERE name = 'everything-stdio'");
  store.close();
  return db;
}
