import { expect, test } from 'vitest';
import { commentMarker, commentText, isWorthTelling, MAX_COMMENT_BYTES } from '../../src/ci/comment.ts';
import { type CiFinding, type CiOutcome, exitCodeOf, headline } from '../../src/ci/findings.ts';

const ABOUT = { title: 'MCP recordings', version: '1.2.3', runUrl: 'https://github.com/o/r/actions/runs/1' };

const FINDING: CiFinding = {
  ...{ step: 'verify', rule: 'drift', severity: 'error', file: 'recordings/a.ndjson', session: 'abc' },
  ...{ seq: 9, line: 10, what: '2 differences', names: ['tools/call echo', '/content/0/text'] },
  detail: 'tools/call echo\n  /content/0/text changed: recorded "a", live "hunter2"',
};

function outcomeOf(findings: readonly CiFinding[], more: Partial<CiOutcome> = {}): CiOutcome {
  const recordings = [
    {
      file: 'recordings/a.ndjson',
      session: 'abc',
      unjudged: [],
      check: 'Nothing found.',
      verify: 'drift',
      diff: null,
    },
  ];
  return { recordings, findings, troubles: [], severity: 'warning', ...more };
}

test('a comment begins with its marker and says what was found where, without a value', () => {
  const text = commentText(outcomeOf([FINDING]), ABOUT);
  expect(text.split('\n')).toEqual([
    '<!-- mcp-tapedeck ci MCP%20recordings -->',
    '### :x: MCP recordings: 1 finding in 1 recording',
    '',
    '**Findings**',
    '',
    '- **error** `drift` in `recordings/a.ndjson`, frame 9: 2 differences `tools/call echo`, `/content/0/text`',
    '',
    '| recording | check | verify | diff |',
    '|---|---|---|---|',
    '| `recordings/a.ndjson` | Nothing found. | drift | – |',
    '',
    '',
    '<sub>tapedeck 1.2.3, [log of this run](https://github.com/o/r/actions/runs/1). Values stand in the recordings, never here.</sub>',
  ]);
});

test('what could not be checked comes first, and what decides nothing comes last', () => {
  const note = { ...FINDING, severity: 'note' as const };
  const troubles = [{ step: 'verify' as const, file: 'b.ndjson', message: 'The server has died.' }];
  const outcome = outcomeOf([note, FINDING], { troubles });
  const text = commentText(outcome, ABOUT);
  expect(exitCodeOf(outcome)).toBe(2);
  expect(headline(outcome)).toBe('1 finding in 1 recording; not everything could be checked');
  const order = ['Could not be checked', 'Findings', '| recording |', 'Also changed'].map((one) =>
    text.indexOf(one),
  );
  expect(order.every((at, i) => at > (order[i - 1] ?? 0))).toBe(true);
  expect(exitCodeOf(outcomeOf([note]))).toBe(0);
  expect(exitCodeOf(outcomeOf([note], { severity: 'note' }))).toBe(1);
  expect(isWorthTelling(outcomeOf([note]))).toBe(true);
  expect(isWorthTelling(outcomeOf([]))).toBe(false);
});

test('nothing recorded is markup, a mention, a link or a row of the table', () => {
  const hostile = [
    '@everyone `#1`\n| a | b |',
    '<img src=x onerror=alert(1)>',
    '```\n# no',
    '\u001b[31m\u202e',
    '',
  ];
  const text = commentText(
    outcomeOf([{ ...FINDING, names: hostile, file: 'a|`b`.ndjson' }], {
      recordings: [
        {
          file: 'a|`b`.ndjson',
          session: null,
          unjudged: ['frames | <b> of `it`'],
          check: 'ok',
          verify: null,
          diff: null,
        },
      ],
    }),
    ABOUT,
  );
  const line = text.split('\n').find((one) => one.startsWith('- **error**')) ?? '';
  // Outside of code there is none of it.
  const outside = line.replaceAll(/(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)/g, '');
  expect(outside).toBe('- **error**  in , frame 9: 2 differences , , , , ');
  expect(text).toContain('| ``a\\|`b`.ndjson`` |');
  expect(text).not.toContain('\u001b');
  expect(text.split('\n').filter((one) => one.startsWith('|'))).toHaveLength(3);
});

test('a title cannot end the marker', () => {
  const marker = commentMarker('a --> <b> --');
  expect(marker.match(/-->/g)).toHaveLength(1);
  expect(marker.slice(4, -3)).not.toContain('--');
});

test('a comment is never longer than GitHub takes, and says how much it leaves out', () => {
  const wide = { ...FINDING, names: ['\u{1f600}'.repeat(150), 'é'.repeat(150)] };
  for (const count of [10, 100, 3000]) {
    const text = commentText(outcomeOf(Array(count).fill(wide)), ABOUT);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_COMMENT_BYTES);
    expect(text.length).toBeLessThanOrEqual(65_536);
    expect(text.startsWith(commentMarker('MCP recordings'))).toBe(true);
    expect(text).toMatch(/<\/sub>$/);
    const listed = text.match(/^- \*\*error/gm)?.length ?? 0;
    const left = Number(/… and ([\d,]+) lines more/.exec(text)?.[1]?.replace(',', '') ?? 0);
    // The headings and the table are lines, too.
    expect(listed + left >= count, `${listed} + ${left} of ${count}`).toBe(true);
    if (count === 3000) expect(Buffer.byteLength(text)).toBeGreaterThan(60_000);
  }
});
