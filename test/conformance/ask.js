// `tapedeck mcp`, our own server, as the suite's server set sees it. The suite has no way to send a token, and asks for the tools,
// prompts and resources of a server of its own. A listener on loopback stands between them: it adds the token, and where we have one
// that does what a check is about, it puts our name for the suite's (`stand-ins.js`). Whatever else a request says passes as it is,
// its Host among it, and so does every answer.
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram, startProgram } from './processes.js';
import { bin, createFolder } from './proxy.js';
import { RECORDING_NAME, standInFor } from './stand-ins.js';

const token = 'a-token-for-the-suite';
const recording = fileURLToPath(new URL('../../recordings/everything-stdio.ndjson', import.meta.url));
const deadline = 30_000;

// Resolves with a URL at which the recordings are served without a token.
export async function startAsk() {
  const { folder, remove } = await createFolder();
  const db = join(folder, 'recordings.db');
  const tapedeck = [process.execPath, bin];
  const words = ['import', recording, '--name', RECORDING_NAME, '--db', db];
  const imported = await runProgram([...tapedeck, ...words], { deadline });
  if (imported.exitCode !== 0) throw new Error(`tapedeck cannot import ${recording}:\n${imported.stderr}`);
  const program = await startProgram([...tapedeck, 'mcp', '--db', db, '--listen', '127.0.0.1:0'], {
    env: { TAPEDECK_MCP_TOKEN: token },
    isReady: (said) => said.includes('Clients send'),
  });
  const { origin, pathname } = new URL(/http:\/\/\S+/.exec(program.said.stdout)[0]);
  const door = await openDoor(origin);
  const stop = async () => {
    door.closeAllConnections();
    door.close();
    await program.stop();
    await remove();
  };
  return { url: `http://127.0.0.1:${door.address().port}${pathname}`, stop };
}

async function openDoor(origin) {
  const door = createServer(async (incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const pieces = [];
    for await (const piece of incoming) pieces.push(piece);
    const asked = standInFor(Buffer.concat(pieces), headers);
    const onward = request(`${origin}${url}`, {
      method,
      headers: { ...asked.headers, authorization: `Bearer ${token}` },
    });
    onward.on('response', (response) => {
      outgoing.writeHead(response.statusCode, response.rawHeaders);
      outgoing.flushHeaders();
      response.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    onward.end(asked.body);
  });
  await new Promise((resolve) => door.listen(0, '127.0.0.1', resolve));
  return door;
}
