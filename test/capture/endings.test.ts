import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { inFull, sample } from '../support/scale.ts';
import {
  BIN,
  fixture,
  isRunning,
  latestSession,
  record,
  showFrames,
  start,
  tapedeck,
  tempFolder,
  tempStore,
  until,
} from '../support/tapedeck.ts';

test.each(sample([7, 0, 255]))('exit code %i is mirrored', async (wanted) => {
  const db = tempStore();
  const { code, signal } = await record(db, ['exit.js', 'code', String(wanted)]).ended;
  expect({ code, signal }).toEqual({ code: wanted, signal: null });
  expect(await latestSession(db)).toMatchObject({
    exitCode: wanted,
    signal: null,
    endReason: 'server-exited',
  });
});

test.each(sample(['SIGKILL', 'SIGTERM', 'SIGSEGV']))(
  'death by %s is mirrored by dying of the same',
  async (wanted) => {
    const db = tempStore();
    const { code, signal } = await record(db, ['exit.js', 'signal', wanted]).ended;
    expect({ code, signal }).toEqual({ code: null, signal: wanted });
    expect(await latestSession(db)).toMatchObject({ exitCode: null, signal: wanted });
  },
);

test.each(sample(['SIGPIPE', 'SIGXFSZ']))(
  'death by %s is mirrored, although Node ignores it',
  async (wanted) => {
    const kill = `kill -s ${wanted.slice(3)} $$`;
    const { code, signal } = await tapedeck(['record', '--db', tempStore(), '--', 'sh', '-c', kill]).ended;
    expect({ code, signal }).toEqual({ code: null, signal: wanted });
  },
);

test('a command that cannot be found is one clear line and exit 127', async () => {
  const db = tempStore();
  const { code, stdout, stderr } = await tapedeck(['record', '--db', db, '--', 'no-such-server', 'x']).ended;
  expect({ code, stdout: stdout.toString() }).toEqual({ code: 127, stdout: '' });
  expect(stderr).toBe(
    'tapedeck: cannot start `no-such-server`: no such command. Is it installed, and on the PATH?\n',
  );
  expect(await latestSession(db)).toMatchObject({ endReason: 'not-started', frames: 0 });
});

test('a command that is no program is one clear line and exit 126', async () => {
  const file = join(tempFolder(), 'notes.txt');
  writeFileSync(file, 'not a program', { mode: 0o600 });
  const { code, stderr } = await tapedeck(['record', '--db', tempStore(), '--', file]).ended;
  expect(code).toBe(126);
  expect(stderr).toMatch(
    /^tapedeck: cannot start `.*notes\.txt`: it is not an executable file, or access is denied\.\n$/,
  );
});

