// A relay that also appends every byte to a file: the simplest recorder there is.
import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';

const [file, command, ...args] = process.argv.slice(2);
const log = createWriteStream(file, { flags: 'a' });
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
process.stdin.on('data', (bytes) => {
  child.stdin.write(bytes);
  log.write(bytes);
});
process.stdin.on('end', () => child.stdin.end());
child.stdout.on('data', (bytes) => {
  process.stdout.write(bytes);
  log.write(bytes);
});
child.on('exit', (code) => log.end(() => process.exit(code ?? 1)));
