import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import envPaths from 'env-paths';
import { expect, test } from 'vitest';
import { KEYS } from '../../../src/config/keys.ts';
import { ownConfigPath } from '../../../src/config/location.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { cacheFolder, dataFolder } from '../../../src/store/file/path.ts';
import { plantSessions, wordOf } from '../../support/planted.ts';
import { sample } from '../../support/scale.ts';
import {
  fixture,
  listSessions,
  ROOT,
  showFrames,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

type Place = { cwd: string; env: Record<string, string>; own: string; project: string };

/** A home with a repository in it, and a working directory below that. */
function place(): Place {
  const home = tempFolder();
  const cwd = join(home, 'repository', 'deep', 'down');
  const config = join(home, 'config', 'tapedeck');
  for (const folder of [cwd, config, join(home, 'repository', '.git')])
    mkdirSync(folder, { recursive: true });
  const env = { HOME: home, XDG_CONFIG_HOME: join(home, 'config'), TAPEDECK_DB: '' };
  return {
    cwd,
    env,
    own: join(config, 'config.json'),
    project: join(home, 'repository', 'tapedeck.config.json'),
  };
}

async function configOf(
  { cwd, env }: Place,
  args: readonly string[] = [],
): Promise<Record<string, unknown[]>> {
  const { code, stdout, stderr } = await tapedeckInProcess(['config', '--json', ...args], { cwd, env });
  if (code !== 0) throw new Error(stderr);
  const rows = stdout.toString().split('\n').slice(0, -1);
  const settings = rows.map((row) => JSON.parse(row) as { key: string; value: string; from: string });
  return Object.fromEntries(settings.map(({ key }) => [key, settings.filter((one) => one.key === key)]));
}

async function refusal({ cwd, env }: Place, args: readonly string[] = ['list']): Promise<string> {
  const { code, stdout, stderr } = await tapedeckInProcess(args, { cwd, env });
  expect([code, stdout.toString()]).toEqual([2, '']);
  expect(stderr.split('\n')).toHaveLength(2);
  return stderr;
}

test('your own file is where the platform keeps configuration', () => {
  expect(ownConfigPath()).toBe(join(envPaths('tapedeck', { suffix: '' }).config, 'config.json'));
  expect(dataFolder(process.env)).toBe(envPaths('tapedeck', { suffix: '' }).data);
  expect(cacheFolder(process.env)).toBe(envPaths('tapedeck', { suffix: '' }).cache);
});

test('what is configured is shown with file, line and column; lists add up', async () => {
  const at = place();
  writeFileSync(
    at.own,
    '\uFEFF{\n  // Mine.\n  "db": "~/mine.db",\n  "retention": { "maxSize": "2gb" },\n  "ignore": ["$.a"],\n}\n',
  );
  writeFileSync(at.project, '{ "ignore": ["$.b", "$.c"] }');
  expect(await configOf(at)).toEqual({
    db: [{ key: 'db', value: join(at.env['HOME'] ?? '', 'mine.db'), from: `${at.own}:3:9` }],
    'retention.maxSize': [{ key: 'retention.maxSize', value: '2gb', from: `${at.own}:4:29` }],
    ignore: [
      { key: 'ignore', value: '$.a', from: `${at.own}:5:13` },
      { key: 'ignore', value: '$.b', from: `${at.project}:1:13` },
      { key: 'ignore', value: '$.c', from: `${at.project}:1:13` },
    ],
  });
});

test('the store: command line before environment before file', async () => {
  const at = place();
  const [inFile, inEnvironment, given] = [tempStore(), tempStore(), tempStore()];
  for (const [file, name] of [
    [inFile, 'in-file'],
    [inEnvironment, 'in-environment'],
    [given, 'given'],
  ] as const) {
    const args = ['import', join(ROOT, 'recordings/everything-stdio.ndjson'), '--name', name, '--db', file];
    await tapedeckInProcess(args, { env: at.env });
  }
  writeFileSync(at.own, JSON.stringify({ db: inFile }));
  const env = { ...at.env, TAPEDECK_DB: inEnvironment };
  const shown = async (args: string[], options: object) =>
    JSON.parse((await tapedeckInProcess(args, { cwd: at.cwd, ...options })).stdout.toString()).name;
  expect(await shown(['list', '--json'], { env: at.env })).toBe('in-file');
  expect(await shown(['list', '--json'], { env })).toBe('in-environment');
  expect(await shown(['list', '--json', '--db', given], { env })).toBe('given');
  expect(await shown(['--json', '--db', given, 'list'], { env: at.env })).toBe('given');
});

test('a recorder keeps to the configured limits, and its server gets its environment unchanged', async () => {
  const at = place();
  const db = tempStore();
  const store = openStore(db);
  plantSessions(store, [1e15, 1e15 + 1], 5);
  store.close();
  writeFileSync(at.own, JSON.stringify({ db, retention: { maxSessions: 1, keepErrors: true } }));
  const script = 'process.stdin.resume().on("end", () => console.log(process.env.TAPEDECK_DB))';
  const run = tapedeck(['record', '--name', 'live', '--', process.execPath, '-e', script], at);
  await until('the others are gone', async () => {
    const sessions = await listSessions(db);
    return sessions.length === 1 && sessions[0]?.name === 'live';
  });
  run.child.stdin.end();
  expect((await run.ended).stdout.toString()).toBe('\n');
});

test('prune deletes what it is told on its own command line, and nothing else', async () => {
  const at = place();
  const db = tempStore();
  const store = openStore(db);
  plantSessions(store, [1e15, 1e15 + 1, Date.now() * 1000], 5);
  store.close();
  writeFileSync(at.own, JSON.stringify({ db, retention: { maxSessions: 1 } }));
  expect(await refusal(at, ['prune'])).toMatch(/Expected what to delete/);
  await tapedeckInProcess(['prune', '--max-sessions', '2'], at);
  expect((await listSessions(db)).map(({ name }) => name)).toEqual([2, 1].map(wordOf));
});

const OFF = { redact: { off: true } };
const RULE = { redact: { rules: ['ticket=/TCK-\\d+/'] } };

test.each(
  sample([
    ['a rule of the project masks', {}, RULE, [], 'see [redacted:ticket:'],
    ['a path of the project masks', {}, { redact: { paths: ['$.text'] } }, [], '[redacted:path:'],
    ['meta of the project keeps no payload', {}, { redact: { capture: 'meta' } }, [], null],
    ['your own file turns redaction off', OFF, {}, [], 'see TCK-77 Bearer '],
    ['what a project wants masked is masked all the same', OFF, RULE, [], 'see [redacted:ticket:'],
    [
      'the command line turns it off, whatever the files want',
      {},
      RULE,
      ['--no-redact'],
      'see TCK-77 Bearer ',
    ],
    ['the command line masks, whatever your file wants', OFF, {}, ['--redact', '$.text'], '[redacted:path:'],
    ['a rule of yours is left out', { redact: { without: ['authorization'] } }, {}, [], 'see TCK-77 Bearer '],
  ]),
)('redaction: %s', async (_, own, project, args, wanted) => {
  const at = place();
  writeFileSync(at.own, JSON.stringify(own));
  writeFileSync(at.project, JSON.stringify(project));
  const db = tempStore();
  const server = ['--', process.execPath, fixture('cat.js')];
  const run = tapedeck(['record', '--db', db, ...args, ...server], at);
  run.child.stdin.end(`{"text":"see TCK-77 Bearer ${'FAKE'.repeat(8)}"}\n`);
  expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
  const store = openStore(db);
  const texts = store.prepare<[], string>('SELECT text FROM frame_text').pluck().all();
  store.close();
  expect(texts).toHaveLength(2);
  for (const text of texts) {
    if (wanted === null) expect(text).not.toContain('see');
    else expect(text).toContain(`{"text":"${wanted}`);
  }
});

test('scan and redact look for what a project’s rules name too', async () => {
  const at = place();
  const db = tempStore();
  const server = ['--', process.execPath, fixture('cat.js')];
  const run = tapedeck(['record', '--db', db, ...server], at);
  run.child.stdin.end('see TCK-77\n');
  await run.ended;
  expect((await tapedeckInProcess(['scan', '--db', db], at)).code).toBe(0);
  writeFileSync(at.project, JSON.stringify(RULE));
  expect((await tapedeckInProcess(['scan', '--db', db], at)).code).toBe(1);
  expect((await tapedeckInProcess(['redact', 'latest', '--db', db], at)).code).toBe(0);
  expect((await tapedeckInProcess(['scan', '--db', db], at)).code).toBe(0);
});

test('ignored paths of a project count for replay alone', async () => {
  const at = place();
  writeFileSync(at.project, '{ "ignore": ["no path"] }');
  expect(await refusal(at, ['replay', join(ROOT, 'recordings/everything-stdio.ndjson')])).toMatch(/--ignore/);
  expect(await refusal(at, ['show'])).toMatch(/There is no store/);
});

test('rules of a project mask what is recorded; a project’s file may have less captured, and never more', async () => {
  const at = place();
  const db = tempStore();
  writeFileSync(at.own, JSON.stringify({ db }));
  writeFileSync(at.project, JSON.stringify({ redact: { rules: ['badge=/BADGE-\\d+/'] } }));
  const record = async (...options: string[]) => {
    const run = tapedeck(['record', ...options, '--', process.execPath, fixture('cat.js')], at);
    run.child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"text":"BADGE-123"}}\n');
    expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
    return (await showFrames(db)).map(({ text = '' }) => text.includes('BADGE-123'));
  };
  expect(await record()).toEqual([false, false]);
  expect(await record('--no-redact')).toEqual([true, true]);
  writeFileSync(at.project, JSON.stringify({ redact: { capture: 'full' } }));
  expect(await refusal(at)).toMatch(/`redact.capture` cannot be set for a project/);
  writeFileSync(at.project, JSON.stringify({ redact: { capture: 'meta' } }));
  expect(await configOf(at)).toHaveProperty(['redact.capture']);
});

