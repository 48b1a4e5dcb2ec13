import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * One HTTP exchange before anybody has read its request or written its response. Whoever is given it calls `forward` or `leave`,
 * once, at any time.
 */
export type HttpOpening = {
  /** As its events name it. */
  exchange: number;
  request: IncomingMessage;
  response: ServerResponse;
  /** Lets it be answered. */
  forward(): void;
  /** It is over, and never was forwarded. */
  leave(): void;
  /** Another exchange, which no client has asked for. */
  another(request: IncomingMessage, response: ServerResponse): HttpOpening;
};
