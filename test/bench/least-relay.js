// The least that a recorder over stdio costs: the bare relay, and a copy of what passes for a thread that writes it down.
import { spawn } from 'node:child_process';
import { Worker } from 'node:worker_threads';

const EVERY_MS = 5;
const [file, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const writer = new Worker(new URL('least-writer.js', import.meta.url), { workerData: { file } });
let chunks = [];

function note(channel) {
  return (bytes) => {
    if (chunks.length === 0) setTimeout(handOver, EVERY_MS);
    chunks.push({ channel, at: Date.now() * 1000, bytes });
  };
}

function handOver() {
  writer.postMessage({ chunks });
  chunks = [];
}

process.stdin.pipe(child.stdin);
child.stdout.pipe(process.stdout);
process.stdin.on('data', note('stdin'));
child.stdout.on('data', note('stdout'));
child.on('exit', (code) => process.exit(code ?? 1));
