/**
 * Faults over HTTP: stands between a client and whoever answers it (a proxy, the mock server), by taking the place of a
 * response's own methods, and, where a rule is about what clients say, by holding the body of a POST until it is decided upon.
 * Bodies of JSON wait until they are whole, event streams go event by event, and all else passes as it is. What is recorded is
 * told by what really went on, in place of what was said.
 */

import type { IncomingMessage } from 'node:http';
import type { HttpOpening } from '../../net/opening.ts';
import { decodeBody } from '../../protocol/http/codings.ts';
import { contentCoding } from '../../protocol/http/headers.ts';
import type { HttpEvent } from '../../protocol/wire/http-event.ts';
import type { Faults } from '../faults.ts';
import { createTurns } from '../turns.ts';
import { createCapacity, MOST_BODY_BYTES } from './capacity.ts';
import { bodyFrame } from './frame.ts';
import { HeldRequest } from './request.ts';
import { FaultyResponse } from './response.ts';
import { createTelling, type Telling } from './telling.ts';

export type HttpFaults = {
  /** Takes an exchange before anybody reads its request or writes its response, and lets it go on. */
  open(opening: HttpOpening): void;
  /** What was answered comes in, what went on is passed to `onEvent`. */
  onEvent(event: HttpEvent): Promise<void> | undefined;
};

type HttpFaultsOptions = {
  faults: Faults;
  /** Microseconds since the Unix epoch. */
  now: () => number;
  /** Where something records. */
  onEvent?: (event: HttpEvent) => Promise<void> | undefined;
};

export function createHttpFaults({ faults, now, onEvent = () => undefined }: HttpFaultsOptions): HttpFaults {
  const tellings = new Map<number, Telling>();
  const capacity = createCapacity(faults.letPass);
  const turns = { requests: createTurns(), answers: createTurns() };

  function telling(exchange: number): Telling {
    const one = createTelling(exchange, now, (event) => {
      if (event.type === 'end') tellings.delete(exchange);
      return onEvent(event);
    });
    tellings.set(exchange, one);
    return one;
  }

  function learn(exchange: number, body: Buffer): void {
    const frame = bodyFrame('request', body, exchange, now());
    if (frame !== null) faults.choose(frame);
  }

  return {
    open(opening) {
      const { exchange, request, response } = opening;
      const told = telling(exchange);
      const common = { exchange, faults, now, capacity, telling: told };
      const answer = new FaultyResponse({ ...common, request, response, turns: turns.answers });
      // Before those of whoever answers: what never went on is told before the end is.
      response.once('close', () => answer.leave());
      if (request.method === 'POST' && faults.isAbout('client-to-server'))
        new HeldRequest({
          ...common,
          opening,
          turns: turns.requests,
          tellingOf: telling,
          answer,
        });
      else {
        learnRequest(request, (body) => learn(exchange, body));
        opening.forward();
      }
    },
    onEvent(event) {
      const told = tellings.get(event.exchange);
      return told === undefined ? onEvent(event) : told.answered(event);
    },
  };
}

/** Calls `onBody` with the body of a POST, without its coding, when it is whole, before anybody else learns that. */
function learnRequest(request: IncomingMessage, onBody: (body: Buffer) => void): void {
  if (request.method !== 'POST') return;
  const chunks: Buffer[] = [];
  let size = 0;
  const emit = request.emit.bind(request);
  request.emit = (name: string | symbol, ...values: unknown[]) => {
    if (name === 'data' && size <= MOST_BODY_BYTES) {
      chunks.push(values[0] as Buffer);
      size += chunks.at(-1)?.length ?? 0;
    } else if (name === 'end' && size <= MOST_BODY_BYTES) {
      const coding = contentCoding(request.headers['content-encoding']);
      const body = decodeBody(Buffer.concat(chunks), coding, MOST_BODY_BYTES);
      if (body !== null) onBody(body);
    }
    return emit(name as string, ...values);
  };
}
