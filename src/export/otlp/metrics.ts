/** How long requests, notifications and the session took, as the histograms of the semantic conventions for MCP, in seconds. */

import type { SessionRow } from '../../store/read/sessions.ts';
import {
  type Attribute,
  type AttributeValues,
  attributesOf,
  nanoseconds,
  networkFacts,
  serverFacts,
} from './facts.ts';

/** The conventions' bounds, in seconds. */
const BOUNDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/** A session's figures are of itself alone: nothing adds up over exports. */
const DELTA = 1;

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

export type Metric = {
  name: string;
  description: string;
  unit: 's';
  histogram: { dataPoints: Point[]; aggregationTemporality: typeof DELTA };
};

export type Durations = { add(facts: AttributeValues, microseconds: number): void; points(): Point[] };

/** Durations by their attributes, between two moments. */
export function createDurations(startedAt: number, endedAt: number): Durations {
  const points = new Map<string, Point>();

  function pointOf(facts: AttributeValues): Point {
    const attributes = attributesOf(facts);
    const key = JSON.stringify(attributes);
    let point = points.get(key);
    if (point === undefined) {
      point = {
        attributes,
        startTimeUnixNano: nanoseconds(startedAt),
        timeUnixNano: nanoseconds(endedAt),
        count: 0,
        sum: 0,
        min: Number.POSITIVE_INFINITY,
        max: 0,
        bucketCounts: new Array<number>(BOUNDS.length + 1).fill(0),
        explicitBounds: BOUNDS,
      };
      points.set(key, point);
    }
    return point;
  }

  return {
    add(facts, microseconds) {
      const point = pointOf(facts);
      const seconds = microseconds / 1_000_000;
      const above = BOUNDS.findIndex((bound) => seconds <= bound);
      const bucket = above === -1 ? BOUNDS.length : above;
      point.bucketCounts[bucket] = (point.bucketCounts[bucket] ?? 0) + 1;
      point.count += 1;
      point.sum += seconds;
      point.min = Math.min(point.min, seconds);
      point.max = Math.max(point.max, seconds);
    },
    points: () => [...points.values()],
  };
}

/** Empty where nothing was answered. */
export function operationMetrics(durations: Durations): Metric[] {
  const description =
    'The duration of a request or notification, from when it was sent to its answer or ack.';
  return histogram('mcp.client.operation.duration', description, durations.points());
}

/** Empty where the session is still open: how long it takes is not known. */
export function sessionMetrics(session: SessionRow): Metric[] {
  if (session.endedAt === null) return [];
  const durations = createDurations(session.startedAt, session.endedAt);
  const facts = { ...networkFacts(session, null), ...serverFacts(session) };
  durations.add(facts, session.endedAt - session.startedAt);
  return histogram('mcp.client.session.duration', 'The duration of the session.', durations.points());
}

function histogram(name: string, description: string, dataPoints: Point[]): Metric[] {
  if (dataPoints.length === 0) return [];
  return [{ name, description, unit: 's', histogram: { dataPoints, aggregationTemporality: DELTA } }];
}
