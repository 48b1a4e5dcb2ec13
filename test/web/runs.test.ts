import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runOfThree } from '../support/run-store.ts';
import { tapedeckInProcess, tempFolder } from '../support/tapedeck.ts';
import { startUi } from '../support/ui.ts';

test('the viewer tells of runs what the command line tells', async () => {
  const db = await runOfThree();
  const ui = await startUi(db);
  const { runs } = await ui.json('/api/runs');
  const listed = await tapedeckInProcess(['list', '--by', 'run', '--json', '--db', db]);
  expect(runs).toEqual([JSON.parse(listed.stdout.toString())]);

  const run = await ui.json(`/api/runs/${runs[0].run}`);
  expect(run.stretches).toHaveLength(2);
  expect(run.stretch).toBe(2);
  expect(run.calls.map(({ target }: { target: string }) => target)).toEqual(['later']);
  const first = await ui.json(`/api/runs/${runs[0].run}?stretch=1`);
  expect(first.calls.map(({ lane, target }: { lane: number; target: string }) => [lane, target])).toEqual([
    [0, 'read'],
    [1, 'search'],
    [1, 'search'],
    [2, 'query'],
  ]);
  expect(first.calls[1].next).toEqual({ call: 2, isSame: true, after: 500_000 });
  const page = await ui.json(`/api/runs/${runs[0].run}?stretch=1&after=1&limit=2`);
  expect([page.calls, page.next]).toEqual([first.calls.slice(1, 3), 3]);
  expect(first.next).toBe(null);
  const failed = await ui.json(`/api/runs/${runs[0].run}?filter=status%3Dtool-error`);
  expect(failed.calls.map(({ target }: { target: string }) => target)).toEqual(['search']);
  const whole = await ui.json(`/api/runs/latest?gap=60`);
  expect(whole.stretches).toHaveLength(1);
});

test('what is asked wrongly of a run is said', async () => {
  const ui = await startUi(await runOfThree());
  const errors = await Promise.all(
    ['nobody', 'latest?stretch=3', 'latest?gap=0', 'latest?offset=x'].map(async (path) => {
      const answer = await ui.get(`/api/runs/${path}`);
      const { error } = (await answer.json()) as { error: { message: string } };
      return [answer.status, error.message];
    }),
  );
  expect(errors).toEqual([
    [404, 'No run has the id or name `nobody`. See: tapedeck list --by run'],
    [400, expect.stringContaining('from 1 to 2 as `stretch`')],
    [400, expect.stringContaining('as `gap`')],
    [400, expect.stringContaining('like 1:-2500000, got `x`')],
  ]);
});

test('an offset moves one of two clocks', async () => {
  const db = await runOfThree();
  const file = join(tempFolder(), 'elsewhere.ndjson');
  const session = {
    ...{
      name: 'elsewhere',
      basis: 'stdio-process',
      transport: 'stdio',
      target: 'x',
      labels: { run: 'demo' },
    },
    startedAt: '2026-11-20T10:00:00Z',
  };
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'far' } };
  const lines = [
    { tapedeck: 1, session },
    { channel: 'stdin', message: call },
  ];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await tapedeckInProcess(['import', file, '--db', db]);
  const ui = await startUi(db);
  const { clocks, lanes } = await ui.json('/api/runs/demo?stretch=1');
  expect(clocks).toHaveLength(2);
  const far = lanes.find(({ name }: { name: string }) => name === 'elsewhere');
  const moved = await ui.json(`/api/runs/demo?stretch=1&offset=${far.clock}:-1000000`);
  expect(moved.calls[0].target).toBe('far');
});
