/**
 * The known clients, one row each: where it keeps the config of its servers, and the document that says so.
 */

import { posix, win32 } from 'node:path';
import type { ConfigFormat } from './config.ts';

/** What the places depend on, as values, so that the places of every platform can be tested on any. */
export type Machine = {
  platform: NodeJS.Platform;
  home: string;
  env: Readonly<Record<string, string | undefined>>;
  /** The project's folder. */
  folder: string;
};

export type Client = {
  /** The name that people type. */
  id: string;
  title: string;
  format: ConfigFormat;
  /** Paths to the maps of servers in the file; `*` stands for any key. */
  sections: readonly (readonly string[])[];
  /** Files of the user. */
  user: (places: Places) => readonly string[];
  /** Files in a project's folder. */
  project: readonly string[];
};

/** Each makes a path below a folder of the platform. */
type Places = {
  home: Below;
  /** Where applications keep their settings: `~/.config`, `~/Library/Application Support`, `%APPDATA%`. */
  appData: Below;
  /** The same, but `~/.config` on macOS too. */
  config: Below;
  /** Below what this variable names, else below the folder given. */
  named: (variable: string, fallback: Below) => Below;
  onWindows: (path: (localAppData: Below) => string) => readonly string[];
};

type Below = (...words: string[]) => string;

const MCP_SERVERS = [['mcpServers']];

export const CLIENTS: readonly Client[] = [
  {
    // modelcontextprotocol.io "Connect to local MCP servers"; the second file: anthropics/claude-code issue 26073.
    id: 'claude-desktop',
    title: 'Claude Desktop',
    format: 'json',
    sections: MCP_SERVERS,
    user: ({ appData, onWindows }) => [
      appData('Claude', 'claude_desktop_config.json'),
      ...onWindows((local) =>
        local(
          ...['Packages', 'Claude_pzs8sxrjxfjjc', 'LocalCache', 'Roaming', 'Claude'],
          'claude_desktop_config.json',
        ),
      ),
    ],
    project: [],
  },
  {
    // code.claude.com "Connect Claude Code to tools via MCP"; CLAUDE_CONFIG_DIR: anthropics/claude-code issue 48448.
    id: 'claude-code',
    title: 'Claude Code',
    format: 'json',
    sections: [['mcpServers'], ['projects', '*', 'mcpServers']],
    user: ({ home, named }) => [named('CLAUDE_CONFIG_DIR', home)('.claude.json')],
    project: ['.mcp.json'],
  },
  {
    // cursor.com/docs "Model Context Protocol (MCP)".
    id: 'cursor',
    title: 'Cursor',
    format: 'json',
    sections: MCP_SERVERS,
    user: ({ home }) => [home('.cursor', 'mcp.json')],
    project: ['.cursor/mcp.json'],
  },
  {
    // code.visualstudio.com "MCP configuration reference".
    id: 'vscode',
    title: 'VS Code',
    format: 'json',
    sections: [['servers']],
    user: ({ appData }) => [
      appData('Code', 'User', 'mcp.json'),
      appData('Code - Insiders', 'User', 'mcp.json'),
    ],
    project: ['.vscode/mcp.json'],
  },
  {
    // docs.windsurf.com "Cascade MCP Integration".
    id: 'windsurf',
    title: 'Windsurf',
    format: 'json',
    sections: MCP_SERVERS,
    user: ({ home }) => [home('.codeium', 'windsurf', 'mcp_config.json')],
    project: [],
  },
  {
    // docs.cline.bot "MCP Overview": the extension's file in VS Code, and the one of the command line.
    id: 'cline',
    title: 'Cline',
    format: 'json',
    sections: MCP_SERVERS,
    user: ({ appData, home, named }) => [
      appData(
        ...['Code', 'User', 'globalStorage', 'saoudrizwan.claude-dev', 'settings'],
        'cline_mcp_settings.json',
      ),
      named('CLINE_MCP_SETTINGS_PATH', () => home('.cline', 'data', 'settings', 'cline_mcp_settings.json'))(),
    ],
    project: [],
  },
  {
    // zed.dev/docs "Model Context Protocol" and "Configuring Zed".
    id: 'zed',
    title: 'Zed',
    format: 'json',
    sections: [['context_servers']],
    user: ({ config, appData, onWindows }) => [
      onWindows(() => appData('Zed', 'settings.json'))[0] ?? config('zed', 'settings.json'),
    ],
    project: ['.zed/settings.json'],
  },
  {
    // geminicli.com "Gemini CLI configuration" and "MCP servers with Gemini CLI".
    id: 'gemini',
    title: 'Gemini CLI',
    format: 'json',
    sections: MCP_SERVERS,
    user: ({ home, named }) => [named('GEMINI_CLI_HOME', home)('.gemini', 'settings.json')],
    project: ['.gemini/settings.json'],
  },
  {
    // developers.openai.com/codex "Model Context Protocol" and "Configuration Reference".
    id: 'codex',
    title: 'Codex',
    format: 'toml',
    sections: [['mcp_servers']],
    user: ({ home, named }) => [named('CODEX_HOME', (...words) => home('.codex', ...words))('config.toml')],
    project: ['.codex/config.toml'],
  },
];

