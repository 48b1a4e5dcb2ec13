/** Times as machines get them: ISO 8601 in UTC with microseconds. In code a time is microseconds since the Unix epoch. */

export function formatIsoTime(at: number): string {
  const seconds = Math.floor(at / 1_000_000);
  const micros = String(at - seconds * 1_000_000).padStart(6, '0');
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${micros}Z`;
}

const ISO_TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?Z$/;

/** Null for what is no such time, a day that does not exist among it. The fraction may be short, or missing. */
export function parseIsoTime(text: string): number | null {
  const [, seconds, fraction = ''] = ISO_TIME.exec(text) ?? [];
  if (seconds === undefined) return null;
  const ms = Date.parse(`${seconds}Z`);
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 19) !== seconds) return null;
  return ms * 1000 + Number(fraction.padEnd(6, '0'));
}
