/** The whole session in a strip: calls of the client above the line, of the server below it; drag over it for a part of it. */
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { counted, showLasting, showOffset } from '../look/format.ts';
import { Unseen } from '../look/parts.tsx';
import { theme } from '../shell/theme.ts';
import { isError, outcomeOf } from './outcome.ts';
import type { SessionOutline } from './outline.ts';
import css from './overview.module.css';
import type { TimeRange, TimeScale } from './scale.ts';

type OverviewProps = {
  outline: SessionOutline;
  version: number;
  scale: TimeScale;
  range: TimeRange | null;
  onRange(range: TimeRange | null): void;
};

export function Overview({ outline, version, scale, range, onRange }: OverviewProps): VNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(canvas);
  const [dragged, setDragged] = useState<TimeRange | null>(null);
  const mode = theme.value;
  const dark = useMedia('(prefers-color-scheme: dark)');
  useLayoutEffect(() => {
    if (canvas.current !== null && width > 0) draw(canvas.current, binCalls(outline, scale, width));
  }, [outline, version, scale, width, mode, dark]);
  const inTable = useMemo(() => binCalls(outline, scale, 12), [outline, version, scale]);
  const shown = dragged ?? range;
  const placeOf = (event: PointerEvent) => {
    const { left, width: wide } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - left) / wide));
  };
  const start = useRef<number | null>(null);
  return (
    <div class={css.overview}>
      <div
        class={css.strip}
        onPointerDown={(event) => {
          start.current = placeOf(event);
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          if (start.current === null) return;
          const [from, to] = [start.current, placeOf(event)].sort((a, b) => a - b);
          setDragged([scale.at(from ?? 0), scale.at(to ?? 1)]);
        }}
        onPointerUp={(event) => {
          const isClick = Math.abs(placeOf(event) - (start.current ?? 0)) * width < 4;
          start.current = null;
          setDragged(null);
          onRange(isClick ? null : dragged);
        }}
        onPointerCancel={() => {
          start.current = null;
          setDragged(null);
        }}
      >
        <canvas ref={canvas} class={css.canvas} />
        {shown && (
          <div
            class={css.brush}
            style={{ left: `${scale.x(shown[0]) * 100}%`, right: `${(1 - scale.x(shown[1])) * 100}%` }}
          />
        )}
        {scale.folds.map(({ x, micros }) => (
          <span
            class={css.fold}
            key={x}
            style={{ left: `${x * 100}%` }}
            title={`${showLasting(micros)} idle`}
          >
            <span>{showLasting(micros)}</span>
          </span>
        ))}
      </div>
      <div class={css.lanes} aria-hidden="true">
        <span>client</span>
        <span>server</span>
      </div>
      <div class={css.axis} aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((x) => (
          <span key={x}>{showOffset(scale.at(x))}</span>
        ))}
      </div>
      <OverviewTable bins={inTable} scale={scale} />
    </div>
  );
}

/** What the strip shows, for those who do not see it. */
function OverviewTable({ bins, scale }: { bins: Bins; scale: TimeScale }): VNode {
  return (
    <Unseen>
      <table>
        <caption>Calls over the session’s time</caption>
        <tbody>
          {bins.client.map((calls, i) => (
            <tr key={i}>
              <th scope="row">
                {showOffset(scale.at(i / 12))} to {showOffset(scale.at((i + 1) / 12))}
              </th>
              <td>{counted(calls, 'call')} of the client</td>
              <td>{counted(bins.server[i] ?? 0, 'call')} of the server</td>
              <td>{counted(bins.errors[i] ?? 0, 'error')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Unseen>
  );
}

function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (element.current === null) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.round(entry?.contentRect.width ?? 0)));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

function useMedia(query: string): boolean {
  const [does, setDoes] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const onChange = () => setDoes(list.matches);
    list.addEventListener('change', onChange);
    return () => list.removeEventListener('change', onChange);
  }, [query]);
  return does;
}

/** How many calls were under way in each of equal parts of a line, and how many that failed ended in it. */
type Bins = { client: number[]; server: number[]; errors: number[]; errorsOfServer: number[] };

function binCalls(outline: SessionOutline, scale: TimeScale, count: number): Bins {
  const empty = () => new Array<number>(count).fill(0);
  const bins: Bins = { client: empty(), server: empty(), errors: empty(), errorsOfServer: empty() };
  const binOf = (at: number) => Math.min(count - 1, Math.floor(scale.x(at) * count));
  for (let i = 0; i < outline.count; i += 1) {
    if (outline.text('kind', i) !== 'request') continue;
    const isByClient = outline.isByClient(i);
    const lane = isByClient ? bins.client : bins.server;
    const end = outline.endOf(i);
    const [first, last] = [binOf(outline.number('at', i)), binOf(end === 0 ? scale.to : end)];
    lane[first] = (lane[first] ?? 0) + 1;
    if (last + 1 < count) lane[last + 1] = (lane[last + 1] ?? 0) - 1;
    const answer = outline.partner[i] ?? -1;
    const failed = isByClient ? bins.errors : bins.errorsOfServer;
    if (isError(outcomeOf(outline, i, answer, true))) failed[last] = (failed[last] ?? 0) + 1;
  }
  for (const lane of [bins.client, bins.server]) {
    for (let bin = 1; bin < count; bin += 1) lane[bin] = (lane[bin] ?? 0) + (lane[bin - 1] ?? 0);
  }
  return bins;
}

const HEIGHT = 44;

/** Fewer at once do not fill the strip. */
const MANY = 4;

/** A bar a pixel; many calls are higher, but one is seen too. */
function draw(canvas: HTMLCanvasElement, { client, server, errors, errorsOfServer }: Bins): void {
  const scale = devicePixelRatio;
  canvas.width = client.length * scale;
  canvas.height = HEIGHT * scale;
  const context = canvas.getContext('2d');
  if (context === null) return;
  context.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const [bar, other, error, line] = ['--bar', '--bar-other', '--bar-error', '--line'].map((name) =>
    resolveColor(canvas, style.getPropertyValue(name)),
  );
  const most = Math.max(MANY, ...client, ...server);
  const middle = Math.round(HEIGHT * 0.62);
  const height = (count: number, room: number) =>
    count === 0 ? 0 : 3 + Math.sqrt(count / most) * (room - 4);
  for (const [x, calls] of client.entries()) {
    const up = height(calls, middle);
    context.fillStyle = ((errors[x] ?? 0) > 0 ? error : bar) ?? '';
    context.fillRect(x, middle - up, 1, up);
    context.fillStyle = ((errorsOfServer[x] ?? 0) > 0 ? error : other) ?? '';
    context.fillRect(x, middle + 1, 1, height(server[x] ?? 0, HEIGHT - middle));
  }
  context.fillStyle = line ?? '';
  context.fillRect(0, middle, client.length, 1);
}

/** `light-dark()` is no colour of a canvas; what it comes to is. */
function resolveColor(element: HTMLElement, value: string): string {
  const before = element.style.color;
  element.style.color = value;
  const color = getComputedStyle(element).color;
  element.style.color = before;
  return color;
}
