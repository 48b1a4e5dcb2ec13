/** The walk of `docs/production.md`, typed into bash in an empty folder. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { type Block, blocksIn, sectionOf } from '../support/documents.ts';
import { freePort } from '../support/postgres.ts';
import { inFull } from '../support/scale.ts';
import { BIN, start, tempFolder, until } from '../support/tapedeck.ts';

const INSTALLING = 'npm install mcp-tapedeck\n';

/** What is typed, and what is to be seen then; undefined: nothing is shown of it. */
type Step = { typed: string; shown?: string };

function stepsOf(blocks: readonly Block[]): Step[] {
  return blocks.flatMap(({ language, text }, i): Step[] => {
    if (language !== 'sh') return [];
    const next = blocks[i + 1];
    return next?.language === 'text' ? [{ typed: text, shown: next.text }] : [{ typed: text }];
  });
}

/** What no two runs have alike: times, ids, and how long something took. `…` stands for any part of a line. */
const PASSING: readonly [what: RegExp, pattern: string][] = [
  [/\d{4}-\d\d-\d\dT[\d:]+\\\.\d+Z/g, '\\S+Z'],
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, '\\S+ [\\d:]+'],
  [/\b[0-9a-f]{12}\b/g, '[0-9a-f]{12}'],
  [/\d+\\\.\d s\b/g, '[\\d.]+ s'],
  [/ {2,}/g, ' +'],
  // A port of another length is cut elsewhere.
  [/…:\d+/g, '…'],
  [/…/g, '.*'],
];

function patternOf(shown: string): RegExp {
  const escaped = shown.trim().replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const pattern = PASSING.reduce((all, [what, like]) => all.replaceAll(what, () => like), escaped);
  return new RegExp(`^${pattern}$`);
}

inFull('the walk goes from nothing to a drained restart, as the page shows it', async () => {
  const folder = tempFolder();
  const ports = new Map<string, string>();
  for (const port of ['3001', '8808', '9464']) ports.set(port, String(await freePort()));
  const local = (text: string) =>
    text
      .replaceAll(/\b(?:3001|8808|9464)\b/g, (port) => ports.get(port) ?? '')
      // Long enough for what is done meanwhile.
      .replaceAll('20_000', '8_000');
  const [install, ...steps] = stepsOf(
    blocksIn(sectionOf('docs/production.md', '## From nothing to a drained restart')),
  );
  expect(install?.typed).toBe(INSTALLING);
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  symlinkSync(BIN, join(folder, 'node_modules/.bin/tapedeck'));

  const bash = start('bash', [], { cwd: folder });
  onTestFinished(() => {
    bash.child.stdin.end('kill -9 $(jobs -p) 2> /dev/null\n');
  });
  let count = 0;
  /** What bash writes about one step. */
  async function type(text: string): Promise<string> {
    count += 1;
    const [from, end] = [bash.stdout().toString().length, `-- end of ${count} --`];
    bash.child.stdin.write(`${local(text)}\necho '${end}'\n`);
    const said = () => bash.stdout().toString().slice(from);
    await until(`bash has done ${text}${bash.stderr()}`, () => said().includes(end));
    return said().slice(0, said().indexOf(end)).trim();
  }
  for (const { typed, shown } of steps) {
    let said = await type(typed);
    if (shown === undefined) continue;
    // A person takes a moment before looking, and may look again.
    const pattern = patternOf(local(shown).replaceAll('/home/me/recorder', folder));
    await until(`${typed} shows ${shown}, not ${said}`, async () => {
      if (!pattern.test(said)) said = await type(typed);
      return pattern.test(said);
    });
  }
  expect(steps.filter(({ shown }) => shown !== undefined).length).toBeGreaterThan(7);
  expect(bash.stderr()).toBe('');
});
