/** How soon a viewer ends, whatever it is doing: it runs alone, as beside others their load would be measured. */
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startInProcess } from '../../support/in-process.ts';
import { inFull } from '../../support/scale.ts';
import { SLOW, slowStore } from '../../support/slow-store.ts';
import { tapedeck, tempFolder, tempStore, until } from '../../support/tapedeck.ts';

const LINK = /http:\/\/127\.0\.0\.1:(\d+)(\/\S*)#token=(\S+)/;

type Ask = (path: string) => Promise<void>;

/** What a viewer may be doing when it is ended. */
const BUSY: Record<string, (ask: Ask) => Promise<unknown>> = {
  nothing: async () => {},
  followers: (ask) => Promise.all([1, 2, 3].map(() => ask('/api/changes'))),
  'downloads that nobody takes': (ask) =>
    Promise.all([1, 2].map((seq) => ask(`/api/sessions/latest/frames/${seq}/bytes`))),
  // More of them than are at work at once.
  searches: (ask) =>
    Promise.all([1, 2, 3, 4, 5].map(() => ask(`/api/search?filter=${encodeURIComponent(SLOW)}`))),
  'exports and statistics': (ask) =>
    Promise.all([
      ask('/api/export/latest?format=html'),
      ask('/api/export/latest?format=ndjson'),
      ask(`/api/stats?filter=${encodeURIComponent(SLOW)}`),
      ask(`/api/sessions?filter=${encodeURIComponent(SLOW)}`),
    ]),
};

/** Runs a viewer, makes it busy, and sends it a signal; how long it then took to end, in milliseconds. */
async function endWhileBusy(busy: keyof typeof BUSY, signal: 'SIGINT' | 'SIGTERM'): Promise<number> {
  const run = tapedeck(['ui', '--db', await slowStore(), '--listen', '127.0.0.1:0']);
  await until('it listens', () => LINK.test(run.stdout().toString()));
  const [, port, , token] = LINK.exec(run.stdout().toString()) ?? [];
  const head = `Host: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  await BUSY[busy]?.(
    (path) =>
      new Promise((resolve, reject) => {
        const socket = connect(Number(port), '127.0.0.1', () => {
          // Nothing that comes is read.
          socket.write(`GET ${path} HTTP/1.1\r\n${head}`, () => resolve());
        });
        socket.on('error', reject);
        socket.on('connect', () => socket.off('error', reject).on('error', () => {}));
        onTestFinished(() => void socket.destroy());
      }),
  );
  // By the same way, so that all of the above has been taken before.
  const headers = { Authorization: `Bearer ${token}` };
  expect((await fetch(`http://127.0.0.1:${port}/api/about`, { headers })).status).toBe(200);
  const from = performance.now();
  run.child.kill(signal);
  const { code, stderr } = await run.ended;
  expect([code, stderr]).toEqual([0, '']);
  return performance.now() - from;
}

inFull.each(Object.keys(BUSY))('a signal ends it within a second: %s', async (busy) => {
  const took = [await endWhileBusy(busy, 'SIGINT'), await endWhileBusy(busy, 'SIGTERM')];
  expect(Math.min(...took)).toBeLessThan(1000);
});

test('a signal ends it while it waits for what opens a browser', async () => {
  const folder = tempFolder();
  const [script, begun] = [join(folder, 'browser'), join(folder, 'begun')];
  writeFileSync(script, `#!/bin/sh\ntouch '${begun}'\nexec sleep 3\n`);
  chmodSync(script, 0o755);
  const run = startInProcess(['ui', '--db', tempStore(), '--listen', '127.0.0.1:0'], {
    env: { BROWSER: script, CI: '' },
    isTerminal: true,
  });
  await until('the browser runs', () => existsSync(begun));
  const from = performance.now();
  run.child.kill('SIGINT');
  expect((await run.ended).code).toBe(0);
  expect(performance.now() - from).toBeLessThan(900);
});