test.each(['', join('no-folder.txt', 'server')])(
  'a command that Node refuses to start, %j, is one clear line and exit 126',
  async (command) => {
    const cwd = tempFolder();
    writeFileSync(join(cwd, 'no-folder.txt'), '');
    const db = tempStore();
    const path = command === '' ? '' : join(cwd, command);
    const { code, stderr } = await tapedeck(['record', '--db', db, '--', path]).ended;
    expect(code).toBe(126);
    expect(stderr).toMatch(/^tapedeck: cannot start `[^\n]*\n$/);
    expect(await latestSession(db)).toMatchObject({ endReason: 'not-started', frames: 0 });
  },
);

inFull('a folder that was removed harms neither traffic nor recording', async () => {
  const db = tempStore();
  const folder = join(tempFolder(), 'removed');
  const script = 'mkdir "$1"; cd "$1"; rmdir "$1"; shift; exec "$@"';
  const args = [process.execPath, BIN, 'record', '--db', db, '--', 'sh', '-c', 'cat; exit 3'];
  const { child, ended } = start('sh', ['-c', script, 'sh', folder, ...args]);
  child.stdin.end('hello\n');
  const { code, stdout, stderr } = await ended;
  expect({ code, stdout: stdout.toString() }).toEqual({ code: 3, stdout: 'hello\n' });
  expect(stderr).not.toMatch(/^tapedeck:/m);
  expect(await latestSession(db)).toMatchObject({ dropped: 0, exitCode: 3 });
  const frames = (await showFrames(db)).filter(({ channel }) => channel !== 'stderr');
  expect(frames.map(({ text }) => text)).toEqual(['hello', 'hello']);
});

test.each(sample(['SIGTERM', 'SIGHUP'] as const))(
  '%s reaches the server, and its way of ending is mirrored',
  async (signal) => {
    const db = tempStore();
    const { child, stdout, ended } = record(db, ['signals.js']);
    await until('the server is ready', () => stdout().includes('ready'));
    child.kill(signal);
    const { code, stdout: said } = await ended;
    expect([code, said.toString()]).toEqual([3, `ready\n${signal}\n`]);
    expect((await latestSession(db)).endReason).toBe('signalled');
  },
);

test('one SIGINT reaches the server as it is', async () => {
  const { child, stdout, ended } = record(tempStore(), ['signals.js', '--obey']);
  await until('the server is ready', () => stdout().includes('ready'));
  child.kill('SIGINT');
  expect((await ended).code).toBe(3);
});

test('a command without -- before it is taken from its first word on, with its own options', async () => {
  const db = tempStore();
  const server = "console.log(process.argv.slice(1).join(' ')); process.exit(6)";
  const args = [
    'record',
    '--db',
    db,
    '--label',
    'a=b',
    process.execPath,
    '-e',
    server,
    'x',
    '-y',
    '--port=1',
  ];
  const { code, stdout } = await tapedeck(args).ended;
  expect([code, stdout.toString()]).toEqual([6, 'x -y --port=1\n']);
});

test.each(sample(['SIGINT', 'SIGUSR1', 'SIGUSR2'] as const))(
  'each %s reaches the server as it is, however many come: what the second means is the server’s to say',
  async (signal) => {
    const server = `let count = 0;
      process.on(process.argv[1], () => {
        count += 1;
        console.log('got ' + count);
        if (count === 3) process.stdout.write('cleaned up\\n', () => process.exit(5));
      });
      process.stdin.resume();
      console.log('ready');`;
    const db = tempStore();
    const args = ['record', '--db', db, '--', process.execPath, '-e', server, signal];
    const { child, stdout, ended } = tapedeck(args);
    await until('the server is ready', () => stdout().includes('ready'));
    for (const count of [1, 2, 3]) {
      child.kill(signal);
      await until('the server has got it', () => stdout().includes(`got ${count}`));
    }
    const { code, stdout: said } = await ended;
    expect([code, said.toString()]).toEqual([5, 'ready\ngot 1\ngot 2\ngot 3\ncleaned up\n']);
  },
);

test('a server that closes its input closes the client’s pipe, and the client is not said to have closed', async () => {
  const db = tempStore();
  const server = `require('node:fs').closeSync(0);
    process.on('SIGTERM', () => process.exit(4));
    setInterval(() => {}, 1000);
    console.log(process.pid);`;
  // A shell makes real pipes, where Node makes sockets.
  const script = `(trap '' PIPE; while echo x 2>&-; do :; done; echo refused >&2) | "$@"`;
  const args = [process.execPath, BIN, 'record', '--db', db, '--', process.execPath, '-e', server];
  const { stdout, stderr, ended } = start('sh', ['-c', script, 'sh', ...args]);
  await until('the client cannot write', () => stderr().includes('refused'));
  process.kill(Number(stdout()), 'SIGTERM');
  expect((await ended).code).toBe(4);
  expect((await latestSession(db)).endReason).toBe('server-exited');
});

test('a server that closes its output closes the client’s pipe, and may go on', async () => {
  const script = `"$@" | (cat; echo over >&2)`;
  const args = [
    process.execPath,
    BIN,
    'record',
    '--db',
    tempStore(),
    '--',
    process.execPath,
    fixture('half-close.js'),
  ];
  const { child, stderr, ended } = start('sh', ['-c', script, 'sh', ...args]);
  await until('the client sees the end', () => stderr().includes('over'));
  child.stdin.end();
  expect((await ended).code).toBe(0);
});

inFull(
  'no server is left behind when its client is killed, even one that ignores the end of its input',
  async () => {
    const db = tempStore();
    // A client of its own process, so that it can be killed: it starts tapedeck and passes on what it hears.
    const script = `require('node:child_process').spawn(process.execPath, process.argv.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] })
    .stdout.pipe(process.stdout)`;
    const args = ['-e', script, BIN, 'record', '--db', db, '--', process.execPath, fixture('deaf.js')];
    const client = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const server = await new Promise<number>((resolve) =>
      client.stdout.once('data', (text) => resolve(Number(text))),
    );
    expect(isRunning(server)).toBe(true);
    client.kill('SIGKILL');
    await until('the server has gone', () => !isRunning(server));
    await until('the session has ended', async () => (await latestSession(db)).endReason !== null);
    expect(await latestSession(db)).toMatchObject({ endReason: 'client-closed', signal: 'SIGTERM' });
  },
);

inFull(
  'a server that ignores SIGTERM is killed before its client loses patience and kills tapedeck',
  async () => {
    const { child, stdout, ended } = record(tempStore(), ['deaf.js', '--stubborn']);
    await until('the server has told its pid', () => stdout().includes('\n'));
    const server = Number(stdout().toString());
    // What the official clients do: close the input, wait, SIGTERM, wait two seconds, SIGKILL.
    child.stdin.end();
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(isRunning(server)).toBe(false);
  },
);
