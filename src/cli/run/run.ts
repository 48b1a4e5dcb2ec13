/** `tapedeck run -- <client>`: starts a client whose traffic to the servers named goes through a forward proxy, and ends as it ends. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Argv } from 'yargs';
import { type Authority, makeAuthority } from '../../capture/forward/authority.ts';
import { clientEnvironment } from '../../capture/forward/environment.ts';
import { readOnward } from '../../capture/forward/onward.ts';
import { keepRenewed } from '../../capture/forward/renewal.ts';
import { dieBy, forwardSignals, spawn, whyNotStarted } from '../../capture/stdio/child.ts';
import { clientOfProgram } from '../../clients/clients.ts';
import { serverUrlsOf } from '../../clients/ports.ts';
import { findTargets } from '../../clients/targets.ts';
import { TapedeckError } from '../../errors.ts';
import { ownUrl } from '../../net/listen.ts';
import { type Command, type Io, ignoreErrors } from '../io.ts';
import { thisKeeper, thisMachine } from '../machine.ts';
import { yargsOptions } from '../record/command.ts';
import { type Desk, openDesk, reloadAtHangUp, STRICT_REFUSED } from '../record/desk.ts';
import {
  type ForwardRecording,
  hasTls,
  NO_BROWSER,
  passedText,
  sayCautions,
  startForwardRecording,
} from '../record/forward.ts';
import {
  FORWARD_OPTIONS,
  hostsOf,
  type Named,
  type RawForwardOptions,
  readNamed,
} from '../record/forward-options.ts';
import { HTTP_OPTIONS } from '../record/http-options.ts';
import {
  checkRecordOptions,
  type RawRecordOptions,
  RECORD_OPTIONS,
  type RecordOptions,
  rereadable,
} from '../record/options.ts';

type Options = RawRecordOptions & RawForwardOptions & { insecure?: boolean | undefined };

export const runClientCommand: Command<Options> = {
  command: 'run',
  describe: 'Start a client, and record what it says to HTTP servers, whose URLs it keeps',
  builder: (args: Argv) =>
    args
      .usage(
        '$0 run [options] -- <client> [args…]\n\nStarts the client with the environment by which Node, Python, curl and Go go through a proxy, for this process alone. What it says to the servers of --forward is recorded; all else passes unread. Without --forward: the servers in the client’s own config, if tapedeck knows it.\nMore: $0 help forward',
      )
      .options(yargsOptions({ ...RECORD_OPTIONS, ...FORWARD_OPTIONS, insecure: HTTP_OPTIONS.insecure }))
      .example('$0 run -- claude', 'The servers of its config, with their own URLs, tokens and logins')
      .example(
        '$0 run --forward https://api.example.com/mcp -- node client.js',
        'Any client; Node’s own fetch goes through a proxy from Node 22.21 and 24 on',
      )
      .example(
        '$0 run --tunnel api.example.com -- claude',
        'All but one, which insists on its own certificates',
      )
      .epilog(
        'Exits with the client’s exit code, or dies by its signal; 127 if the command cannot be found.',
      ) as Argv<Options>,
  async run(argv, io) {
    const { '--': words = [] } = argv as Options & { '--'?: string[] };
    const [command, ...args] = words;
    if (command === undefined)
      throw new TapedeckError(
        'usage',
        'Expected the client’s command after `--`. Example: tapedeck run --forward https://api.example.com/mcp -- node client.js',
      );
    const named = readNamed(argv.forward ?? configuredUrls(io, command), argv.tunnel);
    await runClient(io, checkRecordOptions(argv), { named, isInsecure: argv.insecure ?? false }, [
      command,
      ...args,
    ]);
  },
};

/** The servers of a client's own config. Throws `TapedeckError` where there are none, or the client is not known. */
function configuredUrls(io: Io, command: string): string[] {
  const client = clientOfProgram(command);
  if (client === null)
    throw new TapedeckError(
      'usage',
      `Expected the servers to record, because the config of \`${command}\` is not known. Example: tapedeck run --forward https://api.example.com/mcp -- ${command}`,
    );
  const keeper = thisKeeper(io);
  const known = keeper.all().map(({ file }) => file);
  const targets = findTargets(client.id, thisMachine(io), known);
  const urls = targets.flatMap((target) => serverUrlsOf(target, keeper, io.cwd()));
  if (urls.length > 0) return urls;
  throw new TapedeckError(
    'not-found',
    `The config of ${client.title} has no server with a URL. Looked into: ${targets.map(({ file }) => file).join(', ')}. Name one: --forward https://api.example.com/mcp`,
  );
}

type Forward = { named: Named; isInsecure: boolean };

/** How long what the client has left open may go on, once it has ended. */
const GRACE_MS = 500;

