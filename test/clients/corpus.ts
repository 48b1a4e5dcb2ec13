/** Configs as people have them, of every client. Each has at least one server that can be wrapped. */

export type Sample = { client: string | null; what: string; content: string | Buffer };

/** Obviously no secret, and in no form that a scanner takes for one. */
const TOKEN = `ghp_${'FAKE'.padEnd(12, '-')}`;

const CLAUDE_DESKTOP = `{
  "globalShortcut": "Alt+Space",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": [
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "/Users/me/Desktop",
        "/Users/me/Downloads"
      ]
    },
    "github": {
      "command": "docker",
      "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
      "env": {
        "GITHUB_PERSONAL_ACCESS_TOKEN": "${TOKEN}"
      }
    },
    "weather": {
      "command": "uv"
    }
  },
  "scale": 1.0, "zoom": 1e0, "big": 12345678901234567890
}
`;

const CLAUDE_CODE = JSON.stringify(
  {
    numStartups: 412,
    tipsHistory: { 'new-user-warmup': 3 },
    projects: {
      '/home/me/app': {
        allowedTools: [],
        history: [{ display: 'what about "mcpServers": {}?', pastedContents: {} }],
        mcpServers: {
          db: { type: 'stdio', command: 'uvx', args: ['mcp-server-sqlite', '--db-path', 'a b.db'], env: {} },
        },
      },
      '/home/me/empty': { allowedTools: [], mcpServers: {} },
      'C:\\Users\\me\\app': { mcpServers: { db: { type: 'stdio', command: 'uvx', args: [], env: {} } } },
    },
    userID: '0'.repeat(64),
    mcpServers: {
      linear: { type: 'sse', url: 'https://mcp.linear.app/sse' },
      api: { type: 'http', url: `\${API_BASE_URL:-https://api.example.com}/mcp` },
      keyed: { type: 'http', url: `https://api.example.com/\${API_PATH}/mcp?key=\${API_KEY}` },
      db: { type: 'stdio', command: `\${HOME}/bin/db`, args: ['--key', `\${DB_KEY}`] },
    },
  },
  null,
  2,
);

const VSCODE = `{
\t// Use the command palette to edit this.
\t"inputs": [
\t\t{ "type": "promptString", "id": "key", "description": "Key", "password": true, },
\t],
\t"servers": {
\t\t"playwright": {
\t\t\t"type": "stdio",
\t\t\t"command": "npx", // from the PATH
\t\t\t/* the newest */ "args": [
\t\t\t\t"-y", // yes
\t\t\t\t"@playwright/mcp@latest", /* not pinned */
\t\t\t\t"\${workspaceFolder}",
\t\t\t\t"\${input:key}",
\t\t\t],
\t\t\t"envFile": "\${workspaceFolder}/.env",
\t\t},
\t\t"github": { "type": "http", "url": "https://api.githubcopilot.com/mcp/", "headers": { "Authorization": "Bearer \${input:key}" } },
\t\t"hidden": { "type": "http", "url": "https://\${input:host}/mcp" },
\t\t"pipe": { "type": "http", "url": "unix:///var/run/mcp.sock" },
\t},
}
`;

const WINDSURF = `{
    "mcpServers": {
        "remote": {
            "serverUrl": "https:\\/\\/actions.example.com\\/mcp\\/sse",
            "disabled": false
        },
        "git": { "command": "py", "args": ["-m", "mcp_server_git"], "disabled": true, "env": {} }
    }
}`;

const CLINE = `{
  "mcpServers": {
    "local": {
      "autoApprove": ["echo"],
      "disabled": false,
      "timeout": 60,
      "type": "stdio",
      "command": "node",
      "args": [ "/path/to/server.js" ],
      "env": {}
    },
    "remote": { "autoApprove": [], "timeout": 60, "url": "https://example.com:8443/sse", "type": "sse" }
  }
}`;

const ZED = `// Zed settings
//
// For information on how to configure Zed, see the documentation.
{
  "theme": { "mode": "system", "light": "One Light", "dark": "One Dark" },
  "context_servers": {
    "postgres-context-server": { "settings": { "database_url": "postgresql://me@localhost/db" } },
    "older": {
      "command": {
        "path": "/path/to/server",
        "args": ["run"],
        "env": { "A": "1" }
      },
      "settings": { "enable_something": true }
    },
    "oldest": { "command": { "path": "/path/to/server", "env": null }, "settings": {} },
    "newer": { "source": "custom", "enabled": true, "command": "some-command", "args": ["arg-1", "arg-2"], "env": {} },
    "remote": { "url": "http://localhost:3000/mcp", "headers": {} },
  },
}
`;

const GEMINI = `{
  "security": { "auth": { "selectedType": "oauth-personal" } },
  "mcpServers": {
    "stream": { "httpUrl": "https://api.example.com/mcp/", "headers": { "X-Key": "$KEY" }, "timeout": 5000 },
    "events": { "url": "http://localhost:8080/sse" },
    "both": { "url": "https://a.example/sse", "httpUrl": "https://a.example/mcp" },
    "python": { "command": "python", "args": ["-m", "server"], "cwd": "./py", "trust": true, "includeTools": ["a"] }
  }
}
`;

