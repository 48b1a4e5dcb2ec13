/** A bar chart, with its table beside it for those who do not see it, or want its figures. */
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useSignalEffect } from '@preact/signals';
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { go } from '../shell/router.ts';
import { theme } from '../shell/theme.ts';
import css from './stats.module.css';

export type ChartBar = {
  /** Where it stands on the axis: its left end and its right end. */
  from: number;
  to: number;
  value: number;
  /** The part of the value that went wrong. */
  bad?: number;
  /** What it stands for, in words. */
  label: string;
  /** To what it counts. */
  href: string;
};

type ChartProps = {
  title: string;
  bars: readonly ChartBar[];
  /** Words of the axis. */
  tick(at: number): string;
  isLog?: boolean;
  /** What a bar counts, as the head of a column. */
  unit: string;
  children?: ComponentChildren;
};

const HEIGHT = 168;

/** So few bars are as wide as what they count. */
const FEW = 8;

export function Chart({ title, bars, tick, isLog = false, unit, children }: ChartProps): VNode {
  const host = useRef<HTMLDivElement>(null);
  const look = useLook();
  useEffect(() => {
    const { current } = host;
    if (current === null || bars.length === 0) return;
    const plot = new uPlot(optionsOf({ bars, tick, isLog }, current), dataOf(bars), current);
    const resize = new ResizeObserver(() => plot.setSize({ width: current.clientWidth, height: HEIGHT }));
    resize.observe(current);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
  }, [bars, isLog, look]);
  const total = bars.reduce((sum, { value }) => sum + value, 0);
  return (
    <section class={css.chart}>
      <header>
        <h2>{title}</h2>
        {children}
      </header>
      {bars.length === 0 ? (
        <p class={css.quiet}>There is nothing to draw.</p>
      ) : (
        <>
          <div
            ref={host}
            class={css.plot}
            role="img"
            aria-label={`${title}: ${total} ${unit}. The table below has the figures.`}
          />
          <FigureTable bars={bars} unit={unit} />
        </>
      )}
    </section>
  );
}

/** Changes with the colours of the page: a canvas keeps those that it was drawn in. */
function useLook(): string {
  const [look, setLook] = useState('');
  const update = () =>
    setLook(
      getComputedStyle(document.documentElement).getPropertyValue('color-scheme') +
        matchMedia('(prefers-color-scheme: dark)').matches,
    );
  useSignalEffect(() => {
    void theme.value;
    requestAnimationFrame(update);
  });
  useEffect(() => {
    const media = matchMedia('(prefers-color-scheme: dark)');
    media.addEventListener('change', update);
    return () => media.removeEventListener('change', update);
  }, []);
  return look;
}

/** As a canvas takes it, resolved by the browser. */
function colorOf(host: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  host.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function dataOf(bars: readonly ChartBar[]): uPlot.AlignedData {
  return [
    bars.map(({ from, to }) => (from > 0 ? Math.sqrt(from * to) : (from + to) / 2)),
    bars.map(({ value }) => value),
    bars.map(({ bad = 0 }) => bad),
  ];
}

function optionsOf(
  { bars, tick, isLog }: Pick<ChartProps, 'bars' | 'tick' | 'isLog'>,
  host: HTMLElement,
): uPlot.Options {
  const [least, most] = [bars[0]?.from ?? 0, bars.at(-1)?.to ?? 1];
  const [muted, line] = [colorOf(host, '--muted'), colorOf(host, '--line')];
  const font = `11px ${getComputedStyle(host).fontFamily}`;
  const axis = { stroke: muted, font, grid: { show: false }, ticks: { stroke: line, width: 1, size: 4 } };
  const series = (name: string) => ({
    fill: colorOf(host, name),
    width: 0,
    points: { show: false },
    ...(uPlot.paths.bars === undefined
      ? {}
      : { paths: uPlot.paths.bars({ size: [0.86, bars.length < FEW ? 1000 : 64], gap: 1 }) }),
  });
  return {
    width: Math.max(200, host.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 12, 0, 0],
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, distr: isLog ? 3 : 1, range: [isLog ? Math.max(least, most / 1e9) : least, most] },
      y: { range: (_, __, top) => [0, Math.max(1, top) * 1.05] },
    },
    axes: [
      {
        ...axis,
        space: 64,
        size: 26,
        values: (_, splits) => splits.map((at) => (at === null ? null : tick(at))),
        ...(isLog ? { splits: () => decades(least, most) } : {}),
      },
      {
        ...axis,
        grid: { stroke: line, width: 1 },
        size: 44,
        incrs: [
          1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000,
        ],
      },
    ],
    series: [{}, series('--bar'), series('--bar-error')],
    hooks: {
      setCursor: [
        ({ over, cursor: { left = -1 }, posToVal }) => {
          const bar = left < 0 ? undefined : barAt(bars, posToVal(left, 'x'));
          over.title = bar === undefined ? '' : `${bar.label}: ${bar.value}`;
          over.style.cursor = bar !== undefined && bar.value > 0 ? 'pointer' : 'default';
        },
      ],
      ready: [
        ({ over, posToVal }) => {
          over.addEventListener('click', (event) => {
            const bar = barAt(bars, posToVal(event.offsetX, 'x'));
            if (bar !== undefined && bar.value > 0) go(bar.href);
          });
        },
      ],
    },
  };
}

function barAt(bars: readonly ChartBar[], at: number): ChartBar | undefined {
  return bars.find(({ from, to }) => at >= from && at < to);
}

/** 1, 10, 100 …; where these are few, 2 and 5 of each as well. */
function decades(least: number, most: number): number[] {
  const steps: number[] = [];
  const few = most / Math.max(least, 1e-9) < 200;
  for (let power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-6))); power <= most; power *= 10)
    for (const step of few ? [1, 2, 5] : [1])
      if (step * power >= least && step * power <= most) steps.push(step * power);
  return steps;
}

function FigureTable({ bars, unit }: Pick<ChartProps, 'bars' | 'unit'>): VNode {
  const hasBad = bars.some(({ bad = 0 }) => bad > 0);
  return (
    <details class={css.figures}>
      <summary>As a table</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">Range</th>
            <th scope="col">{unit}</th>
            {hasBad && <th scope="col">errors</th>}
          </tr>
        </thead>
        <tbody>
          {bars
            .filter(({ value }) => value > 0)
            .map(({ label, value, bad = 0, href }) => (
              <tr key={label}>
                <th scope="row">
                  <a href={href}>{label}</a>
                </th>
                <td>{value}</td>
                {hasBad && <td>{bad}</td>}
              </tr>
            ))}
        </tbody>
      </table>
    </details>
  );
}
