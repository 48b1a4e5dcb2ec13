import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
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

/** What the shell offers for a command line, as the shell itself says it. */
const ASK: Record<string, (line: string) => string[]> = {
  bash: (line) => {
    const words = line.split(' ');
    const array = words.map((word) => `'${word}'`).join(' ');
    return [
      '-c',
      `source <(tapedeck completion bash); COMP_WORDS=(${array}); COMP_CWORD=${words.length - 1}; _tapedeck_yargs_completions; printf '%s\\n' "\${COMPREPLY[@]}"`,
    ];
  },
  fish: (line) => ['-c', `tapedeck completion fish | source; complete -C '${line}'`],
};

describe.each(Object.keys(ASK))('%s', (shell) => {
  const isThere = spawnSync(shell, ['--version']).status === 0;

  async function offered(line: string): Promise<string[]> {
    const { env } = await install();
    const { stdout, stderr } = await start(shell, ASK[shell]?.(line) ?? [], { env }).ended;
    expect(stderr).toBe('');
    return stdout
      .toString()
      .trim()
      .split('\n')
      .map((one) => one.split('\t')[0] ?? '');
  }

  test.runIf(isThere)('completes commands', async () => {
    expect(await offered('tapedeck sh')).toEqual(['show']);
  });

  test.runIf(isThere)('completes options and their choices', async () => {
    expect(await offered('tapedeck export --fo')).toContain('--format');
    expect(await offered('tapedeck export --format m')).toEqual(
      expect.arrayContaining(['markdown', 'mermaid']),
    );
  });

  test.runIf(isThere)('completes names of sessions', async () => {
    expect(await offered('tapedeck show st')).toEqual(['staging']);
    expect(await offered('tapedeck diff latest st')).toEqual(['staging']);
    expect(await offered('tapedeck check st')).toEqual(['staging']);
    expect(await offered('tapedeck prune st')).toEqual(['staging']);
  });

  test.runIf(isThere)('offers no options where a name or a shell is to be written', async () => {
    expect(await offered('tapedeck show ')).toEqual(['latest', 'staging']);
    expect((await offered('tapedeck completion ')).toSorted()).toEqual(['bash', 'fish', 'zsh']);
    expect(await offered('tapedeck show -')).toContain('--filter');
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
