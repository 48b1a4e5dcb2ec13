/**
 * Keeps the garbage collector from the native handles of better-sqlite3 where that would end the process: its 12.x, compiled for
 * Node 24.19 or newer, aborts when a handle is collected, closed or not (better-sqlite3 #1515: closed as not planned; 13.x is
 * made otherwise, but does not run on Node 20). Handles that are held until the end are released by Node itself, in order. They
 * are small once their database is closed.
 */

import { createRequire } from 'node:module';
import type Database from 'better-sqlite3';

/** The methods of objects of C++. */
type Native = Record<string, (...args: unknown[]) => unknown>;

/** What made something, and what was made. */
type OnMade = (maker: object, made: object) => void;

/** From which Node on, as its version's numbers. */
const NODE_SINCE = [24, 19] as const;

const FRAIL_MAJOR = '12';

const held = new Set<object>();

const watched = new WeakSet<object>();

/**
 * Holds every handle that is made in this thread from now on; with `ifNeeded` only where this Node and this better-sqlite3 do
 * not go together. `open` opens any database.
 */
export function holdHandles(open: () => Database.Database, when: 'ifNeeded' | 'always'): void {
  if (when === 'ifNeeded' && !isFrail()) return;
  const first = open();
  const native = nativeOf(first);
  if (native !== undefined) watchDatabases(Object.getPrototypeOf(native));
  first.close();
}

function isFrail(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < NODE_SINCE[0] || (major === NODE_SINCE[0] && minor < NODE_SINCE[1])) return false;
  const { version } = createRequire(import.meta.url)('better-sqlite3/package.json') as { version: string };
  return version.startsWith(`${FRAIL_MAJOR}.`);
}

function watchDatabases(prototype: Native): void {
  const hold: OnMade = (database, made) => {
    held.add(database);
    held.add(made);
  };
  watch(prototype, 'prepare', (database, statement) => {
    hold(database, statement);
    watch(Object.getPrototypeOf(statement), 'iterate', hold);
  });
  // Whatever else is done with a database: sooner or later it is closed.
  for (const name of ['exec', 'backup', 'close']) watch(prototype, name, hold);
}

/** Looks at each call of a method of native objects, once. */
function watch(prototype: Native, name: string, onMade: OnMade): void {
  const method = prototype[name];
  if (method === undefined || watched.has(method)) return;
  const watching = function (this: object, ...args: unknown[]): unknown {
    const made = method.apply(this, args);
    onMade(this, typeof made === 'object' && made !== null ? made : this);
    return made;
  };
  watched.add(watching);
  prototype[name] = watching;
}

/** The object of C++ behind a database, which stands under a symbol. */
function nativeOf(database: Database.Database): object | undefined {
  for (const symbol of Object.getOwnPropertySymbols(database)) {
    const value = (database as unknown as Record<symbol, unknown>)[symbol];
    if (typeof value === 'object' && value !== null && 'prepare' in value) return value;
  }
  return undefined;
}
