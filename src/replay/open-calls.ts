/** The calls of a recording that were asked and not answered yet, while it is read from its beginning to its end. */
import type { Place } from './script.ts';

export type OpenCall = {
  call: number;
  place: Place;
  /** With its type; null where it has none. */
  id: string | null;
  exchange: number | null;
  /** What names no subscription does not belong to it: it is long-lived by nature. */
  isListen: boolean;
  /** Another one had its id at the same time. */
  isShared: boolean;
  isOpen: boolean;
  /** The last line that was sent for it; 0 for none. */
  last: number;
};

/** A place as the key of a Map. No line has as many messages as would make two places share a key, short of 256 MB. */
export function placeKey({ seq, n }: Place): number | string {
  return n < MANY ? seq * MANY + n : `${seq}.${n}`;
}

const MANY = 2 ** 20;
const FEW = 64;

export class OpenCalls {
  readonly #open = new Map<number | string, OpenCall>();
  readonly #byExchange = new Map<number, OpenCall[]>();
  /** Calls without an answer, also cancelled ones, by id. */
  readonly #unanswered = new Map<string, OpenCall[]>();
  /** The one asked last at the end; some may be open no more. */
  #inOrder: OpenCall[] = [];

  add(call: OpenCall): void {
    this.#open.set(placeKey(call.place), call);
    if (call.exchange !== null) addTo(this.#byExchange, call.exchange, call);
    if (!call.isListen) this.#inOrder.push(call);
    if (this.#inOrder.length > 2 * this.#open.size + FEW)
      this.#inOrder = this.#inOrder.filter(({ isOpen }) => isOpen);
    const same = addTo(this.#unanswered, call.id ?? '', call);
    // Of more than two, those before this one are marked already.
    if (same.length === 2) for (const one of same) one.isShared = true;
    else if (same.length > 2) call.isShared = true;
  }

  at(place: Place): OpenCall | undefined {
    return this.#open.get(placeKey(place));
  }

  /** Of those that were asked on an HTTP exchange, the first. */
  onExchange(exchange: number): OpenCall | undefined {
    return this.#byExchange.get(exchange)?.[0];
  }

  askedLast(): OpenCall | undefined {
    while (this.#inOrder.at(-1)?.isOpen === false) this.#inOrder.pop();
    return this.#inOrder.at(-1);
  }

  answer(call: OpenCall): void {
    removeFrom(this.#unanswered, call.id ?? '', call);
    this.close(call);
  }

  /** Nothing belongs to it any more. */
  close(call: OpenCall): void {
    call.isOpen = false;
    this.#open.delete(placeKey(call.place));
    if (call.exchange !== null) removeFrom(this.#byExchange, call.exchange, call);
  }
}

function addTo<K>(lists: Map<K, OpenCall[]>, key: K, call: OpenCall): OpenCall[] {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [call]);
  else list.push(call);
  return list ?? [call];
}

function removeFrom<K>(lists: Map<K, OpenCall[]>, key: K, call: OpenCall): void {
  const list = lists.get(key) ?? [];
  if (list.length > 1) list.splice(list.indexOf(call), 1);
  else lists.delete(key);
}
