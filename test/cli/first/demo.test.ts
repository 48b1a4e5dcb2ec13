import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { IS_FULL, inFull } from '../../support/scale.ts';
import { BIN, ROOT, start, tapedeck, tapedeckInProcess, tempFolder, until } from '../../support/tapedeck.ts';

/** The steps, as they must stand in what the demo prints, one after the other. */
function storyOf(name: string): RegExp[] {
  return [
    /recorded into (\S+\/demo\.db), nowhere else/,
    new RegExp(
      `^\\$ ${name} record --name demo --db \\S+/demo\\.db -- \\S*node\\S* \\S+/demo-server\\.js$`,
      'm',
    ),
    /client’s log {2}tools\/call ports: Bergen, Brest, Cork/,
    /server’s log {2}tides: tide Cork: answered/,
    /client’s log {2}tools\/call tide .*: no answer within 2 s/,
    new RegExp(`^\\$ ${name} show demo --db`, 'm'),
    /tools\/call tide/,
    new RegExp(`^\\$ ${name} check demo --db`, 'm'),
    /id-changed-type/,
    /That is the finding/,
    new RegExp(`^\\$ ${name} ui demo --db`, 'm'),
    /http:\/\/127\.0\.0\.1:\d+\/s\//,
  ];
}

function expectStory(printed: string, name: string): void {
  let rest = printed;
  for (const pattern of storyOf(name)) {
    const found = pattern.exec(rest);
    expect(found, `${pattern} in:\n${printed}`).not.toBeNull();
    rest = rest.slice((found?.index ?? 0) + (found?.[0].length ?? 0));
  }
}

/** Where temporary files go: the demo keeps its recording there. */
function ownPlace() {
  const temporary = tempFolder();
  return {
    temporary,
    env: {
      TMPDIR: temporary,
      TEMP: temporary,
      TMP: temporary,
      CI: '1',
      // Newer Node keeps compiled code there.
      HOME: tempFolder(),
      XDG_DATA_HOME: temporary,
    },
  };
}

inFull('the demo tells of a lost call and ends with the finding and the viewer', async () => {
  const { temporary, env } = ownPlace();
  const { code, stdout, stderr } = await tapedeck(['demo', '--no-open'], { env, cwd: temporary }).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expectStory(stdout.toString(), 'tapedeck');
  // Its one recording is the only thing that it leaves; what it has planted is the only thing that breaks a rule.
  const [folder = ''] = readdirSync(temporary);
  expect(readdirSync(temporary)).toHaveLength(1);
  const checked = await tapedeckInProcess([
    'check',
    'demo',
    '--json',
    '--db',
    join(temporary, folder, 'demo.db'),
  ]);
  const rules = new Set(
    [...checked.stdout.toString().matchAll(/"rule":"([\w-]+)"/g)].map(([, rule]) => rule),
  );
  expect([...rules]).toEqual(['id-changed-type']);
});

const hasScript = spawnSync('script', ['--version']).stdout?.toString().includes('util-linux') === true;

test.runIf(IS_FULL && hasScript)('on a terminal the link leads to the recording, until Ctrl+C', async () => {
  const { env } = ownPlace();
  // `exec`: a shell that stays would get the Ctrl+C as well, and end by it.
  const command = `exec '${process.execPath}' '${BIN}' demo --no-open`;
  const terminal = start('script', ['-qec', command, '/dev/null'], {
    env: { ...env, CI: '', NO_COLOR: '1' },
  });
  const link = () => /(http:\/\/127\.0\.0\.1:\d+\/\S*)/.exec(terminal.stdout().toString())?.[1];
  await until('the viewer has a link', () => link() !== undefined);
  expect((await fetch(link() ?? '')).status).toBe(200);
  terminal.child.stdin.write('\u0003');
  expect((await terminal.ended).code).toBe(0);
});

/** The package as `npm pack` makes it, where npx would have it: what it needs besides is linked. */
function fetchedPackage(): string {
  const modules = join(mkdtempSync(join(tempFolder(), 'x-')), '_npx/0123456789abcdef/node_modules');
  mkdirSync(modules, { recursive: true });
  const packed = join(modules, '..');
  const pack = ['pack', '--ignore-scripts', '--offline', '--silent', '--pack-destination', packed];
  const { stdout, stderr } = spawnSync('npm', pack, { cwd: ROOT, encoding: 'utf8' });
  const tarball = stdout.trim().split('\n').at(-1) ?? '';
  expect(tarball, stderr).toMatch(/\.tgz$/);
  spawnSync('tar', ['-xzf', join(packed, tarball), '-C', modules]);
  const own = join(modules, 'mcp-tapedeck');
  spawnSync('mv', [join(modules, 'package'), own]);
  const { dependencies } = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  return own;
}

inFull('the packed package alone has the demo and the pages, and wraps by npx', async () => {
  const own = fetchedPackage();
  const bin = join(own, 'bin/tapedeck.js');
  const { temporary, env } = ownPlace();
  const demo = await start(process.execPath, [bin, 'demo', '--no-open'], { env, cwd: temporary }).ended;
  expect({ code: demo.code, stderr: demo.stderr }).toEqual({ code: 0, stderr: '' });
  expectStory(demo.stdout.toString(), 'npx mcp-tapedeck');
  const page = await start(process.execPath, [bin, 'help', 'wrap'], { env }).ended;
  expect(page.stdout.toString()).toMatch(/^WRAPPING A CLIENT/);
  expect(existsSync(join(own, 'docs/conversation-light.png'))).toBe(false);

  const config = join(temporary, 'mcp.json');
  writeFileSync(config, '{"mcpServers": {"files": {"command": "files"}}}');
  const wrapped = await start(process.execPath, [bin, 'wrap', config], { env }).ended;
  expect(wrapped.stdout.toString()).toContain('`npx mcp-tapedeck unwrap ');
  const { version } = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'));
  const { command, args } = JSON.parse(readFileSync(config, 'utf8')).mcpServers.files;
  expect([command, ...args]).toEqual([
    'npx',
    '-y',
    `mcp-tapedeck@${version}`,
    'record',
    '--name',
    'files',
    '--',
    'files',
  ]);
});
