// How near tapedeck itself could come by stdio: its own relay and its own hand-over, and behind them a thread that only puts each
// line, unread, into a row of the plainest recorder (limit-writer.js). What is between the two is what its own storing takes: to
// redact, to tell messages from other lines, to bound what waits and to count what is lost.
import { Worker } from 'node:worker_threads';
import { captureStdio } from '../../build/capture/stdio/relay.js';
import { openStderr, openStdin, openStdout } from '../../build/capture/stdio/streams.js';
import { CHANNELS } from '../../build/protocol/wire/frame.js';
import { createBatcher } from '../../build/store/record/batch.js';

const [file, command, ...args] = process.argv.slice(2);
const writer = new Worker(new URL('limit-writer.js', import.meta.url), { workerData: { file } });
const writerRuns = new Promise((resolve) => writer.once('online', resolve));
const batcher = createBatcher((batch) => writer.postMessage(batch, [batch.buffer]));

const capture = captureStdio({
  command,
  args,
  stdin: openStdin(writerRuns),
  stdout: openStdout(writerRuns),
  stderr: openStderr(writerRuns),
  onChunk: ({ channel, at, bytes }) => batcher.append(CHANNELS.indexOf(channel), 0, at, bytes),
  isClientGone: () => false,
});
process.exit((await capture.end).exitCode ?? 1);
