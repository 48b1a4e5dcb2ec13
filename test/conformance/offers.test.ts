import { expect, test } from 'vitest';
import { notOffered } from './not-offered.js';
import { disagreements } from './offers.js';

const ROWS = [
  {
    scenario: 'tools-call-image',
    check: 'image',
    reason: 'fixtures',
    says: /not found/,
    revisions: ['2025-11-25'],
  },
  { scenario: 'tasks', check: 'one', reason: 'no tasks', says: /^$/, revisions: ['2026-07-28'] },
];
const failed = (id: string, errorMessage?: string) => [
  { id, status: 'FAILURE', ...(errorMessage === undefined ? {} : { errorMessage }) },
];

test('what the list names may fail in those words, and nothing else', () => {
  const listed = new Map([
    ['tools-call-image', failed('image', 'Tool x not found')],
    ['ping', [{ id: 'ping', status: 'SUCCESS' }]],
  ]);
  expect(disagreements(listed, ROWS, '2025-11-25')).toEqual([]);
  const more = new Map([...listed, ['ping', failed('ping', 'no answer')]]);
  expect(disagreements(more, ROWS, '2025-11-25')).toEqual(['ping ping: FAILURE no answer']);
  const otherwise = new Map([['tools-call-image', failed('image', 'crashed')]]);
  expect(disagreements(otherwise, ROWS, '2025-11-25')).toEqual([
    'tools-call-image image: FAILURE crashed',
    expect.stringContaining('tools-call-image image: listed as not offered (fixtures)'),
  ]);
});

test('a row whose scenario passes, or is not run, holds no longer', () => {
  const passed = new Map([['tasks', [{ id: 'one', status: 'SUCCESS' }]]]);
  expect(disagreements(passed, ROWS, '2026-07-28')).toEqual([expect.stringContaining('tasks one: listed')]);
  expect(disagreements(new Map(), ROWS, '2026-07-28')).toEqual([
    expect.stringContaining('tasks one: listed'),
  ]);
});

test('another check of a scenario that the list names has to pass', () => {
  const both = new Map([
    ['tools-call-image', [...failed('image', 'not found'), ...failed('schema', 'not found')]],
  ]);
  expect(disagreements(both, ROWS, '2025-11-25')).toEqual(['tools-call-image schema: FAILURE not found']);
});

test('the list names each check once a revision', () => {
  const names = notOffered.flatMap(({ scenario, check, revisions }) =>
    revisions.map((one: string) => `${scenario} ${check} ${one}`),
  );
  expect(new Set(names).size).toBe(names.length);
});
