/**
 * The nouns of the wire. A chunk is the result of one read; a frame is one unit of the protocol as it passed (a stdio line,
 * an HTTP body, an event of a stream). Both carry verbatim bytes and a time that was stamped once, at the edge, in capture.
 */

export type Direction = 'client-to-server' | 'server-to-client';

/** `request` and `response` are HTTP bodies, `sse` is an event of a response that is an event stream. */
export type Channel = StdioChannel | HttpChannel;

export type StdioChannel = 'stdin' | 'stdout' | 'stderr';

export type HttpChannel = 'request' | 'response' | 'sse';

/** Every channel of stdio in a fixed order: its index stands for it where chunks travel between threads. */
export const CHANNELS = ['stdin', 'stdout', 'stderr'] as const satisfies readonly StdioChannel[];

/** Bytes of one read. `at` is microseconds since the Unix epoch, when the read returned. */
export type Chunk = {
  channel: StdioChannel;
  at: number;
  bytes: Buffer;
};

/**
 * One unit as it passed. `payload` lacks the line end, which stands in `lineEnd`, so both together are the
 * bytes of the wire. `size` is the payload's length on the wire; it exceeds `payload.length` only where
 * `truncated`. `at` is when the frame's last byte was read, in microseconds since the Unix epoch.
 */
export type Frame = {
  channel: Channel;
  at: number;
  payload: Buffer;
  lineEnd: LineEnd;
  size: number;
  truncated: boolean;
  part: FramePart;
  /** Null for stdio. */
  http: FrameHttp | null;
  /** The rules that replaced something in `payload`, which may then be longer or shorter than `size`. */
  redacted?: readonly string[];
  /** Which client it came from or went to, where a session has several: from 2 on. Missing for the first, or only, one. */
  client?: number;
  /** What was done to it on purpose. */
  fault?: FrameFault;
};

/**
 * What `--fault` did to a frame: the number and the text of the rule, and its action with the values that were drawn. `original`
 * is what the sender had sent, where something else, or nothing, went on; empty for what nobody had sent; null where the
 * bytes went on as they were.
 */
export type FrameFault = { number: number; rule: string; action: string; original: Buffer | null };

/** What the sender of a frame had sent. */
export function sentBytes({ payload, fault }: Pick<Frame, 'payload' | 'fault'>): Buffer {
  return fault?.original ?? payload;
}

/** Where a frame does not name its client. */
export const FIRST_CLIENT = 1;

export type LineEnd = '' | '\n' | '\r\n';

/**
 * `line`: one stdio line. `lsp-header` and `lsp-body`: a peer that frames like the Language Server Protocol
 * (`Content-Length: n`, blank line, n bytes), which MCP does not allow but some servers do.
 *
 * `reserialised`: a message that an SDK's transport handed over as an object, as the line that was made of it here.
 *
 * `body`: an HTTP body that is meant to hold messages, without its content coding. `foreign-body`: one that is not (OAuth,
 * an error page, `Accepted`). `event`: an SSE block that holds a message, with the empty line that ends it. `block`: an
 * SSE block that holds none (a comment, a priming event, `endpoint`).
 */
export type FramePart =
  | 'line'
  | 'lsp-header'
  | 'lsp-body'
  | 'reserialised'
  | 'body'
  | 'foreign-body'
  | 'event'
  | 'block';

/** What a frame that came by HTTP has besides. */
export type FrameHttp = {
  /** Number of its HTTP exchange within the session. */
  exchange: number;
  marks: readonly HttpMark[];
  /** What the sender had sent, where a permitted edit made `payload` differ. */
  original: Buffer | null;
  /** Of the whole body or event as it passed, where only its beginning is kept; lower-case hexadecimal. */
  sha256: string | null;
};

/**
 * What is odd about a body or an event. `undecoded`: still in its content coding, which is unknown or broken.
 * `wrong-type`: messages under another content type than theirs. `incomplete`: it broke off. `replayed`: an event that
 * had come before, sent again to a client that resumed its stream.
 */
export type HttpMark = 'undecoded' | 'wrong-type' | 'incomplete' | 'replayed';

export function directionOf(channel: Channel): Direction {
  return channel === 'stdin' || channel === 'request' ? 'client-to-server' : 'server-to-client';
}

export function opposite(direction: Direction): Direction {
  return direction === 'client-to-server' ? 'server-to-client' : 'client-to-server';
}
