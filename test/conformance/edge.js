// The HTTP proxy's edge as a program: `edge.js <url> --listen <host>:<port>`. It forwards as `src/capture/http.ts` does
// and counts what it is shown; nothing is stored.
import { parseArgs } from 'node:util';
import { captureHttp } from '../../dist/capture/http.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { listen: { type: 'string' }, db: { type: 'string' } },
});
const [host, port] = values.listen.split(':');
let events = 0;

const capture = await captureHttp({
  upstream: new URL(positionals[0]),
  listen: { host, port: Number(port) },
  tls: null,
  isInsecure: false,
  hasEdits: true,
  allowHosts: [],
  allowOrigins: [],
  graceMs: 1000,
  onEvent: () => {
    events += 1;
  },
});
process.stderr.write(`listens on ${capture.url}\n`);
process.once('SIGTERM', async () => {
  await capture.stop();
  process.stderr.write(`${events} events, ${capture.failedEvents()} not taken\n`);
  process.exit(0);
});
