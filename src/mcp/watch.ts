/** Tells who has subscribed to a session that is being recorded when there is more of it. */

import type { Reader } from './ask.ts';

export type ResourceWatch = {
  /** `ready` settles once it is known what there is, so that whatever comes after it is told. `end` ends watching. */
  add(uris: readonly string[]): Watched;
  close(): void;
};

type Watched = { ready: Promise<void>; end(): void };

const LOOK_MS = 1000;

/** More subscriptions than this are not watched. */
const MOST_URIS = 1000;

/** The session of a resource that changes with it: a frame never does. */
const WATCHED = /^tapedeck:\/\/session\/([^/?#]+)(?:\/findings)?$/;

/** `tell` is called with each URI whose session has changed. */
export function createResourceWatch(reader: Reader, tell: (uri: string) => void): ResourceWatch {
  const counts = new Map<string, number>();
  const versions = new Map<string, string | null>();
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function look(uris: readonly string[]): Promise<void> {
    const references = new Map(uris.map((uri) => [uri, referenceOf(uri)]));
    const asked = { uris: [...new Set(references.values())] };
    // Without an answer nothing is known, and the next look may have one.
    const found = (await reader.ask('versions', asked).catch(() => ({ versions: {} }))) as {
      versions: Record<string, string | null>;
    };
    for (const [uri, reference] of references) {
      const now = found.versions[reference];
      const before = versions.get(uri);
      if (now === undefined || !counts.has(uri)) continue;
      versions.set(uri, now);
      if (before !== undefined && before !== now) tell(uri);
    }
  }

  /** One look after the other, as long as anything is watched. */
  function goOn(): void {
    if (timer !== undefined || isClosed || counts.size === 0) return;
    timer = setTimeout(async () => {
      await look([...counts.keys()]);
      timer = undefined;
      goOn();
    }, LOOK_MS).unref();
  }

  return {
    add(uris) {
      const watched = uris.filter((uri) => WATCHED.test(uri)).slice(0, MOST_URIS - counts.size);
      for (const uri of watched) counts.set(uri, (counts.get(uri) ?? 0) + 1);
      goOn();
      return {
        ready: watched.length === 0 ? Promise.resolve() : look(watched),
        end() {
          for (const uri of watched.splice(0)) {
            const left = (counts.get(uri) ?? 1) - 1;
            if (left > 0) counts.set(uri, left);
            else {
              counts.delete(uri);
              versions.delete(uri);
            }
          }
        },
      };
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

/** What one client of the eras before 2026-07-28 has subscribed to. */
export type Subscriptions = {
  /** Settles when whatever comes after it is told. */
  add(uri: string): Promise<void>;
  remove(uri: string): void;
  has(uri: string): boolean;
  /** The client has gone. */
  end(): void;
};

export function createSubscriptions(watch: ResourceWatch): Subscriptions {
  const subscribed = new Map<string, Watched>();
  return {
    add(uri) {
      const watched = subscribed.get(uri) ?? watch.add([uri]);
      subscribed.set(uri, watched);
      return watched.ready;
    },
    remove(uri) {
      subscribed.get(uri)?.end();
      subscribed.delete(uri);
    },
    has: (uri) => subscribed.has(uri),
    end() {
      for (const { end } of subscribed.values()) end();
      subscribed.clear();
    },
  };
}

function referenceOf(uri: string): string {
  const [, reference = ''] = WATCHED.exec(uri) ?? [];
  try {
    return decodeURIComponent(reference);
  } catch {
    return reference;
  }
}

/** What a `subscriptions/listen` request of 2026-07-28 asks to be told of; none for any other message. */
export function listenedUris(message: unknown): string[] {
  const { method, params } = (message ?? {}) as { method?: unknown; params?: unknown };
  if (method !== 'subscriptions/listen') return [];
  const { notifications } = (params ?? {}) as { notifications?: { resourceSubscriptions?: unknown } };
  const uris = notifications?.resourceSubscriptions;
  return Array.isArray(uris) ? uris.filter((uri) => typeof uri === 'string') : [];
}
