/**
 * The body of a POST, held until it is decided upon: only then whoever answers sees the request. Node's parser hands over a body
 * by `push`, whose place is taken here, so that the request itself stays the same object. A body that finds no room, or that is
 * not in the coding that it names, goes on as it comes.
 */

import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { clearTimeout, setTimeout } from 'node:timers';
import type { HttpOpening } from '../../net/opening.ts';
import { decodeBody } from '../../protocol/http/codings.ts';
import { contentCoding } from '../../protocol/http/headers.ts';
import { parseMessages } from '../../protocol/message/message.ts';
import { NO_BYTES, type Piece } from '../effect.ts';
import { type Fault, type Faults, markOf } from '../faults.ts';
import type { Turns } from '../turns.ts';
import { type Capacity, MOST_BODY_BYTES, type Share } from './capacity.ts';
import { bodyFrame } from './frame.ts';
import { setBodyHead } from './head.ts';
import type { FaultyResponse } from './response.ts';
import type { Telling } from './telling.ts';

type HeldRequestOptions = {
  exchange: number;
  opening: HttpOpening;
  faults: Faults;
  /** Microseconds since the Unix epoch. */
  now: () => number;
  turns: Turns;
  capacity: Capacity;
  telling: Telling;
  /** That of an exchange which begins here. */
  tellingOf: (exchange: number) => Telling;
  /** What its client hears of it. */
  answer: Pick<FaultyResponse, 'breakOff' | 'stayOpen'>;
};

/** A message that waits, in the coding in which it came and without it. */
type Said = { fault: Fault; body: Buffer; json: Buffer };

export class HeldRequest {
  readonly #options: HeldRequestOptions;
  readonly #share: Share;
  #chunks: Buffer[] = [];
  /** What has a fault and has not gone on. */
  #said: Said | null = null;
  /** `held`: nobody has seen it; `gone`: it went on; `kept`: it never will. */
  #state: 'held' | 'gone' | 'kept' = 'held';
  #isAccepted = false;
  #giveUp = () => {};
  #timer: NodeJS.Timeout | undefined;

  constructor(options: HeldRequestOptions) {
    this.#options = options;
    this.#share = options.capacity.share();
    const { request, response } = options.opening;
    request.push = (bytes: Buffer | null) => {
      if (bytes !== null) return this.#take(bytes);
      this.#decide(Buffer.concat(this.#chunks));
      return false;
    };
    // Whoever answers would say so; but nobody does before the body is there.
    if (/^100-continue$/i.test(request.headers.expect ?? '')) response.writeContinue();
    const leave = () => this.#leave();
    response.once('close', leave);
    // A response that waits for others of its connection is not told of its end.
    request.socket.setMaxListeners(0);
    request.socket.once('close', leave);
    response.once('close', () => request.socket.off('close', leave));
  }

  #take(bytes: Buffer): boolean {
    this.#chunks.push(bytes);
    if (this.#share.take(bytes.length)) return true;
    const { request } = this.#options.opening;
    this.#forward();
    let hasRoom = true;
    for (const chunk of this.#chunks) hasRoom = request.push(chunk);
    this.#chunks = [];
    return hasRoom;
  }

  /** Lets the request go on as it is; its body is not held any more. */
  #forward(): void {
    const { opening } = this.#options;
    this.#state = 'gone';
    this.#share.free();
    Reflect.deleteProperty(opening.request, 'push');
    opening.forward();
  }

  #decide(body: Buffer): void {
    const { exchange, faults, now, opening, turns } = this.#options;
    if (this.#state !== 'held') return;
    const coding = contentCoding(opening.request.headers['content-encoding']);
    const json = decodeBody(body, coding, MOST_BODY_BYTES);
    const frame = json === null ? null : bodyFrame('request', json, exchange, now());
    const fault = frame === null ? null : faults.choose(frame);
    if (json === null || fault === null) {
      this.#send([{ bytes: body, afterMs: 0 }]);
      return;
    }
    const said = { fault, body, json };
    const { copies, waitMs, behind } = fault.effect;
    this.#said = said;
    if (copies === 0) this.#keepBack(said);
    else if (waitMs > 0) this.#timer = setTimeout(() => this.#sendFaulty(said), waitMs);
    else if (behind > 0) this.#giveUp = turns.behind(behind, () => this.#sendFaulty(said));
    else this.#sendFaulty(said);
  }