test.each(Object.entries(KEYS).filter(([, { inProject }]) => inProject === false))(
  'a project’s file cannot set %s',
  async (name, { kind }) => {
    const at = place();
    const samples = {
      store: 'x.db',
      text: 'x',
      size: '1mb',
      age: '1s',
      count: 0,
      share: '1%',
      flag: true,
      list: ['x'],
    };
    const [group = '', member] = name.split('.');
    const value = samples[kind];
    writeFileSync(
      at.project,
      JSON.stringify({ [group]: member === undefined ? value : { [member]: value } }),
    );
    const told = await refusal(at);
    expect(told).toContain(`\`${name}\` cannot be set for a project`);
    expect(told).toContain(at.own);
    // The same file is fine where it is named on purpose.
    expect(await configOf(at, ['--config', at.project])).toHaveProperty([name]);
  },
);

test.each([
  [
    '{ "retention": { "maxsize": "1gb" } }',
    /:1:18: Unknown key `retention.maxsize`\. Did you mean `retention\.maxSize`\? Known are: db, .*redact\.rules, /,
  ],
  [
    '{\n  "retention": {\n    "maxSize": "big"\n  }\n}',
    /:3:16: Expected a size after `retention\.maxSize`, got `big`/,
  ],
  ['{ "retention": "30d" }', /:1:16: Expected an object for `retention`/],
  ['{ "strict": "yes" }', /:1:13: Expected true or false for `strict`, got "yes"/],
  ['{ "ignore": [1] }', /:1:13: Expected a list of strings for `ignore`/],
  ['{ "db": "" }', /Expected a path or the URL of an engine, as a string for `db`/],
  ['{ "db": "a", "db": "b" }', /:1:14: `db` stands here twice/],
  ['{ "db": "a"', /:1:12: not valid JSON: close brace expected/],
  ['[]', /:1:1: Expected an object/],
  ['{ "constructor": 1 }', /:1:3: Unknown key `constructor`/],
  ['{ "\\u001b[2J": 1 }', /Unknown key `\\x1b\[2J`/],
])('%j is refused with its place', async (text, message) => {
  const at = place();
  writeFileSync(at.own, text);
  const told = await refusal(at);
  expect(told).toMatch(message);
  expect(told).toContain(`tapedeck: ${at.own}:`);
  expect(told).not.toContain('\u001b');
});

