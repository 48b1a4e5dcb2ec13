/** What a collector gets: the JSON that OpenTelemetry's own packages write of the same spans and metrics, by the conventions' names. */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { heavyRequire, runsHeavy } from '../../support/heavy.ts';
import { ROOT, tapedeckInProcess, tempFolder } from '../../support/tapedeck.ts';

type Value = string | number;
type Attribute = { key: string; value: { stringValue?: string; intValue?: number } };
type Span = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  traceState?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attribute[];
  links?: { traceId: string; spanId: string }[];
  status: { code?: number; message?: string };
};
type Point = {
  attributes: Attribute[];
  startTimeUnixNano: string;
  timeUnixNano: string;
  count: number;
  sum: number;
  min: number;
  max: number;
  bucketCounts: number[];
  explicitBounds: number[];
};
type Scope = { name: string; version: string };
type Line = {
  resourceSpans?: {
    resource: { attributes: Attribute[] };
    scopeSpans: { scope: Scope; spans: Span[]; schemaUrl: string }[];
  }[];
  resourceMetrics?: {
    resource: { attributes: Attribute[] };
    scopeMetrics: {
      scope: Scope;
      schemaUrl: string;
      metrics: { name: string; description: string; unit: string; histogram: { dataPoints: Point[] } }[];
    }[];
  }[];
};

const RECORDINGS = ['everything-stdio', 'everything-http', 'modern-http'];

async function imported(file: string): Promise<string> {
  const db = join(tempFolder(), 'r.db');
  const { code, stderr } = await tapedeckInProcess(['import', file, '--db', db]);
  expect(code, stderr).toBe(0);
  return db;
}

async function otlpOf(db: string, ...more: string[]): Promise<Line[]> {
  const { code, stdout, stderr } = await tapedeckInProcess([
    'export',
    '--format',
    'otlp',
    '--db',
    db,
    ...more,
  ]);
  expect(code, stderr).toBe(0);
  return stdout
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
}

/** A session of these messages: `>` of the client, `<` of the server. */
async function conversed(...lines: string[]): Promise<string> {
  const [header = ''] = readFileSync(join(ROOT, 'recordings/everything-stdio.ndjson'), 'utf8').split('\n', 1);
  const frames = lines.map((line) => {
    const channel = line.startsWith('>') ? 'stdin' : 'stdout';
    return JSON.stringify({ ms: 10, channel, message: JSON.parse(line.slice(1)) });
  });
  const file = join(tempFolder(), 'flow.ndjson');
  writeFileSync(file, [header, ...frames, ''].join('\n'));
  return await imported(file);
}

function spansOf(lines: readonly Line[]): Span[] {
  return lines.flatMap(({ resourceSpans = [] }) =>
    resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
  );
}

function facts(attributes: readonly Attribute[]): Record<string, Value> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? '']),
  );
}

function time(nanoseconds: string): [seconds: number, nanoseconds: number] {
  return [Number(BigInt(nanoseconds) / 1_000_000_000n), Number(BigInt(nanoseconds) % 1_000_000_000n)];
}

function officialTraces(line: Line): unknown {
  const { SpanKind, SpanStatusCode } = heavyRequire('@opentelemetry/api');
  const { JsonTraceSerializer } = heavyRequire('@opentelemetry/otlp-transformer');
  const { resourceFromAttributes } = heavyRequire('@opentelemetry/resources');
  const spans = (line.resourceSpans ?? []).flatMap(({ resource: from, scopeSpans }) => {
    // The serializer puts together what has the same objects.
    const resource = resourceFromAttributes(facts(from.attributes));
    return scopeSpans.flatMap(({ scope, spans, schemaUrl }) => {
      const instrumentationScope = { ...scope, schemaUrl };
      return spans.map((span) => {
        const context = (spanId: string) => ({ traceId: span.traceId, spanId, traceFlags: 0 });
        return {
          name: span.name,
          kind: SpanKind.CLIENT,
          spanContext: () => ({
            ...context(span.spanId),
            ...(span.traceState === undefined ? {} : { traceState: { serialize: () => span.traceState } }),
          }),
          ...(span.parentSpanId === undefined ? {} : { parentSpanContext: context(span.parentSpanId) }),
          startTime: time(span.startTimeUnixNano),
          endTime: time(span.endTimeUnixNano),
          duration: [0, 0],
          ended: true,
          status: {
            code: span.status.code === 2 ? SpanStatusCode.ERROR : SpanStatusCode.UNSET,
            ...(span.status.message === undefined ? {} : { message: span.status.message }),
          },
          attributes: facts(span.attributes),
          links: (span.links ?? []).map((link) => ({ context: { ...link, traceFlags: 0 } })),
          events: [],
          resource,
          instrumentationScope,
          droppedAttributesCount: 0,
          droppedEventsCount: 0,
          droppedLinksCount: 0,
        };
      });
    });
  });
  return JSON.parse(Buffer.from(JsonTraceSerializer.serializeRequest(spans) ?? '').toString());
}

