/** How messages and calls ended. */
import type { IconName } from '../look/parts.tsx';
import type { SessionOutline } from './outline.ts';

/** How a message ended, in the words of the store; `in flight` and `no answer` of a request without one. */
export function outcomeOf(outline: SessionOutline, i: number, answer: number, isLive: boolean): string {
  if (answer >= 0)
    return outline.text('outcome', answer) || (outline.text('kind', answer) === 'error' ? 'error' : 'ok');
  const kind = outline.text('kind', i);
  if (kind === 'error') return 'error';
  if (kind === 'invalid') return 'invalid';
  const own = outline.text('outcome', i);
  if (own !== '') return own;
  const problem = outline.text('problem', i);
  if (kind === 'request' && (outline.partner[i] ?? -1) < 0) return isLive ? 'in flight' : 'no answer';
  return problem;
}

type OutcomeLook = { tone: 'ok' | 'error' | 'warn' | 'live' | 'quiet'; icon: IconName; word?: string };

export const OUTCOMES: Readonly<Record<string, OutcomeLook>> = {
  ok: { tone: 'ok', icon: 'check' },
  error: { tone: 'error', icon: 'circle-x' },
  'tool-error': { tone: 'error', icon: 'circle-x', word: 'tool error' },
  invalid: { tone: 'error', icon: 'circle-x' },
  cancelled: { tone: 'warn', icon: 'x' },
  'input-required': { tone: 'warn', icon: 'circle-help', word: 'asks back' },
  fault: { tone: 'warn', icon: 'triangle-alert', word: 'fault on purpose' },
  'in flight': { tone: 'live', icon: 'radio' },
  'no answer': { tone: 'warn', icon: 'triangle-alert' },
};

/** Whether it counts as an error, to go to the next of them. */
export function isError(outcome: string): boolean {
  return outcome !== '' && (OUTCOMES[outcome]?.tone ?? 'error') === 'error';
}