  #sendFaulty({ fault, body, json }: Said): void {
    const { opening, telling } = this.#options;
    const { chosen, effect } = fault;
    const { payload, cut, copies } = effect;
    const bytes = payload ?? body;
    if (payload !== null) setBodyHead(opening.request, payload.length);
    const again = copies === 2 ? copyOf(opening.request, body) : null;
    // Of two equal ones, the second is what nobody has said.
    if (again === null)
      telling.asked(payload ?? json, markOf(chosen, effect, payload === null ? null : json));
    this.#send(cut?.(bytes) ?? [{ bytes, afterMs: 0 }]);
    if (again === null) return;
    const copy = opening.another(again.request, again.response);
    this.#options.tellingOf(copy.exchange).asked(json, markOf(chosen, effect, NO_BYTES));
    copy.forward();
  }

  #send(pieces: readonly Piece[]): void {
    this.#said = null;
    this.#forward();
    this.#push(pieces);
  }

  #push([piece, ...rest]: readonly Piece[]): void {
    const { opening, turns } = this.#options;
    if (opening.request.destroyed) return;
    if (piece === undefined) {
      opening.request.push(null);
      turns.passed();
      return;
    }
    const push = () => {
      if (piece.bytes.length > 0) opening.request.push(piece.bytes);
      this.#push(rest);
    };
    if (piece.afterMs === 0) push();
    else this.#timer = setTimeout(push, piece.afterMs);
  }

  /** A request is never answered then; anything else is accepted, as what a server gets. */
  #keepBack({ fault: { chosen, effect }, json }: Said): void {
    const { answer, opening, telling } = this.#options;
    const { besides } = effect;
    this.#state = 'kept';
    this.#share.free();
    telling.unsent(opening.request, [], markOf(chosen, effect, json));
    if (besides !== null) answer.breakOff(besides === 'reset');
    else if (parseMessages(json).some(({ kind }) => kind === 'request')) answer.stayOpen();
    else {
      const headers = ['Content-Length', '0'];
      this.#isAccepted = true;
      telling.accepted(headers);
      opening.response.writeHead(202, headers);
      opening.response.end();
    }
  }

  /** The connection is closed, or the answer is whole. */
  #leave(): void {
    const { opening, telling } = this.#options;
    clearTimeout(this.#timer);
    this.#giveUp();
    if (this.#state === 'gone') return;
    if (this.#state === 'held') {
      const said = this.#said;
      this.#share.free();
      if (said === null) telling.unsent(opening.request, this.#chunks, null);
      else telling.unsent(opening.request, [], markOf(said.fault.chosen, said.fault.effect, said.json));
    }
    this.#state = 'gone';
    this.#chunks = [];
    telling.ended(this.#isAccepted);
    opening.leave();
  }
}

/**
 * A request that no client has sent, and whose answer nobody gets. `body`: as it went on the wire. It lasts no longer than the
 * connection of the first.
 */
function copyOf(
  first: IncomingMessage,
  body: Buffer,
): { request: IncomingMessage; response: ServerResponse } {
  const request = new IncomingMessage(first.socket);
  const { method, url, httpVersion, httpVersionMajor, httpVersionMinor, rawTrailers } = first;
  Object.assign(request, { method, url, httpVersion, httpVersionMajor, httpVersionMinor, rawTrailers });
  request.rawHeaders = [...first.rawHeaders];
  request.headers = { ...first.headers };
  request.complete = true;
  request.push(body);
  request.push(null);
  const response = new ServerResponse(request);
  const sink = new Duplex({ read() {}, write: (_bytes, _encoding, callback) => callback() });
  response.assignSocket(sink as Socket);
  const leave = () => sink.destroy();
  response.once('finish', leave);
  first.socket.once('close', leave);
  sink.once('close', () => first.socket.off('close', leave));
  return { request, response };
}
