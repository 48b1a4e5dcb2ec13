/** Figures as people read them. Times come in microseconds, sizes in bytes. */

const GROUPED = new Intl.NumberFormat('en-US');

export function showCount(count: number): string {
  return GROUPED.format(count);
}

/** `1 frame`, `2 frames`. */
export function counted(count: number, noun: string): string {
  return `${showCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

export function showSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length, Math.floor(Math.log10(bytes) / 3));
  return `${significant(bytes / 1000 ** power)} ${units[power - 1]}`;
}

/** Three digits say enough; nothing is longer than five characters and its unit. */
function significant(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(value >= 10 ? 1 : 2);
}

export function showLasting(micros: number): string {
  if (micros < 1000) return `${Math.round(micros)} µs`;
  if (micros < 1_000_000) return `${significant(micros / 1000)} ms`;
  const seconds = micros / 1_000_000;
  if (seconds < 60) return `${significant(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

/** Seconds since the session's start, to the millisecond. */
export function showOffset(micros: number): string {
  const millis = Math.floor(Math.abs(micros) / 1000);
  const [hours, minutes] = [Math.floor(millis / 3_600_000), Math.floor(millis / 60_000) % 60];
  const seconds = `${Math.floor(millis / 1000) % 60}.${String(millis % 1000).padStart(3, '0')}`;
  const sign = micros < 0 ? '−' : '';
  if (hours > 0) return `${sign}${hours}:${two(minutes)}:${seconds.padStart(6, '0')}`;
  return minutes > 0 ? `${sign}${minutes}:${seconds.padStart(6, '0')}` : `${sign}${seconds}`;
}

/** A time as answers have it, in microseconds since the Unix epoch: `Date` knows milliseconds alone. */
export function microsOf(iso: string): number {
  const fraction = /\.(\d+)Z$/.exec(iso)?.[1] ?? '';
  return Date.parse(iso.replace(/\.\d+Z$/, 'Z')) * 1000 + Number(fraction.padEnd(6, '0').slice(0, 6));
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

/** A moment in this browser's time zone; without the date where it is today. */
export function showMoment(iso: string, now: Date = new Date()): string {
  const at = new Date(iso);
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  if (at.toDateString() === now.toDateString()) return clock;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
}
