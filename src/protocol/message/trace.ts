/** The trace that a message, or an HTTP request, was part of, as its sender wrote it: W3C Trace Context, sections 3.2 and 3.3. */

export type TraceContext = { traceId: string; spanId: string };

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-|$)/;

/** Null: there is none, or none that is valid (a receiver then begins a trace of its own, as the text asks). */
export function readTraceparent(text: string | null | undefined): TraceContext | null {
  const [, traceId, spanId] = TRACEPARENT.exec(text?.trim() ?? '') ?? [];
  return traceId === undefined || spanId === undefined ? null : { traceId, spanId };
}
