// A store with one long recording in it: a handshake, and calls of the tool `echo` as our echo server answers them.

import { openStore } from '../../build/store/file/open.js';
import { beginImport } from '../../build/store/write/import.js';
import { reindexSession } from '../../build/store/write/index.js';

const BEGAN = 1.7e15;

/** Makes the session `name` of `calls` calls in `file`. `textOf` gives what the call of that number says. */
export function makeRecording(file, { name, calls, textOf }) {
  const store = openStore(file);
  store.pragma('synchronous = OFF');
  const session = beginImport(store, sessionStart(name), { frames: 0, bytes: 0 }, null);
  let at = BEGAN;
  const add = (channel, message) => {
    at += 500;
    const payload = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
    const common = { lineEnd: '\n', size: payload.length, truncated: false, part: 'line', http: null };
    session.add({ channel, at, payload, ...common });
  };
  const clientInfo = { name: 'bench', version: '1' };
  const serverInfo = { name: 'echo', version: '1.0.0' };
  const protocolVersion = '2025-11-25';
  add('stdin', { id: 0, method: 'initialize', params: { protocolVersion, capabilities: {}, clientInfo } });
  add('stdout', { id: 0, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
  add('stdin', { method: 'notifications/initialized' });
  for (let i = 1; i <= calls; i += 1) {
    const text = textOf(i);
    add('stdin', {
      id: i,
      method: 'tools/call',
      params: { name: 'echo', arguments: { text, message: text } },
    });
    add('stdout', { id: i, result: { content: [{ type: 'text', text }] } });
  }
  const { number } = session.finish({
    at,
    reason: 'client-closed',
    exitCode: 0,
    signal: null,
    clientClosedAt: at,
    serverClosedAt: null,
  });
  reindexSession(store, number);
  store.close();
}

function sessionStart(name) {
  return {
    name,
    labels: [],
    basis: 'stdio-process',
    transport: 'stdio',
    target: 'node echo.js',
    command: ['node', 'echo.js'],
    cwd: '/',
    at: BEGAN,
    host: 'bench',
    pid: 1,
    processStarted: null,
    clientPid: null,
    clientProgram: null,
    tapedeck: '0',
  };
}
