/**
 * The machine that the documents show: a home folder `/home/me` with a store of recordings, the configs of clients and a
 * clone of the repository, in which the commands are run.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { BIN, fixture, ROOT, start, tapedeck, tapedeckInProcess, tempFolder, until } from './tapedeck.ts';

export type Stage = {
  home: string;
  env: Record<string, string>;
  /** The path of the store, which has the recordings of the repository. */
  store: string;
  /** Writes a file below the home folder. */
  put(path: string, content: string): void;
  /** Runs tapedeck and expects that it succeeds. */
  tapedeck(...args: string[]): Promise<void>;
  /** Writes a text recording of these messages, `<name>.ndjson`, into the clone. */
  writeRecording(name: string, lines: readonly Line[]): void;
};

export type Line = { from: 'client' | 'server'; message: object };

/** What it takes to run a command as it is meant. */
export type Act = {
  /** What has to be there besides what is always there. */
  before?: (stage: Stage) => unknown;
  /** What a client says. The answers on stdout are then the client's, and not shown. */
  stdin?: readonly object[];
  /** What the command prints when it is to be stopped: it would run on. */
  stopAfter?: RegExp;
  /** Where each run has times, latencies, ports and sizes of its own: only all else must be as it is shown. */
  isLive?: boolean;
  /** Where below the home it is run; else in the clone. */
  folder?: string;
};

/** A copy of the home that `fill` has made. */
export function openStage(template: string): Stage {
  const home = tempFolder();
  cpSync(template, home, { recursive: true, verbatimSymlinks: true });
  const env = environmentOf(home);
  function put(path: string, content: string): void {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), content);
  }
  return {
    home,
    env,
    store: join(home, STORE),
    put,
    async tapedeck(...args) {
      const { code, stderr } = await tapedeck(args, { env, cwd: join(home, CLONE) }).ended;
      if (code !== 0) throw new Error(`tapedeck ${args.join(' ')}: exit ${code}: ${stderr}`);
    },
    writeRecording(name, lines) {
      const startedAt = '2026-11-21T05:10:00.000000Z';
      const session = {
        name,
        basis: 'stdio-process',
        transport: 'stdio',
        target: 'node server.js',
        startedAt,
      };
      const frames = lines.map(({ from, message }) => ({
        channel: from === 'client' ? 'stdin' : 'stdout',
        message: { jsonrpc: '2.0', ...message },
      }));
      const text = [{ tapedeck: 1, session }, ...frames].map((line) => `${JSON.stringify(line)}\n`);
      put(join(CLONE, `${name}.ndjson`), text.join(''));
    },
  };
}

const CLONE = 'clone';
const STORE = '.local/share/tapedeck/recordings.db';

function environmentOf(home: string): Record<string, string> {
  return {
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_DATA_HOME: join(home, '.local/share'),
    PATH: [join(home, 'bin'), dirname(process.execPath), process.env['PATH']].join(delimiter),
    ...{ TZ: 'UTC', COLUMNS: '120', NO_COLOR: '1' },
    // As npx sets them for what it runs.
    ...{ npm_lifecycle_event: 'npx', npm_lifecycle_script: 'mcp-tapedeck' },
    ...{
      TAPEDECK_DB: '',
      CODEX_HOME: '',
      CLAUDE_CONFIG_DIR: '',
      GEMINI_CLI_HOME: '',
      CLINE_MCP_SETTINGS_PATH: '',
    },
  };
}

const CLIENTS_CONFIGS = {
  '.cursor/mcp.json': `{
  "mcpServers": {
    // my notes
    "files": {
      "command": "npx",
      "args": [
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "/home/me/notes",
      ],
    },
    "docs": { "url": "https://docs.example.com/mcp", "headers": { "X-Team": "search" } },
  },
}
`,
  '.codex/config.toml': '[mcp_servers.time]\ncommand = "uvx"\nargs = ["mcp-server-time"]\n',
};

