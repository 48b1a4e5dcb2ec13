/** The lanes of a run as a picture: a bar for each call, many of them in one column of pixels where they are dense. */
import type { RunCall } from '../../api.ts';

/** What is in sight, in microseconds. */
export type Sight = { from: number; to: number };

export type LanesPicture = {
  calls: readonly RunCall[];
  lanes: number;
  sight: Sight;
  /** The chosen call, by its place; -1 for none. */
  active: number;
};

export const LANE_HEIGHT = 28;

const BAR_HEIGHT = 14;

const BAR_TOP = (LANE_HEIGHT - BAR_HEIGHT) / 2;

/** A shorter bar could not be seen. */
const LEAST_WIDTH = 2;

export const AXIS_HEIGHT = 20;

export function isFailed(call: RunCall | undefined): boolean {
  return call?.outcome === 'error' || call?.outcome === 'tool-error';
}

function endOfCall({ at, lasted }: RunCall): number {
  return at + (lasted ?? 0);
}

/** So that the first and the last bar are seen whole. */
const INSET = 8;

/** Where a moment stands in a picture of this width. */
function placeOf(at: number, { from, to }: Sight, width: number): number {
  return INSET + ((at - from) / Math.max(1, to - from)) * (width - 2 * INSET);
}

/** Bars that would stand in the same pixels of a lane are one. */
function barsOf({ calls, sight, lanes }: LanesPicture, width: number): Bar[] {
  const last: (Bar | undefined)[] = Array.from({ length: lanes });
  const bars: Bar[] = [];
  for (const [i, call] of calls.entries()) {
    const from = placeOf(call.at, sight, width);
    const to = Math.max(from + LEAST_WIDTH, placeOf(endOfCall(call), sight, width));
    if (to < 0 || from > width) continue;
    const kind = isFailed(call) ? 'error' : call.askedBy === 'server' ? 'other' : 'call';
    const before = last[call.lane];
    if (
      before !== undefined &&
      before.kind === kind &&
      Math.floor(from) <= before.to &&
      to - from <= LEAST_WIDTH + 1
    ) {
      before.to = Math.max(before.to, to);
      continue;
    }
    const bar: Bar = { lane: call.lane, from, to, kind, call: i };
    last[call.lane] = bar;
    bars.push(bar);
  }
  return bars;
}

type Bar = { lane: number; from: number; to: number; kind: 'call' | 'other' | 'error'; call: number };

const COLOURS = { call: '--bar', other: '--bar-other', error: '--bar-error' } as const;

/** Draws everything anew; a picture of some thousand bars takes a few milliseconds. */
export function drawLanes(canvas: HTMLCanvasElement, picture: LanesPicture): void {
  const { clientWidth: width, clientHeight: height } = canvas;
  const pen = canvas.getContext('2d');
  if (pen === null || width === 0) return;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  pen.scale(scale, scale);
  const colour = (name: string) => resolveColour(canvas, name);
  const font = getComputedStyle(canvas).fontFamily;
  const { lanes, sight, calls, active } = picture;
  drawAxis(pen, sight, {
    width,
    height,
    line: colour('--line'),
    text: colour('--muted'),
    font,
  });
  pen.strokeStyle = colour('--line');
  pen.lineWidth = 1;
  for (let lane = 0; lane <= lanes; lane += 1) line(pen, 0, AXIS_HEIGHT + lane * LANE_HEIGHT, width, true);
  const bars = barsOf(picture, width);
  // Failures come last, so that nothing hides them.
  for (const kind of ['call', 'other', 'error'] as const) {
    pen.fillStyle = colour(COLOURS[kind]);
    for (const bar of bars) if (bar.kind === kind) drawBar(pen, bar);
  }
  const chosen = calls[active];
  if (chosen !== undefined) drawChosen(pen, chosen, sight, width, colour('--accent'));
}

/** A custom property may be made of two colours: what is used of them is told only where it is used. */
function resolveColour(canvas: HTMLCanvasElement, name: string): string {
  canvas.style.color = `var(${name})`;
  return getComputedStyle(canvas).color;
}

