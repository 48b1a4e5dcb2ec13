/** Sizes, durations and times as people write them, in filters and options. Each reader returns null for what it cannot read. */

const MICROSECONDS: Record<string, number> = {
  us: 1,
  µs: 1,
  ms: 1000,
  s: 1_000_000,
  m: 60_000_000,
  min: 60_000_000,
  h: 3_600_000_000,
  d: 86_400_000_000,
  w: 604_800_000_000,
};

const DURATION = /^(?:\d+(?:\.\d+)?[a-zµ]+)+$/;

const DURATION_PART = /(\d+(?:\.\d+)?)([a-zµ]+)/g;

/** `500ms`, `2s`, `1h30m`, `30 d`, in microseconds. A unit is required: nobody agrees on which one a bare number has. */
export function parseDuration(text: string): number | null {
  const lower = text.toLowerCase().replaceAll(/\s+/g, '');
  if (!DURATION.test(lower)) return null;
  let sum = 0;
  for (const [, amount, unit = ''] of lower.matchAll(DURATION_PART)) {
    const factor = Object.hasOwn(MICROSECONDS, unit) ? MICROSECONDS[unit] : undefined;
    if (factor === undefined) return null;
    sum += Number(amount) * factor;
  }
  return sum;
}

const BYTES: Record<string, number> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

/** `10kb`, `1.5 MB`, `2g`, `300`, in bytes. */
export function parseSize(text: string): number | null {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)b?$/.exec(text.toLowerCase()) ?? [];
  return amount === undefined ? null : Number(amount) * (BYTES[unit] ?? Number.NaN);
}

/** A whole number. */
export function parseNumber(text: string): number | null {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : null;
}

const DAY = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](.+))?$/;

const CLOCK = /^(\d\d?):(\d\d)(?::(\d\d)(?:\.(\d{1,6})\d*)?)?(Z|[+-]\d\d:?\d\d)?$/i;

/**
 * A moment: `2026-11-20`, `2026-11-20T10:30:00.5Z`, `10:30` (of today), `today`, `yesterday`, `now`, or so long ago (`2h`,
 * `10m ago`). A time without a zone is one of this machine's zone. `now` and the result are microseconds since the
 * Unix epoch.
 */
export function parseTime(text: string, now: number): number | null {
  const lower = text.trim().toLowerCase();
  if (lower === 'now') return now;
  const today = new Date(now / 1000);
  if (lower === 'today') return midnight(today, 0);
  if (lower === 'yesterday') return midnight(today, -1);
  const ago = parseDuration(lower.replace(/\s+ago$/, ''));
  if (ago !== null) return now - ago;
  const [, year, month, day, rest] = DAY.exec(text.trim()) ?? [];
  if (year === undefined) return readClock(text.trim(), dayOf(today));
  const date = { year: Number(year), month: Number(month), day: Number(day) };
  return rest === undefined ? moment(date, NO_CLOCK) : readClock(rest, date);
}

type Day = { year: number; month: number; day: number };

type Clock = { hour: number; minute: number; second: number; micros: number; zone: string | null };

const NO_CLOCK: Clock = { hour: 0, minute: 0, second: 0, micros: 0, zone: null };

function midnight(date: Date, days: number): number {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days).getTime() * 1000;
}

function dayOf(date: Date): Day {
  return { year: date.getFullYear(), month: date.getMonth() + 1, day: date.getDate() };
}

function readClock(text: string, day: Day): number | null {
  const [, hour, minute, second, fraction = '', zone] = CLOCK.exec(text) ?? [];
  if (hour === undefined) return null;
  return moment(day, {
    hour: Number(hour),
    minute: Number(minute),
    second: Number(second ?? 0),
    micros: Number(fraction.padEnd(6, '0')),
    zone: zone ?? null,
  });
}

/** Null for what no calendar or clock has, such as 30 February. */
function moment({ year, month, day }: Day, { hour, minute, second, micros, zone }: Clock): number | null {
  if (hour > 23 || minute > 59 || second > 59) return null;
  const utc = Date.UTC(year, month - 1, day, hour, minute, second);
  const date = new Date(utc);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null;
  const ms =
    zone === null
      ? new Date(year, month - 1, day, hour, minute, second).getTime()
      : utc - offsetMinutes(zone) * 60_000;
  return ms * 1000 + micros;
}

function offsetMinutes(zone: string): number {
  if (zone.toLowerCase() === 'z') return 0;
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}
