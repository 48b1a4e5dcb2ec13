/** The GitHub Action: its file by the schema of such files, and its steps as a runner runs them. */

import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { validateAction, validateWorkflow } from '@action-validator/core';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { blocksOf } from '../../support/documents.ts';
import { serveGitHub } from '../../support/github.ts';
import { inFull } from '../../support/scale.ts';
import { BIN, fixture, ROOT, start, tempFolder } from '../../support/tapedeck.ts';

type Step = { id?: string; if?: string; shell: string; run: string; env: Record<string, string> };

type Action = {
  inputs: Record<string, { description: string; default?: string }>;
  outputs: Record<string, { value: string }>;
  runs: { using: string; steps: Step[] };
};

const TEXT = readFileSync(join(ROOT, 'action.yml'), 'utf8');
const ACTION = parse(TEXT) as Action;
const STEPS = ACTION.runs.steps;
const [FETCH, INSTALL, CI] = STEPS as [Step, Step, Step];

/** What an expression stands for; a step knows the inputs, and nothing else. */
function evaluated(text: string, inputs: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\{\{ inputs\.([\w-]+) \}\}/g, (_, name: string) => {
    const given = inputs[name] ?? ACTION.inputs[name]?.default;
    if (given === undefined) throw new Error(`no input ${name}`);
    return given;
  });
}