function drawBar(pen: CanvasRenderingContext2D, { lane, from, to, kind }: Bar): void {
  const top = AXIS_HEIGHT + lane * LANE_HEIGHT + BAR_TOP;
  pen.beginPath();
  pen.roundRect(from, top, to - from, BAR_HEIGHT, Math.min(3, (to - from) / 2));
  pen.fill();
  // Not by colour alone: a failure stands out of its row.
  if (kind === 'error') pen.fillRect(from, top - 4, Math.max(LEAST_WIDTH, 2), BAR_HEIGHT + 8);
}

function drawChosen(
  pen: CanvasRenderingContext2D,
  call: RunCall,
  sight: Sight,
  width: number,
  colour: string,
): void {
  const from = placeOf(call.at, sight, width);
  const to = Math.max(from + LEAST_WIDTH, placeOf(endOfCall(call), sight, width));
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.strokeRect(
    from - 2,
    AXIS_HEIGHT + call.lane * LANE_HEIGHT + BAR_TOP - 3,
    to - from + 4,
    BAR_HEIGHT + 6,
  );
}

function line(pen: CanvasRenderingContext2D, x: number, y: number, to: number, isLevel: boolean): void {
  pen.beginPath();
  pen.moveTo(Math.round(x) + 0.5, Math.round(y) + 0.5);
  pen.lineTo(
    isLevel ? Math.round(to) + 0.5 : Math.round(x) + 0.5,
    isLevel ? Math.round(y) + 0.5 : Math.round(to) + 0.5,
  );
  pen.stroke();
}

const TICK_WIDTH = 90;

type AxisLook = { width: number; height: number; line: string; text: string; font: string };

function drawAxis(
  pen: CanvasRenderingContext2D,
  sight: Sight,
  { width, height, line: stroke, text, font }: AxisLook,
): void {
  const step = stepOf((sight.to - sight.from) / Math.max(1, width / TICK_WIDTH));
  pen.font = `11px ${font}`;
  pen.textBaseline = 'middle';
  pen.lineWidth = 1;
  for (let at = Math.ceil(sight.from / step) * step; at <= sight.to; at += step) {
    const x = placeOf(at, sight, width);
    pen.strokeStyle = stroke;
    line(pen, x, 0, height, false);
    const label = tickText(at, step);
    pen.fillStyle = text;
    if (x + pen.measureText(label).width + 6 < width) pen.fillText(label, x + 4, AXIS_HEIGHT / 2);
  }
}

/** 1, 2 or 5 of a power of ten, and above a second what clocks count by. */
function stepOf(least: number): number {
  const whole = [
    1e6, 2e6, 5e6, 10e6, 15e6, 30e6, 60e6, 120e6, 300e6, 600e6, 1800e6, 3600e6, 7200e6, 21_600e6, 86_400e6,
  ];
  if (least > 1e6) return whole.find((step) => step >= least) ?? Math.ceil(least / 86_400e6) * 86_400e6;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least) ?? power * 10;
}

/** Times since the beginning of the stretch. */
function tickText(at: number, step: number): string {
  if (step < 1000) return `${Math.round(at)} µs`;
  if (step < 1e6 && at < 1e6) return `${Math.round(at / 1000)} ms`;
  const seconds = at / 1e6;
  if (seconds < 60) return `${seconds.toFixed(step < 1e6 ? Math.ceil(-Math.log10(step / 1e6)) : 0)} s`;
  const two = (value: number) => String(value).padStart(2, '0');
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours > 0
    ? `${hours}:${two(minutes)}:${two(Math.floor(seconds % 60))}`
    : `${minutes}:${two(Math.floor(seconds % 60))}`;
}

/** The call at a place of the picture: one whose bar is there, else the nearest in that lane within some pixels. */
export function callAt(picture: LanesPicture, x: number, y: number, width: number): number {
  const lane = Math.floor((y - AXIS_HEIGHT) / LANE_HEIGHT);
  let best = -1;
  let nearest = 8;
  for (const [i, call] of picture.calls.entries()) {
    if (call.lane !== lane) continue;
    const from = placeOf(call.at, picture.sight, width);
    const to = Math.max(from + LEAST_WIDTH, placeOf(endOfCall(call), picture.sight, width));
    const away = x < from ? from - x : x > to ? x - to : 0;
    if (away < nearest) {
      nearest = away;
      best = i;
    }
  }
  return best;
}
