import { expect, onTestFinished, test } from 'vitest';
import { createFaults, type Faults, readFaults } from '../../src/fault/faults.ts';
import type { Frame } from '../../src/protocol/wire/frame.ts';
import { scale } from '../support/scale.ts';

function faultsOf(fault: string[], more: { seed?: number; 'max-faults'?: number } = {}): Faults {
  const settings = readFaults({ fault, seed: 1, ...more }, 'record-stdio');
  if (settings === null) throw new Error('no faults');
  const faults = createFaults(settings);
  onTestFinished(faults.close);
  return faults;
}

function frame(channel: 'stdin' | 'stdout', message: object): Frame {
  const payload = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
  return {
    channel,
    at: 0,
    payload,
    lineEnd: '\n',
    size: payload.length,
    truncated: false,
    part: 'line',
    http: null,
  };
}

const call = (id: number, n: number, tool = 'search') =>
  frame('stdin', { id, method: 'tools/call', params: { name: tool, arguments: { n } } });

const answer = (id: number) => frame('stdout', { id, result: { content: [] } });

/** What was chosen for the answers of these calls, by their number; asked in one order, answered in another. */
function chosenFor(
  faults: Faults,
  asked: readonly number[],
  answered: readonly number[],
): Map<number, string> {
  for (const [i, n] of asked.entries()) expect(faults.choose(call(i, n))).toBeNull();
  const chosen = new Map<number, string>();
  for (const n of answered) {
    const fault = faults.choose(answer(asked.indexOf(n)));
    if (fault !== null) chosen.set(n, fault.effect.text);
  }
  return new Map([...chosen].sort(([a], [b]) => a - b));
}

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

test('equal calls get equal faults, whatever else runs and in whatever order', () => {
  const rules = ['tool=search delay=lognormal(200ms,0.6) p=0.5', 'tool=search error(-32000) p=0.5'];
  const inOrder = chosenFor(faultsOf(rules), numbers(40), numbers(40));
  const turned = chosenFor(faultsOf(rules), numbers(40).reverse(), numbers(40));
  expect(turned).toEqual(inOrder);
  const crowded = faultsOf(rules);
  for (const n of numbers(20)) crowded.choose(call(1000 + n, n, 'other'));
  expect(chosenFor(crowded, numbers(40), numbers(40).reverse())).toEqual(inOrder);
  expect(new Set(inOrder.values()).size).toBeGreaterThan(5);
  expect(chosenFor(faultsOf(rules, { seed: 2 }), numbers(40), numbers(40))).not.toEqual(inOrder);
});

test('what another rule does changes nothing for this one', () => {
  const alone = chosenFor(faultsOf(['tool=search drop p=0.3']), numbers(60), numbers(60));
  const both = chosenFor(faultsOf(['tool=other hold', 'tool=search drop p=0.3']), numbers(60), numbers(60));
  expect(both).toEqual(alone);
});

test('a call that comes again is decided anew', () => {
  const faults = faultsOf(['tool=search drop p=0.5']);
  const chosen = numbers(60).map((id) => {
    faults.choose(call(id, 7));
    return faults.choose(answer(id)) !== null;
  });
  expect(new Set(chosen)).toEqual(new Set([true, false]));
});

test('what differs from run to run is no part of the key: ids, progress tokens', () => {
  const run = (from: number) => {
    const faults = faultsOf(['tool=search drop p=0.5']);
    return numbers(40).map((i) => {
      const params = { name: 'search', arguments: { i }, _meta: { progressToken: from + i } };
      faults.choose(frame('stdin', { id: from + i, method: 'tools/call', params }));
      return faults.choose(answer(from + i)) !== null;
    });
  };
  expect(run(1)).toEqual(run(5000));
});

