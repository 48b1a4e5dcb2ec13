/**
 * Random recordings, random clients: whatever is asked, in whatever order and writing, each request gets what was recorded
 * for it, or an error; never what was recorded for another one.
 */

import fc from 'fast-check';
import { expect } from 'vitest';
import type { Speed } from '../../src/replay/play/timetable.ts';
import { createStdioMock } from '../../src/replay/serve/stdio.ts';
import { openMock, startHttpMock } from '../support/http-mock.ts';
import { smallArguments } from '../support/replay.ts';
import { inFull, scale } from '../support/scale.ts';
import { type Answer, send } from '../support/send.ts';
import { importSaid, type SaidLine } from '../support/stdio-replay.ts';
import { until } from '../support/tapedeck.ts';

type Arguments = Record<string, unknown>;
/** `steps`: how often it tells of its progress. `end`: whether an answer comes, none, or the client takes it back. */
type Recorded = { tool: string; args: Arguments; steps: number; end: 'answer' | 'none' | 'cancel' };
/** `of`: asks what this recorded call asked, in another writing; null for something else. */
type Live = {
  of: number | null;
  other: Arguments;
  id: string | number;
  hasToken: boolean;
  isReversed: boolean;
};

const tool = fc.constantFrom('a', 'b');
const recorded: fc.Arbitrary<Recorded> = fc.record({
  tool,
  args: smallArguments,
  steps: fc.nat({ max: 2 }),
  end: fc.constantFrom('answer', 'answer', 'answer', 'answer', 'none', 'cancel'),
});
/** Few different calls, so that many are identical. */
const recordings = fc
  .tuple(
    fc.array(recorded, { minLength: 1, maxLength: 4 }),
    fc.array(fc.nat(), { minLength: 1, maxLength: 8 }),
  )
  .map(([kinds, picks]) =>
    picks.map((pick, i) => ({ ...kinds[pick % kinds.length], steps: (pick + i) % 3 }) as Recorded),
  );
const live: fc.Arbitrary<Live> = fc.record({
  of: fc.option(fc.nat({ max: 50 }), { freq: 8 }),
  other: smallArguments,
  id: fc.oneof(fc.integer(), fc.string({ maxLength: 5 })),
  hasToken: fc.boolean(),
  isReversed: fc.boolean(),
});
/** No id twice: what a client does that asks twice by one id at one time is its own trouble. */
const clients = fc.uniqueArray(live, {
  minLength: 1,
  maxLength: 12,
  selector: ({ id }) => JSON.stringify(id),
});
/** Which of the things that may come next comes next. */
const turns = fc.array(fc.nat(), { minLength: 1, maxLength: 20 });

/** What was recorded: each call's answer and progress bear its number. */
function linesOf(calls: readonly Recorded[], picks: readonly number[]): SaidLine[] {
  const lines: SaidLine[] = [];
  const left = calls.map((call, i) => eventsOf(call, i));
  let begun = 0;
  for (let turn = 0; left.some((events) => events.length > 0); turn += 1) {
    const open = left.slice(0, begun).flatMap((events, i) => (events.length > 0 ? [i] : []));
    const next = begun < calls.length ? [...open, begun] : open;
    const chosen = next[(picks[turn % picks.length] ?? 0) % next.length] ?? 0;
    begun = Math.max(begun, chosen + 1);
    const line = left[chosen]?.shift();
    if (line !== undefined) lines.push(line);
  }
  return lines;
}

function eventsOf({ tool: name, args, steps, end }: Recorded, i: number): SaidLine[] {
  const message = (value: object) => JSON.stringify({ jsonrpc: '2.0', ...value });
  const params = { name, arguments: args, _meta: { progressToken: i } };
  const events: SaidLine[] = [['stdin', message({ id: i, method: 'tools/call', params })]];
  for (let progress = 1; progress <= steps; progress += 1) {
    const told = { progressToken: i, progress, message: `of ${i}` };
    events.push(['stdout', message({ method: 'notifications/progress', params: told })]);
  }
  if (end === 'answer') events.push(['stdout', message({ id: i, result: { of: i } })]);
  if (end === 'cancel')
    events.push(['stdin', message({ method: 'notifications/cancelled', params: { requestId: i } })]);
  return events;
}

/** The request, and what makes it the same as another one. */
function requestOf(ask: Live, calls: readonly Recorded[]): { text: string; key: string } {
  const call = ask.of === null ? undefined : calls[ask.of % calls.length];
  const [name, args] = [call?.tool ?? 'a', call?.args ?? ask.other];
  const meta = { ...(ask.hasToken && { progressToken: ask.id }), traceparent: 'x' };
  const params = ask.isReversed
    ? { _meta: meta, arguments: reversed(args), name }
    : { name, arguments: args, _meta: meta };
  const text = JSON.stringify({ params, method: 'tools/call', id: ask.id, jsonrpc: '2.0' });
  return { text: ask.isReversed ? text.replace(/:1(?=[,}])/g, ':1.0') : text, key: keyOf(name, args) };
}

function keyOf(name: string, args: unknown): string {
  return JSON.stringify([name, sorted(args)]);
}

