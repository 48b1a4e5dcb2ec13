/**
 * A session for OpenTelemetry: spans and metrics in the JSON of OTLP, a line for each request that a collector takes (the
 * specification's "OpenTelemetry Protocol File Exporter").
 */

import type { Store } from '../../store/file/open.ts';
import { type ExchangeRow, eachExchange, eachNotification } from '../../store/read/exchanges.ts';
import { type SessionRow, sessionDetails } from '../../store/read/sessions.ts';
import type { WriteOptions } from '../format.ts';
import { attributesOf, resourceFacts, SCHEMA_URL } from './facts.ts';
import { createDurations, type Durations, type Metric, operationMetrics, sessionMetrics } from './metrics.ts';
import { type MeasuredSpan, type OtlpSpan, prepareSpans } from './span.ts';

/** So many spans make a line: what collectors take in one request without a change of their settings. */
const SPANS = 512;

type Sender = ExchangeRow['askedBy'];

export function* writeOtlp(
  store: Store,
  session: SessionRow,
  { only, onFrame, withArguments = false }: WriteOptions,
): Generator<string> {
  const told = prepareSpans(store, session, withArguments);
  const { tapedeck } = sessionDetails(store, session.number);
  const origins: Record<Sender, Origin> = {
    client: originOf(session, 'client', tapedeck),
    server: originOf(session, 'server', tapedeck),
  };
  const spans: Record<Sender, OtlpSpan[]> = { client: [], server: [] };
  const until = session.endedAt ?? Date.now() * 1000;
  const durations: Record<Sender, Durations> = {
    client: createDurations(session.startedAt, until),
    server: createDurations(session.startedAt, until),
  };

  function* take(sender: Sender, { span, facts, duration }: MeasuredSpan): Generator<string> {
    const waiting = spans[sender];
    waiting.push(span);
    if (duration !== null) durations[sender].add(facts, duration);
    if (waiting.length === SPANS) yield spanLine(origins[sender], waiting.splice(0));
  }

  let count = 0;
  for (const row of eachExchange(store, session, only)) {
    yield* take(row.askedBy, told.ofRequest(row));
    count += 1;
    onFrame(count);
  }
  for (const row of eachNotification(store, session.number, only))
    yield* take(row.sentBy, told.ofNotification(row));
  for (const sender of ['client', 'server'] as const)
    if (spans[sender].length > 0) yield spanLine(origins[sender], spans[sender]);
  yield* metricLine(origins.client, [...operationMetrics(durations.client), ...sessionMetrics(session)]);
  yield* metricLine(origins.server, operationMetrics(durations.server));
}

/** Who sent it, and the tapedeck that saw it. */
type Origin = { resource: object; scope: object };

function originOf(session: SessionRow, sender: Sender, version: string): Origin {
  return {
    resource: { attributes: attributesOf(resourceFacts(session, sender)) },
    scope: { name: 'mcp-tapedeck', version },
  };
}

function spanLine({ resource, scope }: Origin, spans: readonly OtlpSpan[]): string {
  const scopeSpans = [{ scope, spans, schemaUrl: SCHEMA_URL }];
  return `${JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] })}\n`;
}

function* metricLine({ resource, scope }: Origin, metrics: readonly Metric[]): Generator<string> {
  if (metrics.length === 0) return;
  const scopeMetrics = [{ scope, metrics, schemaUrl: SCHEMA_URL }];
  yield `${JSON.stringify({ resourceMetrics: [{ resource, scopeMetrics }] })}\n`;
}
