/** HTTP events straight into a real store, as the writer's thread would put them there. */

import { readFrameRule } from '../../src/inspect/filter/frame-rule.ts';
import { PLAIN_PROFILE, type RedactionProfile } from '../../src/protocol/redact/profile.ts';
import type { HttpEvent } from '../../src/protocol/wire/http-event.ts';
import type { SessionEnd } from '../../src/store/file/columns.ts';
import { openStore, type Store } from '../../src/store/file/open.ts';
import { createBatcher, eachItem } from '../../src/store/record/batch.ts';
import { appendHttpItem, type HttpItem } from '../../src/store/record/http-items.ts';
import { createIntake, type Intake } from '../../src/store/record/intake.ts';
import { createMetaFor } from '../../src/store/sample/meta-for.ts';
import { createSampler, type SamplingRules } from '../../src/store/sample/sampling.ts';
import { tempStore } from './tapedeck.ts';

export const STOPPED: SessionEnd = {
  at: 9_000_000,
  reason: 'stopped',
  exitCode: null,
  signal: null,
  clientClosedAt: null,
  serverClosedAt: null,
};

export type Recording = {
  db: string;
  store: Store;
  intake: Intake;
  feed(...news: HttpItem[]): void;
  /** Stores what is whole, and indexes it; `withHeld`, what is not whole too. */
  save(withHeld?: boolean): void;
  /** Lets everything come out, and ends the sessions. */
  close(): Promise<void>;
  all<T = Record<string, unknown>>(sql: string): T[];
  /** What the recorder's user was told. */
  notices: readonly string[];
  /** How often the intake said that it has something. */
  news(): number;
};

export function startRecording({
  target = 'http://127.0.0.1/mcp',
  maxFrameBytes = 1024 * 1024,
  redaction = PLAIN_PROFILE as RedactionProfile | null,
  sampling = null as SamplingRules | null,
  metaFor = [] as readonly string[],
} = {}): Recording {
  const db = tempStore();
  const store = openStore(db);
  const known = { name: 'n', labels: [['k', 'v']], basis: 'stateless', transport: 'http', target } as const;
  const nothing = { command: null, cwd: null, at: 1, tapedeck: '0.0.0' };
  const notices: string[] = [];
  let news = 0;
  const intake = createIntake(
    { ...known, ...nothing, pid: process.pid, parentPid: process.ppid },
    maxFrameBytes,
    redaction && metaFor.length > 0 ? { ...redaction, metaFor } : redaction,
    () => {
      news += 1;
    },
    (text) => void notices.push(text),
    {
      sampler: sampling && createSampler(sampling),
      metaFor: metaFor.length > 0 ? createMetaFor(readFrameRule(metaFor)) : null,
    },
  );
  intake.open(store);
  const batcher = createBatcher((batch) => eachItem(batch, intake.framer.feed));

  function save(withHeld = false): void {
    intake.save(withHeld);
    intake.confirm();
    while (!intake.index(1000));
  }

  return {
    db,
    store,
    intake,
    notices,
    feed(...some) {
      for (const one of some) appendHttpItem(batcher.append, one);
      batcher.flush();
    },
    save,
    async close() {
      await intake.framer.finish();
      save();
      intake.end(STOPPED);
      while (!intake.index(1000));
    },
    all: <T>(sql: string) => store.prepare<[], T>(sql).all(),
    news: () => news,
  };
}

type Exchange = {
  method?: string;
  path?: string;
  headers?: readonly string[];
  body?: string | Buffer | readonly (string | Buffer)[];
  at?: number;
};
type Answer = {
  status?: number;
  headers?: readonly string[];
  body?: string | Buffer | readonly (string | Buffer)[];
  at?: number;
};

export const JSON_TYPE = ['Content-Type', 'application/json'];
export const EVENT_STREAM = ['Content-Type', 'text/event-stream'];

/** A request, up to its end. */
export function asked(
  exchange: number,
  { method = 'POST', path = '/mcp', headers = JSON_TYPE, body = [], at = exchange * 1000 }: Exchange = {},
): HttpEvent[] {
  const head = { httpVersion: '1.1', rawHeaders: headers, edits: [], clientAddress: '127.0.0.1:5' };
  return [
    { type: 'request', exchange, at, method, path, ...head },
    ...piecesOf(body).map((bytes) => ({ type: 'request-body' as const, exchange, at: at + 1, bytes })),
    { type: 'request-end', exchange, at: at + 2, rawTrailers: [], isComplete: true },
  ];
}

/** An answer, up to before its end. */
export function answered(
  exchange: number,
  { status = 200, headers = JSON_TYPE, body = [], at = exchange * 1000 + 10 }: Answer = {},
): HttpEvent[] {
  return [
    { type: 'response', exchange, at, status, statusMessage: 'Text', rawHeaders: headers, edits: [] },
    ...piecesOf(body).map((bytes, i) => ({
      type: 'response-body' as const,
      exchange,
      at: at + 1 + i,
      bytes,
    })),
  ];
}

export function ended(exchange: number, how: Partial<Extract<HttpEvent, { type: 'end' }>> = {}): HttpEvent {
  const whole = { closedBy: 'server', error: null, isComplete: true, rawTrailers: [] } as const;
  return { type: 'end', exchange, at: exchange * 1000 + 500, ...whole, ...how };
}

export function leftByClient(exchange: number): HttpEvent {
  return ended(exchange, {
    closedBy: 'client',
    error: 'the client closed the connection',
    isComplete: false,
  });
}

function piecesOf(body: string | Buffer | readonly (string | Buffer)[]): Buffer[] {
  const pieces = typeof body === 'string' || Buffer.isBuffer(body) ? [body] : body;
  return pieces.map((piece) => Buffer.from(piece as string));
}

export function rpc(message: object): string {
  return JSON.stringify({ jsonrpc: '2.0', ...message });
}

export function eventOf(message: object, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}data: ${rpc(message)}\n\n`;
}
