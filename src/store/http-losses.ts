/** What was dropped of HTTP exchanges, added up until the writer is told of it. */
import type { HttpEvent } from '../protocol/http-event.ts';
import { mediaTypeOf } from './http-exchange.ts';
import type { HttpLoss } from './http-items.ts';

type Lost = Omit<HttpLoss, 'type'>;

export type Losses = {
  /** More pieces of an exchange, or one more whole exchange. */
  add(lost: Lost): void;
  /** Tells what was lost of an exchange; call it before more of that exchange is kept, so that the gap has its place. */
  tell(exchange: number): void;
  tellAll(): void;
};

export function createLosses(onLoss: (loss: HttpLoss) => void): Losses {
  const byExchange = new Map<number, HttpLoss>();
  let whole: HttpLoss | undefined;

  function add(lost: Lost): void {
    const { exchange, side } = lost;
    if (side === 'exchange') {
      whole = plus(whole, lost);
      return;
    }
    const before = byExchange.get(exchange);
    if (before !== undefined && before.side !== side) tell(exchange);
    byExchange.set(exchange, plus(byExchange.get(exchange), lost));
  }

  function tell(exchange: number): void {
    const loss = byExchange.get(exchange);
    if (loss === undefined) return;
    byExchange.delete(exchange);
    onLoss(loss);
  }

  return {
    add,
    tell,
    tellAll() {
      for (const exchange of byExchange.keys()) tell(exchange);
      if (whole !== undefined) onLoss(whole);
      whole = undefined;
    },
  };
}

function plus(before: HttpLoss | undefined, lost: Lost): HttpLoss {
  if (before === undefined) return { type: 'lost', ...lost };
  return { type: 'lost', ...lost, pieces: before.pieces + lost.pieces, bytes: before.bytes + lost.bytes };
}

/** What an exchange had that was lost from its beginning on: each body is one frame, each piece of a stream one. */
export class LostExchange {
  bytes = 0;
  #frames = 0;
  #isStream = false;
  #hasRequest = false;
  #hasResponse = false;

  /** At least one, so that the loss is seen. */
  get frames(): number {
    return Math.max(1, this.#frames);
  }

  add(event: HttpEvent): void {
    if (event.type === 'response') this.#isStream = mediaTypeOf(event.rawHeaders) === 'text/event-stream';
    if (event.type !== 'request-body' && event.type !== 'response-body') return;
    this.bytes += event.bytes.length;
    const isRequest = event.type === 'request-body';
    const isCounted = isRequest ? this.#hasRequest : this.#hasResponse && !this.#isStream;
    if (!isCounted) this.#frames += 1;
    if (isRequest) this.#hasRequest = true;
    else this.#hasResponse = true;
  }
}