/** Puts the clone, the programs, the configs of clients and the recordings of the repository into an empty home. */
export function fill(home: string): void {
  const clone = join(home, CLONE);
  for (const folder of [clone, join(home, 'bin')]) mkdirSync(folder);
  for (const name of ['test', 'examples', 'node_modules']) symlinkSync(join(ROOT, name), join(clone, name));
  cpSync(join(ROOT, 'recordings'), join(clone, 'recordings'), { recursive: true });
  cpSync(fixture('other-tools/mcpsnoop.jsonl'), join(clone, 'mcpsnoop.jsonl'));
  const program = join(home, 'bin/tapedeck');
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`);
  chmodSync(program, 0o755);
  layOutNpx(home);
  for (const [path, text] of Object.entries(CLIENTS_CONFIGS)) {
    mkdirSync(join(home, dirname(path)));
    writeFileSync(join(home, path), text);
  }
  const recordings = ['everything-stdio', 'everything-http', 'modern-http'];
  const files = recordings.map((name) => `recordings/${name}.ndjson`);
  execFileSync(program, ['import', ...files], {
    cwd: clone,
    env: { ...process.env, ...environmentOf(home) },
  });
}

/** The package as npx has fetched it. Node is to take links for what they are named: so tapedeck knows its folder for npx's. */
function layOutNpx(home: string): void {
  const fetched = '.npm/_npx/5d1c7f0a9be34e26/node_modules';
  mkdirSync(join(home, fetched), { recursive: true });
  symlinkSync(ROOT, join(home, fetched, 'mcp-tapedeck'));
  const node = `'${process.execPath}' --preserve-symlinks --preserve-symlinks-main`;
  const npx = join(home, 'bin/npx');
  writeFileSync(npx, `#!/bin/sh\nshift\nexec ${node} "$HOME/${fetched}/mcp-tapedeck/bin/tapedeck.js" "$@"\n`);
  chmodSync(npx, 0o755);
}

/** Commands for which a process of their own makes no difference. (A session is open while its importer's process runs.) */
const READING = /^npx mcp-tapedeck (?:list|show|search|stats|diff|export|reindex|config) [^|<]*$/;

/** What the command line prints, stdout before stderr, as the documents would show it. */
export async function perform(stage: Stage, command: string, act: Act): Promise<string> {
  await act.before?.(stage);
  const cwd = join(stage.home, act.folder ?? CLONE);
  const { env } = stage;
  if (READING.test(`${command} `)) {
    const { stdout, stderr } = await tapedeckInProcess(wordsOf(command), { env, cwd });
    return asShown(stage, stdout.toString() + stderr);
  }
  const run = start('sh', ['-c', completing(command) ?? `exec env ${command}`], { cwd, env });
  for (const message of act.stdin ?? []) {
    run.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    if (!('id' in message && 'method' in message)) continue;
    const answer = new RegExp(`"id":${JSON.stringify(message.id)}[,}]`);
    await until(`an answer: ${run.stderr()}`, () => answer.test(run.stdout().toString()));
  }
  if (act.stopAfter !== undefined) {
    const { stopAfter } = act;
    await until(`${command} shows ${stopAfter}`, () => stopAfter.test(run.stdout() + run.stderr()));
    run.child.kill('SIGTERM');
  } else run.child.stdin.end();
  const { stdout, stderr } = await run.ended;
  return asShown(stage, (act.stdin === undefined ? stdout.toString() : '') + stderr);
}

/** The arguments, as a shell takes them apart. */
function wordsOf(command: string): string[] {
  const words = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  return words.slice(2);
}

/** A shell's completion is asked for by the option that its script uses, and set out as the shell would. */
function completing(command: string): string | null {
  const [, typed] = /^(.*)<Tab><Tab>$/.exec(command) ?? [];
  if (typed === undefined) return null;
  const prefix = typed.split(' ').at(-1);
  return `tapedeck --get-yargs-completions ${typed} | grep '^${prefix}' | sort | paste -s -d ' ' | sed 's/ /   /g'`;
}

/** Paths of this machine in the words of the documents. */
function asShown({ home }: Stage, text: string): string {
  return text
    .replaceAll(home, '/home/me')
    .replaceAll(process.execPath, '/usr/bin/node')
    .replaceAll(ROOT, '/home/me/.local/lib/node_modules/mcp-tapedeck')
    .replaceAll(` on ${hostname()}\n`, ' on laptop\n');
}