const CODEX = `# Codex
model = "gpt-5"
approval_policy = 'on-request' # ask
notify = ["python3", "/home/me/notify.py"]
started = 2026-01-02T03:04:05Z

[[hooks]]
command = "mcp"

[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]

[mcp_servers.context7.env]
MY_ENV_VAR = "MY_ENV_VALUE"

  [mcp_servers.indented]   # a comment
  command = 'C:\\Program Files\\server.exe' # another
  startup_timeout_sec = 20

[mcp_servers."with space"]
args = [
    "run", # first
    # between
    '--flag',

    """multi
line""",
]
command = """uv"""
enabled = false

[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { "X-Region" = "us-east-1" }

[mcp_servers]
inline = { command = "uvx", args = [ "a", "b" ], env = { K = "v" } }
bare_inline = {command="uvx"}
dotted.command = "node"
dotted."args" = ["x.js"]
short.command = "server"
short.env.A = "1"

[profiles.o3]
model = "o3"
float = 1.0
`;

/** As `codex` itself writes it, without any blank at its end. */
const CODEX_SMALL = '[mcp_servers.one]\ncommand = "one"';

const CURSOR = '{"mcpServers":{"a":{"command":"npx","args":["-y","a"]},"b":{"url":"https://b.example/mcp"}}}';

const UNICODE = `{
  "mcpServers": {
    "日本語 サーバー": { "command": "/Users/jürgen/bin/sërver", "args": ["--größe", "🎛️", "\\u0041\\/\\"", ""] },
    "emoji 🙂": { "\\u0063ommand": "\\u006eode", "args": [] },
    "-x": { "command": "x" },
    "": { "command": "nameless", "args": ["--", "record", "--"] },
    "__proto__": { "command": "p" },
    "constructor": { "command": "c", "args": ["toString"] }
  }
}
`;

const ONE_ITEM_A_LINE = `{
  "mcpServers": {
    "a": {
      "args": [

        // what it is run with
        "one", "two",
        "three"
        , "four"
      ],
      "command"
        :
          "npx"
    },
    "b": { "args": [ /* none */ ], "command": "b" },
    "c": { "args": [
    ], "command": "c" },
    "d": {
      "command": "d" /* the last one */ }
  }
}
`;

const HANDMADE = `{
  "mcpServers": {
    "by hand": { "command": "tapedeck", "args": ["record", "--label", "a=b", "--", "npx", "-y", "server"] },
    "by npx": { "command": "npx", "args": ["-y", "mcp-tapedeck", "record", "--", "server"] },
    "plain": { "command": "server", "args": ["record", "--", "x"] }
  }
}
`;

const HANDMADE_ALONE =
  '{ "mcpServers": { "by hand": { "command": "tapedeck", "args": ["record", "--", "server"] } } }';

const OLD_VSCODE =
  '{ "editor.fontSize": 12, "mcp": { "inputs": [], "servers": { "a": { "command": "a" } } } }';

function big(indent: number): string {
  const project = (n: number) => ({
    history: Array.from({ length: 50 }, (_, i) => ({ display: `line ${n}.${i} "quoted" \\ ünï` })),
    mcpServers: n % 10 === 0 ? { [`s${n}`]: { command: 'npx', args: ['-y', `s${n}`] } } : {},
  });
  const projects = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`/p/${n}`, project(n)]));
  return JSON.stringify({ projects, mcpServers: { last: { command: 'last' } } }, null, indent);
}

const PLAIN: Sample[] = [
  { client: 'claude-desktop', what: 'pretty', content: CLAUDE_DESKTOP },
  { client: 'claude-code', what: 'with projects', content: CLAUDE_CODE },
  { client: 'cursor', what: 'on one line', content: CURSOR },
  { client: 'vscode', what: 'tabs, comments, trailing commas, inputs', content: VSCODE },
  { client: 'windsurf', what: 'escaped slashes', content: WINDSURF },
  { client: 'cline', what: 'usual', content: CLINE },
  { client: 'zed', what: 'older and newer forms', content: ZED },
  { client: 'gemini', what: 'two kinds of URL', content: GEMINI },
  { client: 'codex', what: 'every form of table', content: CODEX },
  { client: 'codex', what: 'no end of line', content: CODEX_SMALL },
  { client: 'cursor', what: 'unicode and odd names', content: UNICODE },
  { client: 'cursor', what: 'odd layout', content: ONE_ITEM_A_LINE },
  { client: 'cursor', what: 'wrapped by hand before', content: HANDMADE },
  { client: 'cursor', what: 'wrapped by hand before, alone', content: HANDMADE_ALONE },
  { client: null, what: 'settings of older VS Code', content: OLD_VSCODE },
];

/** As they come from a client that has been used for long. */
export const BIG: readonly Sample[] = [
  { client: 'claude-code', what: 'big', content: big(2) },
  { client: 'claude-code', what: 'big, on one line', content: big(0) },
];

/** Each sample as it is, with CR LF, with a byte order mark, and with both. */
export const CORPUS: readonly Sample[] = PLAIN.flatMap((sample) => {
  const text = String(sample.content);
  const crlf = text.replaceAll('\n', '\r\n');
  return [
    sample,
    { ...sample, what: `${sample.what}, CR LF`, content: crlf },
    { ...sample, what: `${sample.what}, byte order mark`, content: `\ufeff${text}` },
    { ...sample, what: `${sample.what}, both`, content: `\ufeff${crlf}` },
  ];
});