/** The maps of servers that a file of no known client may have. */
export const ANY_SECTIONS: readonly (readonly string[])[] = [
  ...new Map(CLIENTS.flatMap(({ sections }) => sections).map((way) => [way.join('/'), way])).values(),
  // The settings of older versions of VS Code.
  ['mcp', 'servers'],
];

export type Scope = 'user' | 'project' | 'file';

/** Where this client's files would be, whether they are there or not. */
export function placesOf(client: Client, machine: Machine): { scope: Scope; file: string }[] {
  const { join } = machine.platform === 'win32' ? win32 : posix;
  return [
    ...client.user(foldersOf(machine)).map((file) => ({ scope: 'user' as const, file })),
    ...client.project.map((file) => ({ scope: 'project' as const, file: join(machine.folder, file) })),
  ];
}

function foldersOf({ platform, home, env }: Machine): Places {
  const isWindows = platform === 'win32';
  const { join, isAbsolute } = isWindows ? win32 : posix;
  const below =
    (...folder: string[]): Below =>
    (...words) =>
      join(...folder, ...words);
  // A path that is not absolute is to be ignored: XDG Base Directory Specification.
  const absolute = (variable: string) => {
    const folder = env[variable] ?? '';
    return isAbsolute(folder) ? below(folder) : undefined;
  };
  const roaming = absolute('APPDATA') ?? below(home, 'AppData', 'Roaming');
  const local = absolute('LOCALAPPDATA') ?? below(home, 'AppData', 'Local');
  const config = isWindows ? roaming : (absolute('XDG_CONFIG_HOME') ?? below(home, '.config'));
  return {
    home: below(home),
    appData: platform === 'darwin' ? below(home, 'Library', 'Application Support') : config,
    // Zed looks at XDG_CONFIG_HOME on Linux alone.
    config: platform === 'darwin' ? below(home, '.config') : config,
    named: (variable, fallback) => (env[variable] ? below(env[variable]) : fallback),
    onWindows: (path) => (isWindows ? [path(local)] : []),
  };
}

/** Clients that are started by a command of one of these names, as their documents above say. */
const PROGRAMS: Readonly<Record<string, string>> = {
  claude: 'claude-code',
  cursor: 'cursor',
  'cursor-agent': 'cursor',
  code: 'vscode',
  windsurf: 'windsurf',
  gemini: 'gemini',
  codex: 'codex',
};

/** The client that this command starts; null where it is not known. `program` may be a path. */
export function clientOfProgram(program: string): Client | null {
  const name = win32.basename(program).replace(/\.(?:exe|cmd|bat)$/i, '');
  const id = Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name] : undefined;
  return CLIENTS.find((client) => client.id === id) ?? null;
}