test('without configuration files a broken one does not matter', async () => {
  const at = place();
  writeFileSync(at.own, 'broken');
  expect(await refusal(at, ['list', '--no-config'])).toMatch(/There is no store/);
});

test('a named file that is not there is refused', async () => {
  const at = place();
  expect(await refusal(at, ['list', '--config', join(at.cwd, 'nowhere.json')])).toMatch(
    /cannot be read: ENOENT/,
  );
});

test('a file above the repository does not count, nor do options of the server', async () => {
  const at = place();
  writeFileSync(join(at.env['HOME'] ?? '', 'tapedeck.config.json'), 'broken');
  const db = tempStore();
  const server = ['--', process.execPath, fixture('cat.js'), '--config', 'broken', '--help'];
  const run = tapedeck(['record', '--db', db, ...server], at);
  run.child.stdin.end();
  expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
});

test('every key is an option of its commands', async () => {
  const helps = new Map<string, string>();
  for (const [name, { option, optionOf, commands }] of Object.entries(KEYS)) {
    for (const command of commands ?? ['list', 'export', 'prune']) {
      const help = helps.get(command) ?? (await tapedeckInProcess([command, '--help'])).stdout.toString();
      helps.set(command, help);
      expect(help, `${name} in ${command}`).toContain(`--${optionOf?.[command] ?? option} `);
    }
  }
});