function officialMetrics(line: Line): unknown {
  const { JsonMetricsSerializer } = heavyRequire('@opentelemetry/otlp-transformer');
  const { resourceFromAttributes } = heavyRequire('@opentelemetry/resources');
  const { AggregationTemporality, DataPointType, InstrumentType } = heavyRequire(
    '@opentelemetry/sdk-metrics',
  );
  const [from] = line.resourceMetrics ?? [];
  if (from === undefined) throw new Error('no metrics');
  const metrics = {
    resource: resourceFromAttributes(facts(from.resource.attributes)),
    scopeMetrics: from.scopeMetrics.map(({ scope, schemaUrl, metrics }) => ({
      scope: { ...scope, schemaUrl },
      metrics: metrics.map(({ name, description, unit, histogram }) => ({
        descriptor: { name, description, unit, type: InstrumentType.HISTOGRAM, valueType: 1, advice: {} },
        aggregationTemporality: AggregationTemporality.DELTA,
        dataPointType: DataPointType.HISTOGRAM,
        dataPoints: histogram.dataPoints.map((point) => ({
          startTime: time(point.startTimeUnixNano),
          endTime: time(point.timeUnixNano),
          attributes: facts(point.attributes),
          value: {
            count: point.count,
            sum: point.sum,
            min: point.min,
            max: point.max,
            buckets: { boundaries: point.explicitBounds, counts: point.bucketCounts },
          },
        })),
      })),
    })),
  };
  return JSON.parse(Buffer.from(JsonMetricsSerializer.serializeRequest(metrics) ?? '').toString());
}

test.runIf(runsHeavy).each(RECORDINGS)(
  '%s is what the official packages write of the same spans and metrics',
  async (name) => {
    const lines = await otlpOf(await imported(join(ROOT, 'recordings', `${name}.ndjson`)));
    expect(spansOf(lines).length).toBeGreaterThan(5);
    let metrics = 0;
    for (const line of lines) {
      if (line.resourceSpans !== undefined) expect(officialTraces(line)).toMatchObject(line);
      else {
        expect(officialMetrics(line)).toMatchObject(line);
        metrics += 1;
      }
    }
    expect(metrics).toBeGreaterThan(0);
  },
);

test('spans and metrics have the names of the semantic conventions, and arguments only when asked', async () => {
  const db = await imported(join(ROOT, 'recordings/everything-http.ndjson'));
  const lines = await otlpOf(db);
  const call = spansOf(lines).find(({ name }) => name === 'tools/call echo');
  expect(facts(call?.attributes ?? [])).toEqual({
    'mcp.method.name': 'tools/call',
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'echo',
    'mcp.protocol.version': '2025-11-25',
    'mcp.session.id': expect.stringMatching(/^masked-/),
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    'network.protocol.version': '1.1',
    'server.address': '127.0.0.1',
    'server.port': expect.any(Number),
    'jsonrpc.request.id': expect.any(String),
    'tapedeck.outcome': 'ok',
  });
  const names = lines.flatMap(({ resourceMetrics = [] }) =>
    resourceMetrics.flatMap(({ scopeMetrics }) =>
      scopeMetrics.flatMap(({ metrics }) => metrics.map(({ name, unit }) => `${name} ${unit}`)),
    ),
  );
  expect(names).toEqual(
    expect.arrayContaining(['mcp.client.operation.duration s', 'mcp.client.session.duration s']),
  );
  expect(JSON.stringify(lines)).not.toContain('gen_ai.tool.call');
  const asked = spansOf(await otlpOf(db, '--with-arguments', '--filter', 'tool=echo'));
  expect(asked.map(({ name }) => name)).toEqual(['tools/call echo']);
  const content = facts(asked[0]?.attributes ?? []);
  expect(JSON.parse(String(content['gen_ai.tool.call.arguments']))).toEqual({ message: expect.any(String) });
  expect(JSON.parse(String(content['gen_ai.tool.call.result']))).toMatchObject({
    content: [{ type: 'text' }],
  });
});

