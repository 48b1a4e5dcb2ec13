/**
 * Reading from an engine: it finds the sessions that somebody asks for, they are fetched, and what reads a store reads them. All of
 * it is of one moment, and comes over a connection that only reads.
 */

import { TapedeckError } from '../../errors.ts';
import type { Filter } from '../../inspect/filter/filter.ts';
import { parseSize } from '../../inspect/filter/values.ts';
import { fetchedFolder } from '../../store/file/path.ts';
import { connectEngine, readAddress } from '../connect.ts';
import { assertReadable, readEngine } from '../install.ts';
import { engineError } from '../trouble.ts';
import { type Cache, openCache } from './cache.ts';
import { createFetched, type FetchedStore } from './fetched.ts';
import { createFinder, type Finder, type Found } from './find.ts';
import { type EngineOptions, type Fetching, fetchNeeds, type Needs } from './needs.ts';
import { createPuller } from './pull.ts';
import { askTextIndex } from './text-index.ts';

/** After so long it is said that nothing hangs but the engine. */
const PATIENCE_MS = 10_000;

const DEFAULT_CACHE = '2gb';

/** Throws `TapedeckError` where the engine cannot be reached, lets us read nothing, or is of another version. */
export async function openEngine(
  url: string,
  needs: Needs,
  options: EngineOptions,
): Promise<Pick<FetchedStore, 'store' | 'file' | 'whole' | 'counted' | 'close'>> {
  const reading = await connectReader(url, options);
  try {
    await reading.atOneMoment((work) => fetchNeeds(needs, work));
    options.notices.onFetched();
    return reading.fetched;
  } catch (error) {
    reading.fetched.close();
    throw error;
  } finally {
    await reading.disconnect();
  }
}

type Reading = {
  fetched: FetchedStore;
  /** While it works, everything is as it was at the beginning, whatever hosts ship meanwhile. */
  atOneMoment<T>(work: (work: Fetching) => Promise<T>): Promise<T>;
  disconnect(): Promise<void>;
};

async function connectReader(url: string, options: EngineOptions): Promise<Reading> {
  const address = readAddress(url, options.env, { isInsecure: options.isInsecure });
  const cacheBytes = cacheSize(options.env);
  const client = await connectEngine(address);
  // A connection that is gone needs no end.
  const disconnect = () => client.end().catch(() => {});
  let fetched: FetchedStore | null = null;
  try {
    const meta = await readEngine(client);
    assertReadable(meta);
    const folder = fetchedFolder(options.env);
    fetched = createFetched(folder);
    const cache = openCache(folder, meta.id, fetched.store, cacheBytes);
    const puller = createPuller(client, fetched, cache, options.notices);
    const finder = createFinder(client);
    const texts = (filter: Filter) => askTextIndex(client, filter);
    let isSwept = false;
    const work = { finder, puller, fetched, texts, options };
    return {
      ...{ fetched, disconnect },
      async atOneMoment(act) {
        const patience = setTimeout(
          () => options.notices.onNote(`still waiting for ${address.text}`),
          PATIENCE_MS,
        );
        try {
          await client.query(BEGIN);
          if (!isSwept) await forgetChanged(cache, finder);
          isSwept = true;
          const result = await act(work);
          await client.query('COMMIT');
          return result;
        } catch (error) {
          throw engineError(error, address.text);
        } finally {
          clearTimeout(patience);
        }
      },
    };
  } catch (error) {
    fetched?.close();
    await disconnect();
    throw engineError(error, address.text);
  }
}

/** What was redacted, deleted or written anew on the engine does not stay here either. */
async function forgetChanged(cache: Cache | null, finder: Finder): Promise<void> {
  const kept = cache?.kept() ?? new Map<string, string>();
  if (kept.size === 0) return;
  const current = await finder.versionsOf([...kept.keys()]);
  const changed = [...kept].filter(([key, version]) => current.get(key) !== version);
  if (changed.length > 0) cache?.forget(changed.map(([key]) => key));
}

const BEGIN = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = pg_catalog';

function cacheSize({ TAPEDECK_CACHE: text }: NodeJS.ProcessEnv): number {
  const bytes = text === '0' ? 0 : parseSize(text || DEFAULT_CACHE);
  if (bytes !== null) return bytes;
  throw new TapedeckError('usage', `Expected a size in TAPEDECK_CACHE, such as 500mb or 0, got \`${text}\`.`);
}

/** What comes into an engine while one looks on. */
export type EngineFollower = {
  /** A store that gets what comes. */
  file: string;
  /** Fetches what has come since. Throws `TapedeckError` where the engine is away. */
  refresh(): Promise<void>;
  close(): Promise<void>;
};

/** So long a transaction may take from its clock's time to its commit, in microseconds: what is older has come. */
const OVERLAP_US = 60_000_000;

/** Begins with one session whole, the newest or the one that is named, and the rows of those that are not whole yet. */
export async function followEngine(
  url: string,
  reference: string | undefined,
  options: EngineOptions,
): Promise<EngineFollower> {
  const reading = await connectReader(url, options);
  const { fetched } = reading;
  const known = new Map<string, string>();
  const note = (sessions: readonly Found[]) => {
    for (const { key, version } of sessions) known.set(key, version);
  };

  async function begin({ finder, puller }: Fetching): Promise<number> {
    const clock = await finder.clock();
    const shown = reference === undefined ? await finder.newest(1) : await finder.named(reference);
    await puller.rows(await finder.newest(1));
    await puller.frames(shown.slice(0, 1));
    const others = [
      ...(await finder.newest(Infinity, OPEN)),
      ...(await finder.receivedSince(clock - OVERLAP_US)),
    ];
    await puller.rows([...shown, ...others]);
    note([...shown, ...others]);
    return clock;
  }

  async function more({ finder, puller }: Fetching): Promise<number> {
    const clock = await finder.clock();
    const come = await finder.receivedSince(from - OVERLAP_US);
    const changed = come.filter(({ key, version }) => known.get(key) !== version);
    await puller.begun(changed);
    await puller.rest(changed);
    note(changed);
    return clock;
  }

  const close = async () => {
    await reading.disconnect();
    fetched.close();
  };
  let from = await reading.atOneMoment(begin).catch(async (error) => {
    await close();
    throw error;
  });
  return {
    file: fetched.file,
    async refresh() {
      from = await reading.atOneMoment(more);
    },
    close,
  };
}

const OPEN = { sql: 's.sealed_at IS NULL', values: [] };
