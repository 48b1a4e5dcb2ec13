// The same as `client.js`, but the client talks through a proxy of its own in front of the suite's URL.
import { runClient } from './client-scenarios.js';
import { startProxy } from './proxy.js';

const proxy = await startProxy(process.argv.at(-1));
try {
  await runClient(proxy.url);
} finally {
  await proxy.stop();
}
