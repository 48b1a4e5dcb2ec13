/** What README and docs show of the commands is what the commands print. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ACTS } from './support/acts.ts';
import { PAGES, shownCommands } from './support/documents.ts';
import { sample } from './support/scale.ts';
import { fill, openStage, perform } from './support/stage.ts';

let template = '';
beforeAll(() => {
  vi.stubEnv('TZ', 'UTC');
  template = mkdtempSync(join(tmpdir(), 'tapedeck-shown-'));
  fill(template);
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(template, { recursive: true, force: true });
});

/** What no two runs have alike, for commands that talk to something live. Widths of columns follow it. */
const PASSING: readonly [what: RegExp, name: string][] = [
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, 'TIME'],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME'],
  [/^ +\d+\.\d{3}(?= )/gm, 'SINCE'],
  [/\d+(?:\.\d+)? (?:µs|ms|s)\b/g, 'DURATION'],
  [/\bpid \d+/g, 'PID'],
  [/(?<=127\.0\.0\.1:)\d+/g, 'PORT'],
  [/\d+(?:\.\d)? [kM]B/g, 'SIZE'],
  [/ {2,}/g, '  '],
];

function comparable(text: string, isLive: boolean): string {
  const trimmed = `${text.trimEnd()}\n`;
  if (!isLive) return trimmed;
  return PASSING.reduce((all, [what, name]) => all.replaceAll(what, name), trimmed);
}

/** A line `…` stands for any lines, within a line for any part of it; ids of sessions are new in each store. */
function patternOf(shown: string): RegExp {
  // Long JSON is set in several lines, so that it can be read.
  const joined = shown.startsWith('{"') ? shown.replaceAll(/\n (?=\S)/g, '') : shown;
  const lines = joined.split('\n').map((line) => (line === '…' ? line : escaped(line)));
  const text = lines.join('\n').replaceAll(/(?<=^|\n)…(?:\n|$)/g, '(?:.*\n)*?');
  return new RegExp(`^${text.replaceAll('…', '.*').replaceAll(/\b[0-9a-f]{12}\b/g, '[0-9a-f]{12}')}\\s*$`);
}

/** Null where what is shown was printed; else the first of its lines that was not, or not there. */
function firstMissing(shown: string, printed: string): string | null {
  if (patternOf(shown).test(printed)) return null;
  const lines = shown.split('\n');
  const wrong = lines.findIndex((_, i) => !patternOf(`${lines.slice(0, i + 1).join('\n')}\n…`).test(printed));
  return lines[wrong] ?? 'more was printed than is shown';
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

const SHOWN = PAGES.map((page) => [page, shownCommands(page)] as const).filter(
  ([, { length }]) => length > 0,
);

test.each(sample(SHOWN))('what %s shows is what the commands print', async (_, commands) => {
  const stage = openStage(template);
  for (const { command, shown } of commands) {
    const act = ACTS[command] ?? {};
    const isLive = act.isLive === true;
    const printed = comparable(await perform(stage, command, act), isLive);
    const missing = firstMissing(comparable(shown, isLive), printed);
    expect(missing, `$ ${command}\n${printed}`).toBeNull();
  }
});

test('every command that is shown stands above its output, and no preparation is left over', () => {
  const commands = SHOWN.flatMap(([, shown]) => shown);
  expect(commands.length).toBeGreaterThan(35);
  for (const { command, shown } of commands) expect(shown, command).not.toBe('');
  const named = new Set(commands.map(({ command }) => command));
  for (const command of Object.keys(ACTS)) expect(named).toContain(command);
});
