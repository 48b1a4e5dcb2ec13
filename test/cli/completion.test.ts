import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { IS_FULL } from '../support/scale.ts';
import { BIN, ROOT, start, tapedeckInProcess, tempFolder } from '../support/tapedeck.ts';

/** A folder with `tapedeck` in it, as an installation would have it, and a store with a named session. */
async function install() {
  const folder = tempFolder();
  writeFileSync(join(folder, 'tapedeck'), `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`);
  chmodSync(join(folder, 'tapedeck'), 0o755);
  const env = { PATH: `${folder}${delimiter}${process.env['PATH']}`, TAPEDECK_DB: join(folder, 'r.db') };
  const recording = join(ROOT, 'recordings/everything-stdio.ndjson');
  await tapedeckInProcess(['import', recording, '--name', 'staging'], { env });
  return { folder, env };
}

/** How a shell takes the script, and how it says what it offers for a command line. */
const SHELLS: Record<string, { source: string; ask: (line: string) => string }> = {
  bash: {
    source: 'source <(tapedeck completion bash)',
    ask(line) {
      const words = line.split(' ');
      const array = words.map((word) => `'${word}'`).join(' ');
      return `COMP_WORDS=(${array}); COMP_CWORD=${words.length - 1}; _tapedeck_yargs_completions; printf '%s\\n' "\${COMPREPLY[@]}"`;
    },
  },
  fish: { source: 'tapedeck completion fish | source', ask: (line) => `complete -C '${line}'` },
};

describe.each(Object.entries(SHELLS))('%s', (shell, { source, ask }) => {
  const isThere = spawnSync(shell, ['--version']).status === 0;

  /** By its lines, what one shell offers for each. */
  async function offered(...lines: string[]): Promise<string[][]> {
    const { env } = await install();
    const script = [source, ...lines.flatMap((line) => [ask(line), 'echo ====='])].join('\n');
    const { stdout, stderr } = await start(shell, ['-c', script], { env }).ended;
    expect(stderr).toBe('');
    const answers = stdout.toString().split('=====\n').slice(0, -1);
    return answers.map((answer) =>
      answer
        .trim()
        .split('\n')
        .map((one) => one.split('\t')[0] ?? ''),
    );
  }

  test.runIf(isThere && IS_FULL)('completes commands', async () => {
    expect(await offered('tapedeck sho')).toEqual([['show']]);
  });

  test.runIf(isThere)('completes options and their choices', async () => {
    const [options, choices] = await offered('tapedeck export --fo', 'tapedeck export --format m');
    expect(options).toContain('--format');
    expect(choices).toEqual(expect.arrayContaining(['markdown', 'mermaid']));
  });

  test.runIf(isThere)('completes names of sessions', async () => {
    const lines = ['show st', 'diff latest st', 'check st', 'prune st'].map((words) => `tapedeck ${words}`);
    expect(await offered(...lines)).toEqual(lines.map(() => ['staging']));
  });

  test.runIf(isThere && IS_FULL)('offers no options where a name or a shell is to be written', async () => {
    const [names, shells, options] = await offered(
      'tapedeck show ',
      'tapedeck completion ',
      'tapedeck show -',
    );
    expect(names).toEqual(['latest', 'staging']);
    expect(shells?.toSorted()).toEqual(['bash', 'fish', 'zsh']);
    expect(options).toContain('--filter');
    expect(await offered('tapedeck help fil')).toEqual([['filter']]);
  });
});

test.runIf(spawnSync('zsh', ['--version']).status === 0)('zsh takes the script', async () => {
  const { env } = await install();
  const script =
    'autoload -U compinit && compinit -u -D; source <(tapedeck completion zsh); print $_comps[tapedeck]';
  const { stdout, stderr } = await start('zsh', ['-f', '-c', script], { env }).ended;
  expect([stdout.toString().trim(), stderr]).toEqual(['_tapedeck_yargs_completions', '']);
});

test('its help has examples that write a script', async () => {
  const { code, stdout } = await tapedeckInProcess(['completion', '--help']);
  expect(code).toBe(0);
  const examples = [...stdout.toString().matchAll(/^ {2}tapedeck (.*?) >/gm)].map(([, words = '']) => words);
  expect(examples).toEqual(['completion bash', 'completion zsh', 'completion fish']);
  for (const example of examples) {
    const script = await tapedeckInProcess(example.split(' '));
    expect(script.stdout.toString()).toContain('--get-yargs-completions');
  }
});

test('a shell that is not known, and a store that is not there, are no trouble', async () => {
  expect(await tapedeckInProcess(['completion', 'csh'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('bash, zsh, fish'),
  });
  const env = { TAPEDECK_DB: join(tempFolder(), 'none.db') };
  const { code, stdout } = await tapedeckInProcess(['--get-yargs-completions', 'tapedeck', 'show', ''], {
    env,
  });
  expect([code, stdout.toString().includes('--json')]).toEqual([0, true]);
});
