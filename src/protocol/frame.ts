/**
 * The nouns of the wire. A chunk is what one read gave; a frame is one unit of the protocol as it passed
 * (a stdio line). Both carry verbatim bytes and a time that was stamped once, at the edge, in capture.
 */

export type Direction = 'client-to-server' | 'server-to-client';

export type Channel = 'stdin' | 'stdout' | 'stderr';

/** Every channel in a fixed order: its index stands for it where chunks travel between threads. */
export const CHANNELS = ['stdin', 'stdout', 'stderr'] as const satisfies readonly Channel[];

/** Bytes of one read. `at` is microseconds since the Unix epoch, when the read returned. */
export type Chunk = {
  channel: Channel;
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
};

export type LineEnd = '' | '\n' | '\r\n';

/**
 * `line`: one stdio line. `lsp-header` and `lsp-body`: a peer that frames like the Language Server Protocol
 * (`Content-Length: n`, blank line, n bytes), which MCP does not allow but some servers do.
 */
export type FramePart = 'line' | 'lsp-header' | 'lsp-body';

export function directionOf(channel: Channel): Direction {
  return channel === 'stdin' ? 'client-to-server' : 'server-to-client';
}

export function opposite(direction: Direction): Direction {
  return direction === 'client-to-server' ? 'server-to-client' : 'client-to-server';
}