async function runClient(
  io: Io,
  options: RecordOptions,
  { named, isInsecure }: Forward,
  words: readonly [string, ...string[]],
): Promise<void> {
  ignoreErrors(io.stderr);
  const { write, writeAll } = createWriting(io);
  const authority = hasTls(named) ? await makeAuthority(hostsOf(named)) : null;
  const folder = mkdtempSync(join(tmpdir(), 'tapedeck-run-'));
  let desk: Desk | undefined;
  let endRenewal = () => {};
  try {
    desk = await openDesk(io, options, NO_BROWSER, write);
    let stop = () => {};
    const forward = { ...FOR_ONE, named, isInsecure, authority, onward: readOnward(io.env) };
    const recording = await startForwardRecording(desk, options, forward, () => stop());
    let hasFailed = recording === null;
    if (recording === null) return io.exit(STRICT_REFUSED);
    stop = () => {
      hasFailed = true;
      recording.capture.cut();
    };
    sayCautions(desk, forward);
    desk.operations?.setObstacle(null);
    const proxy = ownUrl(recording.capture.address, 'http', '/').origin;
    const environment = (certificate: string | null) =>
      clientEnvironment({ proxy, certificate, hosts: hostsOf(named), folder, env: io.env });
    const own = environment(authority?.certificate ?? null);
    endRenewal = renewForOne(desk, authority, recording, hostsOf(named), environment);
    const hangUp = hearingHangUp(desk, recording, options);
    const end = await runToEnd(words, { ...io.env, ...own }, hangUp);
    await recording.capture.stop();
    await recording.close();
    desk.shipping?.atEnd();
    sayEnd(desk, recording, named, words[0], end);
    tidy();
    if (hasFailed) io.exit(STRICT_REFUSED);
    else if (end.signal !== null) dieBy(end.signal);
    else io.exit(end.exitCode ?? (end.spawnError?.code === 'ENOENT' ? 127 : 126));
  } finally {
    tidy();
  }

  /** Before this process ends, and whatever fails. */
  function tidy(): void {
    endRenewal();
    desk?.operations?.close();
    writeAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The proxy of one client. */
const FOR_ONE = { listen: { host: '127.0.0.1', port: 0 }, password: null, graceMs: GRACE_MS };

/** Helps what the client starts late: it has read what it trusts already. Returns how to end it. */
function renewForOne(
  { log }: Desk,
  authority: Authority | null,
  recording: ForwardRecording,
  hosts: readonly string[],
  publish: (certificates: string) => unknown,
): () => void {
  if (authority === null) return () => {};
  const renewal = keepRenewed({
    ...{ authority, next: null, now: Date.now, warn: log.warn },
    makeNext: () => makeAuthority(hosts),
    publish: (certificates) => void publish(certificates),
    use: recording.useAuthority,
  });
  return renewal.end;
}

/** What SIGHUP does; undefined: it is the client's. */
function hearingHangUp(
  desk: Desk,
  recording: ForwardRecording,
  options: RecordOptions,
): (() => void) | undefined {
  const argv = rereadable(desk.io);
  if (argv === null) return undefined;
  let hear = () => {};
  const onHangUp = (listener: () => void) => {
    hear = listener;
  };
  reloadAtHangUp(desk, { onHangUp }, [recording], options, argv);
  return () => hear();
}

type ClientEnd = {
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  spawnError: NodeJS.ErrnoException | null;
};

/** The client has our own stdin, stdout and stderr, whatever they are, and gets our signals. */
function runToEnd(
  [command, ...args]: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv,
  onHangUp: (() => void) | undefined,
): Promise<ClientEnd> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: 'inherit', env });
    const ignoreSignals = forwardSignals((signal) => void child.kill(signal), onHangUp);
    const end = (how: Partial<ClientEnd>) => {
      ignoreSignals();
      resolve({ exitCode: null, signal: null, spawnError: null, ...how });
    };
    child.once('error', (spawnError) => {
      if (child.pid === undefined) end({ spawnError });
    });
    child.once('exit', (exitCode, signal) => end({ exitCode, signal }));
  });
}

function sayEnd(
  { log }: Desk,
  { capture }: ForwardRecording,
  named: Named,
  command: string,
  { spawnError }: ClientEnd,
): void {
  if (spawnError !== null) {
    log.error('not-started', whyNotStarted(command, spawnError));
    return;
  }
  const passed = capture.passed();
  const text = passedText(passed);
  if (text !== null) log.info('passed', text);
  const origins = named.map(([{ origin }]) => origin).join(', ');
  if (passed.named === 0)
    log.warn(
      'nothing-recorded',
      `nothing was recorded: the client asked nothing of ${origins} through the proxy. It may not heed HTTPS_PROXY: Node’s own fetch does from Node 22.21 and 24 on; Go never for localhost. More: tapedeck help forward`,
    );
}

/** On a terminal, which the client may have drawn all over, our words wait until it has ended. */
function createWriting(io: Io): { write: (line: string) => void; writeAll: () => void } {
  const waiting: string[] = [];
  const isShared = io.stderr.isTTY === true;
  return {
    write: (line) => (isShared ? void waiting.push(line) : void io.stderr.write(line)),
    writeAll() {
      for (const line of waiting.splice(0)) io.stderr.write(line);
    },
  };
}
