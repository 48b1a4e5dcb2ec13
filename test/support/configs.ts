/** Clients' configs for tests: a machine of its own, and the steps that the commands are made of. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ANY_SECTIONS, CLIENTS } from '../../src/clients/clients.ts';
import { type Keeper, openKeeper } from '../../src/clients/keeper.ts';
import type { Target } from '../../src/clients/targets.ts';
import { unwrapConfig } from '../../src/clients/unwrap.ts';
import { wrapConfig } from '../../src/clients/wrap.ts';
import type { ConfigChange } from '../../src/clients/wrapped.ts';
import { BIN, type Run, tapedeck, tapedeckInProcess, tempFolder } from './tapedeck.ts';

export const LAUNCHER = [process.execPath, BIN];

export type TestConfig = {
  target: Target;
  keeper: Keeper;
  keptIn: string;
  read(): Buffer;
  write(content: string | Buffer): void;
  wrap(names?: readonly string[]): Promise<ConfigChange>;
  unwrap(names?: readonly string[]): ConfigChange;
};

/** A config of this client (or of none) in a folder of its own. */
export function makeConfig(clientId: string | null, content: string | Buffer): TestConfig {
  const client = CLIENTS.find(({ id }) => id === clientId) ?? null;
  const format = client?.format ?? 'json';
  const folder = tempFolder();
  const file = join(folder, `config.${format}`);
  const keptIn = join(folder, 'kept');
  const keeper = openKeeper(keptIn);
  const sections = client?.sections ?? ANY_SECTIONS;
  const target: Target = { client, scope: 'file', file, format, sections };
  writeFileSync(file, content);
  return {
    target,
    keeper,
    keptIn,
    read: () => readFileSync(file),
    write: (bytes) => writeFileSync(file, bytes),
    wrap: (names = []) =>
      wrapConfig(target, { names, launcher: LAUNCHER, db: null, isDryRun: false }, keeper),
    unwrap: (names = []) => unwrapConfig(target, { names, isDryRun: false }, keeper),
  };
}

export type TestHome = {
  home: string;
  /** An empty folder, as if it were a project's. */
  project: string;
  env: Record<string, string>;
  /** Writes a file below the home folder; gives its path. */
  put(path: string, content: string | Buffer): string;
  run(...args: string[]): Run;
  runInProcess(...args: string[]): ReturnType<typeof tapedeckInProcess>;
};

/** A user without any client, whose data is nobody else's. */
export function makeHome(): TestHome {
  const home = tempFolder();
  const project = join(home, 'project');
  mkdirSync(project);
  const env = {
    HOME: home,
    USERPROFILE: home,
    APPDATA: join(home, 'AppData', 'Roaming'),
    LOCALAPPDATA: join(home, 'AppData', 'Local'),
    XDG_CONFIG_HOME: '',
    XDG_DATA_HOME: join(home, 'data'),
    TAPEDECK_DB: join(home, 'recordings.db'),
    ...{ CODEX_HOME: '', CLAUDE_CONFIG_DIR: '', GEMINI_CLI_HOME: '', CLINE_MCP_SETTINGS_PATH: '' },
  };
  return {
    home,
    project,
    env,
    put(path, content) {
      const file = join(home, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      return file;
    },
    run: (...args) => tapedeck(args, { env, cwd: project }),
    runInProcess: (...args) => tapedeckInProcess(args, { env, cwd: project }),
  };
}
