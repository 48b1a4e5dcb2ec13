import type { VNode } from 'preact';
import type { HttpView } from '../../api.ts';
import { microsOf, showLasting } from '../look/format.ts';
import css from './http.module.css';

/** A stretch of an HTTP exchange's time, in microseconds. */
export type Phase = { name: 'request' | 'waiting' | 'beginning' | 'answer'; from: number; to: number };

/** In words, as the table beside a bar has them. */
export const PHASE_WORDS: Readonly<Record<Phase['name'], string>> = {
  request: 'the request was sent',
  waiting: 'until the head of the answer came',
  beginning: 'until the first event of its body came',
  answer: 'until the answer had ended',
};

/** Without what has not happened. `firstEvent`: when the body of the answer began, where that is known. */
export function phasesOf(
  { at, requestEndedAt, responseAt, endedAt }: HttpView,
  firstEvent: number | null = null,
): Phase[] {
  const times = [at, requestEndedAt, responseAt, endedAt].map((one) => (one === null ? null : microsOf(one)));
  const [begun = null, sent = null, head = null, end = null] = times;
  const phases: Phase[] = [];
  let last = begun ?? 0;
  const add = (name: Phase['name'], to: number | null) => {
    if (to === null) return;
    phases.push({ name, from: last, to: Math.max(last, to) });
    last = Math.max(last, to);
  };
  add('request', head !== null && sent !== null ? Math.min(sent, head) : sent);
  add('waiting', head);
  add('beginning', firstEvent);
  add('answer', end);
  return phases;
}

const PHASES = ['request', 'waiting', 'answer'] as const;

/** What the colours of the bars mean. */
export function TimeLegend(): VNode {
  return (
    <ul class={css.legend} aria-label="Colours of the bars">
      {PHASES.map((name) => (
        <li key={name} title={PHASE_WORDS[name]}>
          <span class={`${css.swatch} ${css[name]}`} /> {name}
        </li>
      ))}
    </ul>
  );
}

type TimeBarProps = { phases: readonly Phase[]; from: number; to: number };

/** Where the phases lie between two moments. The figures that it stands for are beside it, or in its title. */
export function TimeBar({ phases, from, to }: TimeBarProps): VNode {
  const share = (micros: number) => `${(100 * (micros - from)) / (to - from)}%`;
  const title = phases.map((one) => `${showLasting(one.to - one.from)} ${PHASE_WORDS[one.name]}`).join(', ');
  return (
    <span class={css.track} title={title} aria-hidden="true">
      {phases.map((one) => (
        <span
          key={one.name}
          class={css[one.name]}
          style={{ left: share(one.from), width: `calc(${share(one.to - one.from + from)} + 1px)` }}
        />
      ))}
    </span>
  );
}
