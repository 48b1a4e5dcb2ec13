// What the main thread of a page does, as the browser's own trace tells it.

const CATEGORIES = [
  'toplevel',
  'devtools.timeline',
  'disabled-by-default-devtools.timeline',
  'blink.user_timing',
];

/** What is script, style and layout. Painting and drawing are not among it. */
const WORK = new Set([
  ...['EvaluateScript', 'v8.compile', 'FunctionCall', 'EventDispatch', 'TimerFire', 'FireAnimationFrame'],
  ...['FireIdleCallback', 'RunMicrotasks', 'MinorGC', 'MajorGC', 'V8.GCScavenger', 'V8.GCFinalizeMC'],
  ...['UpdateLayoutTree', 'ScheduleStyleRecalculation', 'Layout', 'HitTest'],
]);

/** A page marks with this name (`performance.mark`) where a part begins; it must do so at least once. */
export const MARK = 'bench';

/**
 * Runs `act`, and tells of the page's main thread: its events, and the times of its marks. Times are milliseconds of a clock of
 * the browser's; `own` is what an event took of a processor, which others that draw or compute meanwhile do not make longer.
 */
export async function traced(browser, page, act) {
  await browser.startTracing(page, { categories: CATEGORIES });
  await act();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const mark = traceEvents.find(({ name, cat }) => name === MARK && cat.includes('user_timing'));
  if (mark === undefined) throw new Error('the page has set no mark');
  const own = traceEvents.filter(({ pid, tid }) => pid === mark.pid && tid === mark.tid);
  const events = own
    .filter(({ ph }) => ph === 'X')
    .map(({ name, ts, dur = 0, tdur = dur }) => ({ name, at: ts / 1000, ms: dur / 1000, own: tdur / 1000 }))
    .sort((a, b) => a.at - b.at || b.ms - a.ms);
  const marks = own.filter(({ name }) => name === MARK).map(({ ts }) => ts / 1000);
  return { events, marks: marks.sort((a, b) => a - b) };
}

/** Script, style and layout between each mark and the next: milliseconds of a processor. */
export function workBetween({ events, marks }) {
  const sums = marks.map(() => 0);
  let end = 0;
  let part = -1;
  for (const { name, at, ms, own } of events) {
    // What lies within something else is counted with it.
    if (!WORK.has(name) || at < end) continue;
    end = at + ms;
    while (part + 1 < marks.length && marks[part + 1] <= at) part += 1;
    if (part >= 0) sums[part] += own;
  }
  return sums.slice(0, -1);
}

/** The longest task since the first mark, in milliseconds of a processor. */
export function longestTask({ events, marks: [first] }) {
  const tasks = events.filter(({ name, at }) => name === 'RunTask' && at >= first);
  return Math.max(...tasks.map(({ own }) => own));
}