test('a chance is honoured over many calls', () => {
  const count = scale(3000);
  for (const p of [0, 0.05, 0.2, 0.5, 1]) {
    const faults = faultsOf([`tool=search drop p=${p}`]);
    let hits = 0;
    for (const n of numbers(count)) {
      faults.choose(call(n, n));
      if (faults.choose(answer(n)) !== null) hits += 1;
    }
    // Five standard deviations.
    expect(Math.abs(hits / count - p)).toBeLessThanOrEqual(5 * Math.sqrt((p * (1 - p)) / count));
  }
});

test('a delay that is drawn has its median, and never falls out of its bounds', () => {
  const times = (rule: string) => {
    const faults = faultsOf([rule]);
    const drawn = numbers(200).map((n) => {
      faults.choose(call(n, n));
      return faults.choose(answer(n))?.effect.waitMs ?? -1;
    });
    return drawn.sort((a, b) => a - b);
  };
  const median = times('delay=lognormal(200ms,0.6)')[100] ?? 0;
  expect(median).toBeGreaterThan(150);
  expect(median).toBeLessThan(260);
  const uniform = times('delay=uniform(100ms,400ms)');
  expect(uniform[0]).toBeGreaterThanOrEqual(100);
  expect(uniform.at(-1)).toBeLessThanOrEqual(400);
});

test('the first rule that holds counts, and no more faults are put in than allowed', () => {
  const first = faultsOf(['tool=search hold', 'drop']);
  first.choose(call(1, 1));
  expect(first.choose(answer(1))?.effect).toMatchObject({ text: 'hold', isHeld: true });
  const limited = faultsOf(['drop'], { 'max-faults': 3 });
  expect(chosenFor(limited, numbers(20), numbers(20)).size).toBe(3);
  expect(limited.endTexts()).toEqual(['3 faults were put in on purpose (rule 1: 3), --seed 1']);
});

test('a filter is asked of each message, with the call that it belongs to', () => {
  const faults = faultsOf([
    'status=error drop',
    'method=notifications/message hold',
    'tool=search text~secret garbage',
  ]);
  faults.choose(call(1, 1));
  expect(
    faults.choose(frame('stdout', { id: 1, error: { code: -1, message: 'no' } }))?.chosen.rule.number,
  ).toBe(1);
  faults.choose(call(2, 2));
  expect(faults.choose(answer(2))).toBeNull();
  faults.choose(call(3, 3));
  const secret = frame('stdout', { id: 3, result: { content: [{ type: 'text', text: 'a secret' }] } });
  expect(faults.choose(secret)?.chosen.rule.number).toBe(3);
  // `hold` is for answers.
  expect(faults.choose(frame('stdout', { method: 'notifications/message', params: {} }))).toBeNull();
});

test('answers that a fault makes up name their request by its own id', () => {
  for (const id of ['"a\\"b"', '9007199254740993', '"1"']) {
    const faults = faultsOf(['error(-32000,"x")']);
    const line = (channel: 'stdin' | 'stdout', text: string): Frame => ({
      ...frame(channel, {}),
      payload: Buffer.from(text),
    });
    faults.choose(line('stdin', `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`));
    const fault = faults.choose(line('stdout', `{"jsonrpc":"2.0","id":${id},"result":{}}`));
    expect(fault?.effect.payload?.toString()).toBe(
      `{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":"x"}}`,
    );
  }
});

test('the plan names each fault with its call, in an order of its own', () => {
  const plan = (order: readonly number[]) => {
    const settings = readFaults(
      { fault: ['tool=search drop p=0.5'], seed: 3, 'fault-plan': true },
      'record-stdio',
    );
    const faults = createFaults(settings as NonNullable<typeof settings>);
    onTestFinished(faults.close);
    chosenFor(faults, numbers(12), order);
    return faults.endTexts();
  };
  const lines = plan(numbers(12));
  expect(lines[0]).toMatch(/^plan: tools\/call search [0-9a-f]{6} #1: fault 1: drop$/);
  expect(plan(numbers(12).reverse())).toEqual(lines);
});
