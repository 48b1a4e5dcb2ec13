import { expect, test } from 'vitest';
import { CLIENTS, type Machine, placesOf } from '../../src/clients/clients.ts';

const LINUX: Machine = { platform: 'linux', home: '/home/me', env: {}, folder: '/srv/app' };
const MAC: Machine = { platform: 'darwin', home: '/Users/me', env: {}, folder: '/srv/app' };
const WINDOWS: Machine = {
  platform: 'win32',
  home: 'C:\\Users\\me',
  env: { APPDATA: 'C:\\Users\\me\\AppData\\Roaming', LOCALAPPDATA: 'C:\\Users\\me\\AppData\\Local' },
  folder: 'D:\\app',
};

/** `user ~/.cursor/mcp.json`, … of one client, with `~` for the home folder and `.` for the project's. */
function places(id: string, machine: Machine): string[] {
  const client = CLIENTS.find((one) => one.id === id);
  if (client === undefined) throw new Error(`no client ${id}`);
  return placesOf(client, machine).map(({ scope, file }) => {
    const short = file.replace(machine.home, '~').replace(machine.folder, '.');
    return `${scope} ${short.replaceAll('\\', '/')}`;
  });
}

const WHERE: [id: string, linux: string[], mac: string[], windows: string[]][] = [
  [
    'claude-desktop',
    ['user ~/.config/Claude/claude_desktop_config.json'],
    ['user ~/Library/Application Support/Claude/claude_desktop_config.json'],
    [
      'user ~/AppData/Roaming/Claude/claude_desktop_config.json',
      'user ~/AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json',
    ],
  ],
  ['claude-code', ...same(['user ~/.claude.json', 'project ./.mcp.json'])],
  ['cursor', ...same(['user ~/.cursor/mcp.json', 'project ./.cursor/mcp.json'])],
  [
    'vscode',
    [
      'user ~/.config/Code/User/mcp.json',
      'user ~/.config/Code - Insiders/User/mcp.json',
      'project ./.vscode/mcp.json',
    ],
    [
      'user ~/Library/Application Support/Code/User/mcp.json',
      'user ~/Library/Application Support/Code - Insiders/User/mcp.json',
      'project ./.vscode/mcp.json',
    ],
    [
      'user ~/AppData/Roaming/Code/User/mcp.json',
      'user ~/AppData/Roaming/Code - Insiders/User/mcp.json',
      'project ./.vscode/mcp.json',
    ],
  ],
  ['windsurf', ...same(['user ~/.codeium/windsurf/mcp_config.json'])],
  ['cline', ...clineIn('.config', 'Library/Application Support', 'AppData/Roaming')],
  [
    'zed',
    ['user ~/.config/zed/settings.json', 'project ./.zed/settings.json'],
    ['user ~/.config/zed/settings.json', 'project ./.zed/settings.json'],
    ['user ~/AppData/Roaming/Zed/settings.json', 'project ./.zed/settings.json'],
  ],
  ['gemini', ...same(['user ~/.gemini/settings.json', 'project ./.gemini/settings.json'])],
  ['codex', ...same(['user ~/.codex/config.toml', 'project ./.codex/config.toml'])],
];

function same(all: string[]): [string[], string[], string[]] {
  return [all, all, all];
}

function clineIn(...folders: [string, string, string]): [string[], string[], string[]] {
  return folders.map((folder) => [
    `user ~/${folder}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json`,
    'user ~/.cline/data/settings/cline_mcp_settings.json',
  ]) as [string[], string[], string[]];
}

test.each(WHERE)('the files of %s are where each platform has them', (id, linux, mac, windows) => {
  expect(places(id, LINUX)).toEqual(linux);
  expect(places(id, MAC)).toEqual(mac);
  expect(places(id, WINDOWS)).toEqual(windows);
});

test('every client is in this test', () => {
  expect(WHERE.map(([id]) => id)).toEqual(CLIENTS.map(({ id }) => id));
});

test('variables that move a client’s folder are followed', () => {
  const env = {
    CODEX_HOME: '/etc/codex',
    CLAUDE_CONFIG_DIR: '/etc/claude',
    GEMINI_CLI_HOME: '/etc/gemini',
    CLINE_MCP_SETTINGS_PATH: '/etc/cline.json',
    XDG_CONFIG_HOME: '/etc/xdg',
  };
  const moved = { ...LINUX, env };
  expect(places('codex', moved)[0]).toBe('user /etc/codex/config.toml');
  expect(places('claude-code', moved)[0]).toBe('user /etc/claude/.claude.json');
  expect(places('gemini', moved)[0]).toBe('user /etc/gemini/.gemini/settings.json');
  expect(places('cline', moved)[1]).toBe('user /etc/cline.json');
  expect(places('zed', moved)[0]).toBe('user /etc/xdg/zed/settings.json');
  expect(places('vscode', moved)[0]).toBe('user /etc/xdg/Code/User/mcp.json');
  expect(places('zed', { ...MAC, env })[0]).toBe('user ~/.config/zed/settings.json');
});

test('without APPDATA, and with a folder that is not absolute, the usual places count', () => {
  expect(places('vscode', { ...WINDOWS, env: {} })).toEqual(places('vscode', WINDOWS));
  expect(places('zed', { ...LINUX, env: { XDG_CONFIG_HOME: 'config' } })).toEqual(places('zed', LINUX));
});
