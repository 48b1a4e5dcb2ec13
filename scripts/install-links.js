// Links that add `tapedeck mcp` to a client, for the docs. Run it to print them.
import { pathToFileURL } from 'node:url';

const NAME = 'tapedeck';

const SERVER = { command: 'npx', args: ['-y', 'mcp-tapedeck', 'mcp'] };

/** By client. VS Code: code.visualstudio.com, "MCP developer guide"; pages that refuse its scheme go by its redirect. Cursor:
 * cursor.com/docs, "MCP Install Links". */
export function installLinks() {
  const vscode = `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name: NAME, ...SERVER }))}`;
  const config = Buffer.from(JSON.stringify(SERVER)).toString('base64');
  return {
    vscode,
    vscodeOnTheWeb: `https://insiders.vscode.dev/redirect?url=${encodeURIComponent(vscode)}`,
    cursor: `cursor://anysphere.cursor-deeplink/mcp/install?name=${NAME}&config=${encodeURIComponent(config)}`,
    cursorOnTheWeb: `https://cursor.com/en/install-mcp?name=${NAME}&config=${encodeURIComponent(config)}`,
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const [client, link] of Object.entries(installLinks())) process.stdout.write(`${client}: ${link}\n`);