test('faults come from a file that the command line names, and from none that is found', async () => {
  const at = place();
  writeFileSync(at.own, '{ "faults": ["tool=echo drop"] }');
  const plan = ['replay', join(ROOT, 'recordings/everything-stdio.ndjson'), '--seed', '1', '--fault-plan'];
  expect(await refusal(at, plan)).toContain('Expected `--fault` with `--seed`');
  const named = await tapedeckInProcess([...plan, '--config', at.own], at);
  expect(named.stdout.toString()).toMatch(/^plan: tools\/call echo [0-9a-f]{6} #1: fault 1: drop$/m);
});

test('the store may be an engine for what reads; what writes refuses it, and no password is shown', async () => {
  const at = place();
  const url = 'postgres://ann:hush@127.0.0.1:1/deck';
  writeFileSync(at.own, JSON.stringify({ db: ` ${url} ` }));
  const run = (...words: string[]) => tapedeckInProcess(words, { cwd: at.cwd, env: at.env });
  const reading = [['list'], ['show'], ['stats'], ['search', 'x'], ['check'], ['export'], ['scan'], ['tail']];
  for (const words of sample([
    ...reading,
    ['diff', 'a', 'b'],
    ['verify', 'a', '--', 'true'],
    ['replay', 'a'],
    ['mcp'],
  ])) {
    const { code, stderr } = await run(...words);
    expect([words, code, stderr]).toEqual([
      words,
      2,
      expect.stringContaining('ann@127.0.0.1:1/deck cannot be reached'),
    ]);
    expect(stderr).not.toContain('hush');
  }
  for (const words of sample([
    ['record', '--', 'true'],
    ['prune', '--older-than', '1d'],
    ['redact', 'a'],
    ['import', 'x.ndjson'],
    ['pack', '--older-than', '1d'],
    ['ship', '--to', url],
  ])) {
    const { code, stderr } = await run(...words);
    expect([words, code, stderr]).toEqual([
      words,
      2,
      expect.stringContaining('got the URL of an engine, from --db, TAPEDECK_DB or your configuration'),
    ]);
    expect(stderr).not.toContain('hush');
  }
  const shown = await configOf(at);
  expect(shown['db']).toEqual([
    { key: 'db', value: 'postgres://ann:…@127.0.0.1:1/deck', from: `${at.own}:1:7` },
  ]);
});
