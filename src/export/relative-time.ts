/** Times in a text recording: milliseconds since the line before, exact to the microsecond. */
import { BadLine } from './members.ts';

/** Microseconds as milliseconds, digit by digit: no rounding. */
export function msText(micros: number): string {
  const whole = Math.floor(Math.abs(micros) / 1000);
  const fraction = String(Math.abs(micros) % 1000)
    .padStart(3, '0')
    .replace(/0+$/, '');
  return `${micros < 0 ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Time may run backwards, as a clock that is set does, but not to before 1970. */
export function timeAfter(at: number, ms: number): number {
  const next = at + Math.round(ms * 1000);
  if (Number.isSafeInteger(next) && next >= 0) return next;
  throw new BadLine(`expected a time between 1970 and 2255, got ${ms} ms after the line before`);
}
