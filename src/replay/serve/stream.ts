/**
 * Keeps the event streams of one client, so that a client that lost a stream can resume it (MCP specification 2025-11-25,
 * basic/transports, "Resumability and Redelivery"). A stream outlives its response: another one is attached after a loss.
 * The latest events with ids are kept, within bounds.
 */
import type { ServerResponse } from 'node:http';

export type SseStream = {
  /** Sends to this response from now on, and ends the one before. Its head must have been sent. */
  attach(response: ServerResponse): void;
  send(json: Buffer, hasId: boolean): void;
  /** Sends an event without a message, whose id the client can resume from. */
  prime(retry: string | null): void;
  /** Ends the response; the client resumes for the rest. Does nothing where no event had an id yet, so that no client could. */
  pause(): void;
  /** Ends the stream: nothing more comes. */
  end(): void;
  isAttached(): boolean;
};

export type SseStreams = {
  /** `waits`: messages wait for the next response while none is attached. */
  open(options: { waits: boolean }): SseStream;
  /** The stream that sent this event, from there on; undefined where later events were forgotten. */
  resumeAt(eventId: string): { attach(response: ServerResponse): void } | undefined;
  endAll(): void;
};

type BufferedEvent = { stream: Stream; position: number; bytes: Buffer };

type PendingEvent = { json: Buffer; hasId: boolean };

const MAX_KEPT_EVENTS = 10_000;

const MAX_KEPT_BYTES = 4 * 1024 * 1024;

const EVENT = Buffer.from('event: message\n');

const DATA = Buffer.from('data: ');

const END = Buffer.from('\n\n');

export function createSseStreams(): SseStreams {
  const streams = new Map<string, Stream>();
  const kept: BufferedEvent[] = [];
  let keptBytes = 0;
  let count = 0;

  function keep(stream: Stream, position: number, bytes: Buffer): void {
    kept.push({ stream, position, bytes });
    keptBytes += bytes.length;
    while (kept.length > MAX_KEPT_EVENTS || keptBytes > MAX_KEPT_BYTES) {
      const [oldest] = kept.splice(0, 1);
      if (oldest === undefined) return;
      keptBytes -= oldest.bytes.length;
      oldest.stream.lostUpTo = oldest.position;
      forgetIfOver(oldest.stream);
    }
  }

  function forgetIfOver(stream: Stream): void {
    if (stream.isOver && stream.lostUpTo === stream.position) streams.delete(stream.name);
  }

  return {
    open({ waits }) {
      count += 1;
      const stream = new Stream(String(count), waits, keep, forgetIfOver);
      streams.set(stream.name, stream);
      return stream;
    },
    resumeAt(eventId) {
      const cut = eventId.lastIndexOf('/');
      const stream = streams.get(eventId.slice(0, cut));
      const position = Number(eventId.slice(cut + 1));
      if (stream === undefined || !isPosition(position, stream)) return undefined;
      const after = kept.filter((event) => event.stream === stream && event.position > position);
      return {
        attach: (response) =>
          stream.resume(
            response,
            after.map(({ bytes }) => bytes),
          ),
      };
    },
    endAll() {
      for (const stream of streams.values()) stream.end();
    },
  };
}

function isPosition(position: number, { lostUpTo, position: last }: Stream): boolean {
  return Number.isInteger(position) && position >= Math.max(1, lostUpTo) && position <= last;
}

class Stream implements SseStream {
  readonly name: string;
  /** The number of the last event with an id. */
  position = 0;
  lostUpTo = 0;
  isOver = false;
  readonly #waits: boolean;
  readonly #keep: (stream: Stream, position: number, bytes: Buffer) => void;
  readonly #onOver: (stream: Stream) => void;
  #response: ServerResponse | null = null;
  #waiting: PendingEvent[] = [];
  #waitingBytes = 0;

  constructor(
    name: string,
    waits: boolean,
    keep: (stream: Stream, position: number, bytes: Buffer) => void,
    onOver: (stream: Stream) => void,
  ) {
    this.name = name;
    this.#waits = waits;
    this.#keep = keep;
    this.#onOver = onOver;
  }

  attach(response: ServerResponse): void {
    this.#response?.end();
    this.#response = response;
    response.on('close', () => {
      if (this.#response === response) this.#response = null;
    });
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    for (const { json, hasId } of waiting) this.send(json, hasId);
    if (this.isOver) response.end();
  }

  resume(response: ServerResponse, missed: readonly Buffer[]): void {
    for (const bytes of missed) response.write(bytes);
    this.attach(response);
  }

  send(json: Buffer, hasId: boolean): void {
    if (this.isOver) return;
    if (this.#response === null && this.#waits) this.#wait(json, hasId);
    else this.#write([EVENT, this.#id(hasId), ...dataLines(json), END], hasId);
  }

  prime(retry: string | null): void {
    const retryLine = retry === null ? '' : `retry: ${retry}\n`;
    this.#write([this.#id(true), Buffer.from(`${retryLine}data: \n\n`)], true);
  }

  pause(): void {
    if (this.position === 0) return;
    this.#response?.end();
    this.#response = null;
  }

  end(): void {
    this.isOver = true;
    this.#response?.end();
    this.#onOver(this);
  }

  isAttached(): boolean {
    return this.#response !== null;
  }

  #id(hasId: boolean): Buffer {
    if (!hasId) return NO_BYTES;
    this.position += 1;
    return Buffer.from(`id: ${this.name}/${this.position}\n`);
  }

  #write(pieces: readonly Buffer[], hasId: boolean): void {
    const bytes = Buffer.concat(pieces);
    if (hasId) this.#keep(this, this.position, bytes);
    this.#response?.write(bytes);
  }

  #wait(json: Buffer, hasId: boolean): void {
    this.#waiting.push({ json, hasId });
    this.#waitingBytes += json.length;
    while (this.#waiting.length > MAX_KEPT_EVENTS || this.#waitingBytes > MAX_KEPT_BYTES) {
      this.#waitingBytes -= this.#waiting.shift()?.json.length ?? 0;
    }
  }
}

const NO_BYTES = Buffer.alloc(0);

/** A message of several lines takes as many `data` fields. */
function dataLines(json: Buffer): Buffer[] {
  if (!json.includes(0x0a) && !json.includes(0x0d)) return [DATA, json];
  const lines = json.toString('latin1').split(/\r\n|\r|\n/);
  return lines.map((line, i) => Buffer.from(`${i === 0 ? '' : '\n'}data: ${line}`, 'latin1'));
}