test('how a request ended, and the trace that it was part of, are told as the conventions say', async () => {
  const trace = '0af7651916cd43dd8448eb211c80319c';
  const call = (id: number, more = '') =>
    `>{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"t"${more}}}`;
  const peer = (name: string) => `{"name":"${name}","version":"1"}`;
  const db = await conversed(
    `>{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":${peer('c')}}}`,
    `<{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":${peer('s')}}}`,
    call(1, `,"_meta":{"traceparent":"00-${trace}-b7ad6b7169203331-01","tracestate":"a=b"}`),
    '<{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"No such \\"tool\\""}}',
    call(2, ',"_meta":{"traceparent":"00-00000000000000000000000000000000-b7ad6b7169203331-01"}'),
    '<{"jsonrpc":"2.0","id":2,"result":{"isError":true,"content":[]}}',
    call(3),
    '>{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"file:///x"}}',
    '<{"jsonrpc":"2.0","id":4,"result":{"contents":[]}}',
    '<{"jsonrpc":"2.0","id":"q","method":"roots/list"}',
    '>{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}',
  );
  const lines = await otlpOf(db);
  const spans = spansOf(lines);
  const [, failed, refused, unanswered, read, roots] = spans;
  expect(failed).toMatchObject({
    traceId: trace,
    parentSpanId: 'b7ad6b7169203331',
    traceState: 'a=b',
    status: { code: 2, message: 'No such "tool"' },
  });
  expect(BigInt(failed?.endTimeUnixNano ?? 0) - BigInt(failed?.startTimeUnixNano ?? 0)).toBe(10_000_000n);
  expect(facts(failed?.attributes ?? [])).toMatchObject({
    'error.type': '-32602',
    'rpc.response.status_code': '-32602',
    'network.transport': 'pipe',
  });
  expect(refused).not.toHaveProperty('parentSpanId');
  expect(facts(refused?.attributes ?? [])).toMatchObject({ 'error.type': 'tool_error' });
  expect(facts(unanswered?.attributes ?? [])).toMatchObject({ 'error.type': 'unanswered' });
  expect(read).toMatchObject({ name: 'resources/read', status: {} });
  expect(facts(read?.attributes ?? [])).toMatchObject({ 'mcp.resource.uri': 'file:///x' });
  expect(roots?.name).toBe('roots/list');
  // What the server asked is the server's.
  const services = lines.flatMap(({ resourceSpans = [] }) =>
    resourceSpans.map(({ resource }) => facts(resource.attributes)['service.name']),
  );
  expect(services).toEqual(['c', 's']);
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(6);
  expect(await otlpOf(db)).toEqual(lines);
});

test('a notification is a span of who sent it, in the trace of what it belongs to', async () => {
  const trace = '0af7651916cd43dd8448eb211c80319c';
  const parent = (id: string) => `"traceparent":"00-${trace}-${id}-01"`;
  const db = await conversed(
    '>{"jsonrpc":"2.0","method":"notifications/initialized"}',
    `>{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":7,${parent('b7ad6b7169203331')}}}}`,
    '<{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}',
    `>{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"_meta":{${parent('00f067aa0ba902b7')}}}}`,
    '<{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x"}}',
  );
  const lines = await otlpOf(db);
  const spans = new Map(spansOf(lines).map((span) => [span.name, span]));
  const [call, initialized] = [spans.get('tools/call t'), spans.get('notifications/initialized')];
  // Over a stream nothing says that it has come.
  expect(initialized?.endTimeUnixNano).toBe(initialized?.startTimeUnixNano);
  expect(initialized).not.toHaveProperty('parentSpanId');
  expect(facts(initialized?.attributes ?? [])).toEqual({
    'mcp.method.name': 'notifications/initialized',
    'network.transport': 'pipe',
  });
  expect(spans.get('notifications/progress')).toMatchObject({ traceId: trace, parentSpanId: call?.spanId });
  expect(spans.get('notifications/cancelled')).toMatchObject({
    traceId: trace,
    parentSpanId: '00f067aa0ba902b7',
  });
  const updated = spans.get('notifications/resources/updated');
  expect(facts(updated?.attributes ?? [])).toMatchObject({ 'mcp.resource.uri': 'file:///x' });
  expect(updated).not.toHaveProperty('parentSpanId');
  const senders = lines.flatMap(({ resourceSpans = [] }) =>
    resourceSpans.map(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(({ name }) => name))),
  );
  expect(senders).toEqual([
    ['tools/call t', 'notifications/initialized', 'notifications/cancelled'],
    ['notifications/progress', 'notifications/resources/updated'],
  ]);
  expect(new Set(spansOf(lines).map(({ spanId }) => spanId)).size).toBe(5);
  expect(await otlpOf(db)).toEqual(lines);
});