/** Runs a step as the runner does: its script in a file, by the shell's own command line, with nothing but its environment. */
async function runStep(step: Step, cwd: string, inputs: Record<string, string>, env: Record<string, string>) {
  const folder = tempFolder();
  const [script, output] = [join(folder, 'step.sh'), join(folder, 'output')];
  writeFileSync(script, step.run);
  writeFileSync(output, '');
  const own = Object.entries(step.env).map(([name, text]) => [name, evaluated(text, inputs)]);
  const run = start('bash', ['--noprofile', '--norc', '-eo', 'pipefail', script], {
    cwd,
    env: { ...env, ...Object.fromEntries(own), GITHUB_OUTPUT: output },
  });
  run.child.stdin.end();
  const { code, stdout, stderr } = await run.ended;
  const outputs = Object.fromEntries(
    readFileSync(output, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
  return { code, stdout: stdout.toString(), stderr, outputs };
}

/** An `npx` that runs this checkout, and notes what it was asked for. */
function fakeNpx(): { path: string; asked: () => string[] } {
  const folder = tempFolder();
  const log = join(folder, 'log');
  const npx = join(folder, 'npx');
  writeFileSync(
    npx,
    `#!/bin/bash\nprintf '%s\\n' "$@" > '${log}'\nexec '${process.execPath}' '${BIN}' "\${@:3}"\n`,
  );
  chmodSync(npx, 0o755);
  const path = `${folder}${delimiter}${process.env['PATH']}`;
  return { path, asked: () => (existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n') : []) };
}

function repository(): string {
  const cwd = tempFolder();
  mkdirSync(join(cwd, 'recordings'));
  const lines = readFileSync(join(ROOT, 'recordings/everything-stdio.ndjson'), 'utf8').split('\n');
  // Up to the first call and its answer.
  writeFileSync(join(cwd, 'recordings/a.ndjson'), `${lines.slice(0, 11).join('\n')}\n`);
  return cwd;
}

test('the file is one that GitHub takes', () => {
  expect(validateAction(TEXT)).toEqual({ actionType: 'action', errors: [] });
  expect(validateAction(TEXT.replace('shell: bash', 'shel: bash')).errors).not.toEqual([]);
  expect(ACTION.runs.using).toBe('composite');
});

test('it runs the version that it stands beside', () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  expect(ACTION.inputs['version']?.default).toBe(version);
});

test('no input is part of a script, where it could be more than a value', () => {
  for (const { run, shell, env } of STEPS) {
    expect(run).not.toContain('${{');
    expect(shell).toBe('bash');
    for (const name of run.matchAll(/\$\{?((?:INPUT|GITHUB)_\w+)/g))
      expect([...Object.keys(env), 'GITHUB_OUTPUT']).toContain(name[1]);
    for (const text of Object.values(env)) expect(text).toMatch(/^\$\{\{ inputs\.[\w-]+ \}\}$/);
  }
  const used = new Set([...TEXT.matchAll(/inputs\.([\w-]+)/g)].map(([, name]) => name));
  expect(used).toEqual(new Set(Object.keys(ACTION.inputs)));
});

inFull(
  'its main step checks, verifies, comments, and says by outputs and exit code what came of it',
  async () => {
    const cwd = repository();
    const api = await serveGitHub([]);
    const npx = fakeNpx();
    const event = join(tempFolder(), 'event.json');
    writeFileSync(event, '{"pull_request":{"number":7}}');
    const env = {
      PATH: npx.path,
      GITHUB_REPOSITORY: 'o/r',
      GITHUB_EVENT_PATH: event,
      GITHUB_API_URL: api.url,
    };
    const server = `'${process.execPath}' '${fixture('versions.js')}' 1`;
    const options = '--forbid=tool=echo\n\n--skip\ntool-arguments';
    const inputs = {
      recordings: 'recordings\n',
      server,
      base: '',
      options,
      token: 'secret-token',
      title: 'A "b" $(c)',
    };
    const { code, stdout, stderr, outputs } = await runStep(CI, cwd, inputs, env);
    expect(code, stderr).toBe(1);
    expect(outputs).toEqual({ 'exit-code': '1', sarif: 'tapedeck.sarif' });
    expect(npx.asked().slice(0, 3)).toEqual([
      '--yes',
      `mcp-tapedeck@${ACTION.inputs['version']?.default}`,
      'ci',
    ]);
    expect(stdout).toMatch(/^ {2}check {3}1 assertion broken$/m);
    expect(stdout).toMatch(/^ {2}verify {2}drift: /m);
    expect(stdout + stderr).not.toContain('secret-token');
    expect(api.comments[0]?.body).toContain('A "b" $(c): ');
    expect(JSON.parse(readFileSync(join(cwd, 'tapedeck.sarif'), 'utf8')).version).toBe('2.1.0');
  },
);

test('the package is fetched by a step of its own, which has no token; where it cannot be, nothing was checked', async () => {
  expect(STEPS.map(({ env }) => 'GITHUB_TOKEN' in env)).toEqual([false, false, true]);
  const npx = fakeNpx();
  const { code, stdout } = await runStep(INSTALL, repository(), {}, { PATH: npx.path });
  expect({ code, stdout }).toEqual({ code: 0, stdout: `${ACTION.inputs['version']?.default}\n` });
  const folder = tempFolder();
  writeFileSync(join(folder, 'npx'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  const path = `${folder}${delimiter}${process.env['PATH']}`;
  expect((await runStep(INSTALL, repository(), {}, { PATH: path })).code).toBe(2);
});

inFull('the first step fetches the base, and the next one compares with it', async () => {
  const [origin, cwd] = [repository(), join(tempFolder(), 'clone')];
  const git = async (folder: string, ...args: string[]) => {
    const run = start('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd: folder });
    const { code, stdout, stderr } = await run.ended;
    expect(code, stderr).toBe(0);
    return stdout.toString().trim();
  };
  await git(origin, 'init', '-q', '-b', 'main');
  await git(origin, 'add', '.');
  await git(origin, 'commit', '-qm', 'before');
  const base = await git(origin, 'rev-parse', 'HEAD');
  const file = join(origin, 'recordings/a.ndjson');
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll('Hello, tape.', 'Hello, disc.'));
  await git(origin, 'commit', '-qam', 'after');
  await git(origin, 'clone', '-q', '--depth=1', `file://${origin}`, cwd);
  const npx = fakeNpx();
  const inputs = { base, comment: 'false', options: '--severity=error', token: '' };
  const early = await runStep(CI, cwd, inputs, { PATH: npx.path });
  expect(early).toMatchObject({ code: 2, outputs: { 'exit-code': '2' } });
  expect(await runStep(FETCH, cwd, inputs, { PATH: npx.path })).toMatchObject({ code: 0, stderr: '' });
  const { code, stdout } = await runStep(CI, cwd, inputs, { PATH: npx.path });
  expect(code).toBe(0);
  expect(stdout).toContain('base "Hello, tape.", here "Hello, disc."');
  expect(npx.asked()).not.toContain('--comment');
});

inFull('a base that cannot be fetched is left to the next step to tell', async () => {
  const cwd = repository();
  expect((await runStep(FETCH, cwd, { base: 'nowhere' }, {})).code).toBe(0);
  expect((await runStep(CI, cwd, { base: 'nowhere', token: '' }, { PATH: fakeNpx().path })).code).toBe(2);
});

test('the workflow to paste is one that GitHub takes, and names inputs that there are', () => {
  const workflows = blocksOf('docs/ci.md').filter(({ language }) => language === 'yaml');
  expect(workflows.length).toBeGreaterThan(1);
  for (const { text } of workflows) {
    const isWhole = text.startsWith('name:') || text.startsWith('on:');
    const steps = (
      isWhole ? Object.values((parse(text) as { jobs: object }).jobs) : [{ steps: parse(text) }]
    ).flatMap((job) => (job as { steps: { uses?: string; with?: object }[] }).steps);
    if (isWhole) expect(validateWorkflow(text)).toMatchObject({ errors: [] });
    for (const { uses = '', with: given = {} } of steps)
      if (uses.includes('mcp-tapedeck'))
        for (const name of Object.keys(given)) expect(Object.keys(ACTION.inputs)).toContain(name);
  }
});
