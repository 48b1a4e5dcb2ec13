// The store with a million messages: its size on disk, and how long whole commands take to read from it.
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { createIndexer } from '../../dist/store/indexer.js';
import { createIngest } from '../../dist/store/ingest.js';
import { openStore } from '../../dist/store/open.js';
import { createSessionWriter } from '../../dist/store/session-writer.js';
import { format, median } from './figures.js';

const BIN = join(import.meta.dirname, '../../bin/tapedeck.js');
const FRAMES_PER_SESSION = 1000;
const RUNS = 7;

export function benchStore(folder, { messages, progress }) {
  const file = join(folder, 'million.db');
  progress(`a store of ${messages} messages`);
  const bytes = fillStore(file, messages / FRAMES_PER_SESSION);
  const allowed = bytes + 200 * messages;
  const onDisk = statSync(file).size;
  progress('list and show in it');
  const bare = wholeProcessMs(['-e', '0']);
  return [
    {
      what: 'store on disk',
      tapedeck: `${format(onDisk / 1e6)} MB`,
      against: `${format(allowed / 1e6)} MB payload + 200 B a message`,
      ratio: `${(onDisk / allowed).toFixed(2)}×`,
      wanted: '≤ 1.3×',
      met: onDisk / allowed <= 1.3 ? 'yes' : 'NO',
    },
    commandRow('list (50 of 1,000 sessions)', wholeProcessMs([BIN, 'list', '--db', file]), bare),
    commandRow('show of 1,000 frames', wholeProcessMs([BIN, 'show', '--db', file]), bare),
  ];
}

/** Sessions of calls whose arguments and results grow from 20 bytes to 4 kB. Returns the payload's bytes. */
function fillStore(file, sessions) {
  const store = openStore(file);
  let bytes = 0;
  for (let s = 0; s < sessions; s += 1) {
    const ingest = createIngest(1024 * 1024);
    for (let i = 0; i < FRAMES_PER_SESSION / 2; i += 1) {
      const text = 'word '.repeat(4 + ((i * 7919) % 800));
      const question = {
        jsonrpc: '2.0',
        id: i,
        method: 'tools/call',
        params: { name: 'search', arguments: { text: text.slice(0, 100) } },
      };
      const answer = { jsonrpc: '2.0', id: i, result: { content: [{ type: 'text', text }] } };
      const at = 1.7e15 + s * 1e9 + i * 1000;
      ingest.feed({ channel: 'stdin', at, bytes: Buffer.from(`${JSON.stringify(question)}\n`) });
      ingest.feed({ channel: 'stdout', at: at + 500, bytes: Buffer.from(`${JSON.stringify(answer)}\n`) });
    }
    bytes += ingest.frames().reduce((sum, frame) => sum + frame.size, 0);
    const writer = createSessionWriter(store, sessionStart(s));
    writer.write(ingest.frames(), ingest.firstSeq(), [], ingest.loss());
    writer.end(
      {
        at: 1.7e15 + s * 1e9 + 6e5,
        reason: 'client-closed',
        exitCode: 0,
        signal: null,
        clientClosedAt: null,
        serverClosedAt: null,
      },
      ingest.loss(),
    );
    createIndexer(store, writer.number).advance(Number.POSITIVE_INFINITY);
  }
  store.close();
  return bytes;
}

function sessionStart(s) {
  return {
    name: null,
    labels: [],
    basis: 'stdio-process',
    transport: 'stdio',
    target: 'bench',
    command: ['bench'],
    cwd: '/',
    at: 1.7e15 + s * 1e9,
    host: 'bench',
    pid: 1,
    processStarted: null,
    clientPid: null,
    clientProgram: null,
    tapedeck: '0',
  };
}

function wholeProcessMs(args) {
  return Array.from({ length: RUNS }, () => {
    const began = performance.now();
    const { status, stderr } = spawnSync(process.execPath, args, { maxBuffer: 1e9 });
    if (status !== 0) throw new Error(`exit ${status}: ${stderr}`);
    return performance.now() - began;
  });
}

function commandRow(what, times, bare) {
  const ms = median(times);
  const ratio = ms / median(bare);
  return {
    what: `${what}, whole process`,
    tapedeck: `${format(ms)} ms`,
    against: `${format(median(bare))} ms for node -e 0`,
    ratio: `${ratio.toFixed(2)}×`,
    wanted: '≤ 300 ms, ≤ 5×',
    met: ms <= 300 && ratio <= 5 ? 'yes' : 'NO',
  };
}