/** Objects stand as arrays too, told from those by their first element. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return ['array', ...value.map(sorted)];
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return ['object', ...members.map(([name, inner]) => [name, sorted(inner)])];
}

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, inner]) => [name, reversed(inner)]),
  );
}

/** What one client must get: for each of its requests, by its place, one of the outcomes of its key, each once. */
function outcomesByKey(calls: readonly Recorded[], keys: readonly string[]): Map<string, string[]> {
  const outcomes = new Map<string, string[]>();
  for (const key of keys) {
    const own = outcomes.get(key) ?? [];
    const same = calls.flatMap((call, i) => (keyOf(call.tool, call.args) === key ? [i] : []));
    const of = same[own.length];
    const end = of === undefined ? 'none' : calls[of]?.end;
    outcomes.set(key, [...own, end === 'answer' ? `answer ${of}` : end === 'cancel' ? 'open' : 'error']);
  }
  return outcomes;
}

type Said = { id?: unknown; result?: { of: number }; error?: { code: number }; params?: Progress };
type Progress = { progressToken: unknown; progress: number; message: string };

/** Checks what was said for one request against the law, and gives its outcome. */
function outcomeOf(ask: Live, said: readonly Said[], calls: readonly Recorded[]): string {
  const answers = said.filter((one) => 'id' in one);
  expect(answers.length).toBeLessThanOrEqual(1);
  const [answer] = answers;
  const progress = said.flatMap(({ params }) => params ?? []);
  if (!ask.hasToken) expect(progress).toEqual([]);
  expect(progress.map((one) => one.progress)).toEqual(progress.map((_one, i) => i + 1));
  expect(new Set(progress.map(({ message }) => message)).size).toBeLessThanOrEqual(1);
  if (answer === undefined) return 'open';
  expect([answer.id, said.at(-1)]).toEqual([ask.id, answer]);
  if (answer.result === undefined) {
    expect([answer.error?.code, progress]).toEqual([1404, []]);
    return 'error';
  }
  const { of } = answer.result;
  expect(progress).toHaveLength(ask.hasToken ? (calls[of]?.steps ?? 0) : 0);
  for (const { message } of progress) expect(message).toBe(`of ${of}`);
  return `answer ${of}`;
}

function check(
  calls: readonly Recorded[],
  asked: readonly Live[],
  saidFor: (ask: Live) => readonly Said[],
): void {
  const keys = asked.map((ask) => requestOf(ask, calls).key);
  const seen = new Map<string, string[]>();
  for (const [i, ask] of asked.entries()) {
    const key = keys[i] ?? '';
    seen.set(key, [...(seen.get(key) ?? []), outcomeOf(ask, saidFor(ask), calls)]);
  }
  const expected = outcomesByKey(calls, keys);
  for (const [key, outcomes] of expected) expect(seen.get(key)?.toSorted(), key).toEqual(outcomes.toSorted());
}

inFull(
  'over stdio, by several clients, all at once or in batches',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        recordings,
        turns,
        fc.array(clients, { minLength: 1, maxLength: 2 }),
        fc.boolean(),
        fc.constantFrom<Speed>('fast', 1e6, 5),
        async (calls, picks, many, isBatched, speed) => {
          const { mock } = openMock(await importSaid('calls', linesOf(calls, picks)), { speed });
          for (const asked of many) {
            const said: Said[] = [];
            const { feed } = createStdioMock(mock, (lines) =>
              said.push(
                ...lines
                  .toString()
                  .trim()
                  .split('\n')
                  .flatMap((line) => JSON.parse(line)),
              ),
            );
            const texts = asked.map((ask) => requestOf(ask, calls).text);
            feed(
              Buffer.from(isBatched ? `[${texts.join(',')}]\n` : texts.map((text) => `${text}\n`).join('')),
            );
            await mock.idle();
            // A batch with a call that stays open is answered once that is taken back.
            if (isBatched) {
              const open = asked.map(({ id }) =>
                JSON.stringify({
                  jsonrpc: '2.0',
                  method: 'notifications/cancelled',
                  params: { requestId: id },
                }),
              );
              feed(Buffer.from(open.map((text) => `${text}\n`).join('')));
            }
            check(calls, asked, ({ id }) =>
              said.filter((one) => one.id === id || one.params?.progressToken === id),
            );
          }
        },
      ),
      { numRuns: scale(150, 20) },
    );
  },
  300_000,
);

const INITIALIZE = {
  id: 'hello',
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {} },
};

inFull(
  'over HTTP, by several clients, at once',
  async () => {
    await fc.assert(
      fc.asyncProperty(recordings, turns, clients, clients, async (calls, picks, one, other) => {
        const { url } = await startHttpMock(await importSaid('calls', linesOf(calls, picks)));
        await Promise.all(
          [one, other].map(async (asked) => {
            const opened = await send(url, { body: INITIALIZE });
            await opened.ended;
            const headers = { 'mcp-session-id': String(opened.headers['mcp-session-id']) };
            const answers = new Map<Live, Answer>();
            await Promise.all(
              asked.map(async (ask) => {
                answers.set(ask, await send(url, { body: requestOf(ask, calls).text, headers }));
              }),
            );
            const outcomes = [
              ...outcomesByKey(
                calls,
                asked.map((ask) => requestOf(ask, calls).key),
              ).values(),
            ].flat();
            const closed = () =>
              [...answers.values()].filter(({ text }) => /"result"|"error"/.test(text())).length;
            const expected = outcomes.filter((outcome) => outcome !== 'open').length;
            await until('all that is answered is answered', () => closed() >= expected);
            check(calls, asked, (ask) => messagesIn(answers.get(ask)?.text() ?? ''));
            for (const answer of answers.values()) answer.leave();
          }),
        );
      }),
      { numRuns: scale(40, 8) },
    );
  },
  300_000,
);

function messagesIn(body: string): Said[] {
  if (body.startsWith('{')) return [JSON.parse(body)];
  return [...body.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => JSON.parse(data));
}
