import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { inFull } from '../../support/scale.ts';
import { record, tapedeck, tapedeckInProcess, tempStore } from '../../support/tapedeck.ts';

type Call = { tool: string; args: object };

/** One run of a scenario whose client says when it calls, and makes ids of its own. */
function scenario(now: number): Call[] {
  return [
    { tool: 'search', args: { city: 'Bern', now } },
    { tool: 'search', args: { city: 'Lima', now: now + 7 } },
    {
      tool: 'order',
      args: { items: [1, 2].map((count) => ({ id: randomUUID(), what: 'umbrella', count })) },
    },
    { tool: 'pay', args: { amount: 12 } },
  ];
}

function linesOf(calls: readonly Call[]): string {
  const lines = calls.map(({ tool: name, args }, id) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } }),
  );
  return lines.map((line) => `${line}\n`).join('');
}

async function recordRun(db: string, name: string, calls: readonly Call[]): Promise<void> {
  const { child, ended } = record(db, ['counter.js'], ['--name', name]);
  child.stdin.end(linesOf(calls));
  await ended;
}

async function recordTwice(): Promise<string> {
  const db = tempStore();
  await recordRun(db, 'monday', scenario(1_770_000_000));
  await recordRun(db, 'tuesday', scenario(1_770_086_400));
  return db;
}

const SUGGESTED = ["--ignore-tool 'search:$.now'", "--ignore-tool 'order:$.items[*].id'"];

inFull(
  'what differs between two recordings of one scenario is printed as options, with which a replay answers a third',
  async () => {
    const db = await recordTwice();
    const { code, stdout, stderr } = await tapedeckInProcess([
      ...['replay', 'monday', '--db', db, '--suggest-ignore', 'tuesday'],
    ]);
    expect({ code, lines: stdout.toString().split('\n') }).toEqual({ code: 0, lines: [...SUGGESTED, ''] });
    expect(stderr).toContain(
      "--ignore-tool 'search:$.now': differs in 2 of 2 pairs of calls, as in 1770000000 in the one, 1770086400 in the other",
    );

    const options = SUGGESTED.map((line) => line.replace(/^(\S+) '(.*)'$/, '$1=$2'));
    const replay = tapedeck(['replay', 'monday', '--db', db, '--fail-on-miss', ...options]);
    replay.child.stdin.end(linesOf(scenario(1_770_172_800)));
    const ended = await replay.ended;
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({ code: 0, stderr: '' });
    expect(ended.stdout.toString().split('\n')).toHaveLength(5);
  },
);

inFull(
  'as JSON each suggestion says how often it differs, and what is ignored already is not suggested',
  async () => {
    const db = await recordTwice();
    const { stdout } = await tapedeckInProcess([
      ...['replay', 'monday', '--db', db, '--suggest-ignore', 'tuesday', '--json'],
      ...['--ignore-tool', 'order:$.items'],
    ]);
    expect(
      stdout
        .toString()
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
    ).toEqual([
      {
        option: SUGGESTED[0],
        method: 'tools/call',
        target: 'search',
        differing: 2,
        pairs: 2,
        first: '1770000000',
        second: '1770086400',
      },
    ]);
  },
);

inFull(
  'calls that the other recording has not are counted, and equal recordings suggest nothing',
  async () => {
    const db = tempStore();
    const calls = scenario(1);
    await recordRun(db, 'long', calls);
    await recordRun(db, 'short', calls.slice(0, 3));
    const { code, stdout, stderr } = await tapedeckInProcess([
      ...['replay', 'long', '--db', db, '--suggest-ignore', 'short'],
    ]);
    expect({ code, stdout: stdout.toString() }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toContain('nothing to ignore');
    expect(stderr).toContain('without a counterpart that is like them: 1 of the one, 0 of the other');
  },
);
