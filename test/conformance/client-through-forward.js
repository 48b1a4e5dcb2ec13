// The same as `client.js`, but by `tapedeck run`: the client keeps the suite's URL, and goes through a forward proxy.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from './processes.js';
import { bin, createFolder } from './proxy.js';
import { findSuiteNode } from './suite-node.js';

const url = process.argv.at(-1);
const client = fileURLToPath(new URL('./client.js', import.meta.url));
const { folder, remove } = await createFolder();
const options = ['--db', join(folder, 'recordings.db'), '--forward', url];
// Node's own fetch heeds proxies from Node 22.21 on.
const words = [process.execPath, bin, 'run', ...options, '--', await findSuiteNode(), client, url];
const { exitCode, stdout, stderr } = await runProgram(words, { deadline: 60_000 });
process.stdout.write(stdout);
process.stderr.write(stderr);
if (stderr.includes('nothing was recorded')) await writeFile(process.env.CONFORMANCE_MISSED, url);
process.exitCode = exitCode;
await remove();