test('a notification that was posted lasts until the status that took it, or failed by it', async () => {
  const recording = readFileSync(join(ROOT, 'recordings/everything-http.ndjson'), 'utf8');
  const refused = join(tempFolder(), 'refused.ndjson');
  writeFileSync(refused, recording.replace('"status":202,"statusText":"Accepted"', '"status":400'));
  const told = await Promise.all(
    [join(ROOT, 'recordings/everything-http.ndjson'), refused].map(async (file) => {
      const lines = await otlpOf(await imported(file));
      return { lines, span: spansOf(lines).find(({ name }) => name === 'notifications/initialized') };
    }),
  );
  const [taken, failed] = told;
  const took = BigInt(taken?.span?.endTimeUnixNano ?? 0) - BigInt(taken?.span?.startTimeUnixNano ?? 0);
  expect(Number(took)).toBeGreaterThan(1_000_000);
  expect(taken?.span?.status).toEqual({});
  expect(failed?.span?.status).toEqual({ code: 2 });
  expect(facts(failed?.span?.attributes ?? [])).toMatchObject({ 'error.type': '400' });
  const points = (taken?.lines ?? []).flatMap(({ resourceMetrics = [] }) =>
    resourceMetrics.flatMap(({ scopeMetrics }) =>
      scopeMetrics.flatMap(({ metrics }) => metrics.flatMap(({ histogram }) => histogram.dataPoints)),
    ),
  );
  const methods = points.map(({ attributes }) => facts(attributes)['mcp.method.name']);
  expect(methods).toContain('notifications/initialized');
  // It came on the stream of a call: nobody answers to that.
  expect(methods).not.toContain('notifications/progress');
});

/** A collector that answers as told, and keeps what it was sent. */
async function startCollector(status: number, answer: string) {
  const got: { path: string | undefined; type: string | undefined; key: unknown; line: string }[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const line = Buffer.concat(pieces).toString();
      got.push({
        path: request.url,
        type: request.headers['content-type'],
        key: request.headers['x-key'],
        line,
      });
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, got };
}

test('a collector gets the same lines, each at its signal, with the headers of the environment', async () => {
  const db = await imported(join(ROOT, 'recordings/everything-stdio.ndjson'));
  const { url, got } = await startCollector(200, '{}');
  const env = { OTEL_EXPORTER_OTLP_HEADERS: 'x-key=not%20a%20secret,other=1' };
  const args = ['export', '--format', 'otlp', '--db', db];
  expect(await tapedeckInProcess([...args, '--to', `${url}/base/`], { env })).toMatchObject({ code: 0 });
  const { stdout } = await tapedeckInProcess(args);
  expect(got.map(({ line }) => line).join('')).toBe(stdout.toString());
  for (const { path, type, key, line } of got) {
    expect(path).toBe(line.startsWith('{"resourceSpans"') ? '/base/v1/traces' : '/base/v1/metrics');
    expect({ type, key }).toEqual({ type: 'application/json', key: 'not a secret' });
  }
});

test('what a collector does not take is told', async () => {
  const db = await imported(join(ROOT, 'recordings/everything-stdio.ndjson'));
  const send = (to: string) => tapedeckInProcess(['export', '--format', 'otlp', '--db', db, '--to', to]);
  const refusing = await startCollector(503, 'no room');
  expect(await send(refusing.url)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/503 Service Unavailable: "no room"/),
  });
  const partly = await startCollector(
    200,
    '{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}',
  );
  expect(await send(partly.url)).toMatchObject({ code: 2, stderr: expect.stringMatching(/too old/) });
  const gone = await startCollector(200, '{}');
  expect(await send(gone.url.replace('127.0.0.1', '127.0.0.2'))).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/could not be reached: ECONNREFUSED/),
  });
  expect(await send('somewhere')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/Expected the URL/),
  });
});
