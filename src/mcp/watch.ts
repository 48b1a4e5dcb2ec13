/** Tells who has subscribed to a session that is being recorded when there is more of it. */

import type { Reader } from './ask.ts';

export type ResourceWatch = {
  /** From now on these URIs are watched. Returns what ends that. */
  add(uris: readonly string[]): () => void;
  close(): void;
};

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

  async function look(): Promise<void> {
    const references = new Map([...counts.keys()].map((uri) => [uri, referenceOf(uri)]));
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
    begin();
  }

  function begin(): void {
    timer = undefined;
    if (isClosed || counts.size === 0) return;
    timer = setTimeout(() => void look(), LOOK_MS).unref();
  }

  return {
    add(uris) {
      const watched = uris.filter((uri) => WATCHED.test(uri)).slice(0, MOST_URIS - counts.size);
      for (const uri of watched) counts.set(uri, (counts.get(uri) ?? 0) + 1);
      // The first look keeps what there is, so that what comes after is told.
      if (watched.length > 0 && timer === undefined) void look();
      return () => {
        for (const uri of watched.splice(0)) {
          const left = (counts.get(uri) ?? 1) - 1;
          if (left > 0) counts.set(uri, left);
          else {
            counts.delete(uri);
            versions.delete(uri);
          }
        }
      };
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
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
