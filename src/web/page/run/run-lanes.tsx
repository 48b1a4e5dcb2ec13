import type { VNode } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { RunLane } from '../../api.ts';
import { counted } from '../look/format.ts';
import { Brief, plainText } from '../look/text.tsx';
import { theme } from '../shell/theme.ts';
import { AXIS_HEIGHT, callAt, drawLanes, isFailed, LANE_HEIGHT, type LanesPicture } from './lanes.ts';
import css from './run.module.css';
import { serverName } from './sight.ts';

type RunLanesProps = { picture: LanesPicture; lanes: readonly RunLane[]; onChoose(call: number): void };

/** The picture says nothing that the list of calls below it does not say: who cannot see it misses nothing. */
export function RunLanes({ picture, lanes, onChoose }: RunLanesProps): VNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shown = theme.value;
  const draw = useRef(() => {});
  draw.current = () => {
    if (canvas.current !== null) drawLanes(canvas.current, picture);
  };
  useLayoutEffect(() => draw.current(), [picture, shown]);
  useLayoutEffect(() => {
    const redraw = () => draw.current();
    const sizes = new ResizeObserver(redraw);
    if (canvas.current !== null) sizes.observe(canvas.current);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', redraw);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener('change', redraw);
    };
  }, []);
  const onClick = (event: MouseEvent) => {
    const box = canvas.current?.getBoundingClientRect();
    if (box === undefined) return;
    const call = callAt(picture, event.clientX - box.left, event.clientY - box.top, box.width);
    if (call >= 0) onChoose(call);
  };
  const height = `${AXIS_HEIGHT + lanes.length * LANE_HEIGHT + 1}px`;
  return (
    <div
      class={css.lanes}
      style={{
        '--lanes-height': height,
        '--axis-height': `${AXIS_HEIGHT}px`,
        '--lane-height': `${LANE_HEIGHT}px`,
      }}
    >
      <ul class={css.names} aria-label="Servers">
        {lanes.map((lane, i) => (
          <li key={lane.session}>
            <a href={`/s/${lane.session}`} title={plainText(lane.target)}>
              <Brief text={serverName(lane)} />
            </a>
            <span class={css.count}>{countOf(picture, i)}</span>
          </li>
        ))}
      </ul>
      <canvas
        ref={canvas}
        class={css.picture}
        role="img"
        aria-label="Calls of all servers over time, as the list below has them"
        onClick={onClick}
      />
    </div>
  );
}

/** Of the stretch that is shown. */
function countOf({ calls }: LanesPicture, lane: number): string {
  const own = calls.filter((call) => call.lane === lane);
  const failed = own.filter(isFailed).length;
  return `${counted(own.length, 'call')}${failed > 0 ? `, ${counted(failed, 'error')}` : ''}`;
}
