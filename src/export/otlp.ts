/**
 * A session for OpenTelemetry: spans and metrics in the JSON of OTLP, a line for each request that a collector takes (the
 * specification's "OpenTelemetry Protocol File Exporter").
 */
import { type ExchangeRow, eachExchange } from '../store/exchange-reader.ts';
import type { Store } from '../store/open.ts';
import type { SessionRow } from '../store/reader.ts';
import { sessionDetails } from '../store/session-details.ts';
import type { WriteOptions } from './formats.ts';
import { networkFacts, operationFacts, resourceFacts, SCHEMA_URL, serverFacts } from './otlp-facts.ts';
import {
  createDurations,
  type Durations,
  type Metric,
  operationMetrics,
  sessionMetrics,
} from './otlp-metrics.ts';
import { prepareSpan, type Span } from './otlp-span.ts';
import { attributesOf } from './otlp-values.ts';

/** So many spans make a line: what collectors take in one request without a change of their settings. */
const SPANS = 512;

type Asker = ExchangeRow['askedBy'];

export function* writeOtlp(
  store: Store,
  session: SessionRow,
  { only, onFrame, withArguments = false }: WriteOptions,
): Generator<string> {
  const calledBy = prepareSpan(store, session, withArguments);
  const { tapedeck } = sessionDetails(store, session.number);
  const origins: Record<Asker, Origin> = {
    client: originOf(session, 'client', tapedeck),
    server: originOf(session, 'server', tapedeck),
  };
  const spans: Record<Asker, Span[]> = { client: [], server: [] };
  const until = session.endedAt ?? Date.now() * 1000;
  const durations: Record<Asker, Durations> = {
    client: createDurations(session.startedAt, until),
    server: createDurations(session.startedAt, until),
  };
  let count = 0;
  for (const row of eachExchange(store, session, only)) {
    const { span, httpVersion } = calledBy(row);
    const waiting = spans[row.askedBy];
    waiting.push(span);
    if (row.latency !== null) {
      const server = row.askedBy === 'client' ? serverFacts(session) : {};
      const facts = { ...operationFacts(row), ...networkFacts(session, httpVersion), ...server };
      durations[row.askedBy].add(facts, row.latency);
    }
    if (waiting.length === SPANS) yield spanLine(origins[row.askedBy], waiting.splice(0));
    count += 1;
    onFrame(count);
  }
  for (const asker of ['client', 'server'] as const)
    if (spans[asker].length > 0) yield spanLine(origins[asker], spans[asker]);
  yield* metricLine(origins.client, [...operationMetrics(durations.client), ...sessionMetrics(session)]);
  yield* metricLine(origins.server, operationMetrics(durations.server));
}

/** Who sent it, and the tapedeck that saw it. */
type Origin = { resource: object; scope: object };

function originOf(session: SessionRow, asker: Asker, version: string): Origin {
  return {
    resource: { attributes: attributesOf(resourceFacts(session, asker)) },
    scope: { name: 'mcp-tapedeck', version },
  };
}

function spanLine({ resource, scope }: Origin, spans: readonly Span[]): string {
  const scopeSpans = [{ scope, spans, schemaUrl: SCHEMA_URL }];
  return `${JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] })}\n`;
}

function* metricLine({ resource, scope }: Origin, metrics: readonly Metric[]): Generator<string> {
  if (metrics.length === 0) return;
  const scopeMetrics = [{ scope, metrics, schemaUrl: SCHEMA_URL }];
  yield `${JSON.stringify({ resourceMetrics: [{ resource, scopeMetrics }] })}\n`;
}
