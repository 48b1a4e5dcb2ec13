import { connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createPeerFinder, loopbackEnd, ownerInLsof } from '../../../src/store/file/peer.ts';
import { clientAt, processKey, processStarted } from '../../../src/store/file/process.ts';
import { listenOn } from '../../support/http.ts';

test('only an address of this machine’s loopback has an end that can be looked up', () => {
  expect(['127.0.0.1:80', '::1:80', '::ffff:127.0.0.1:80'].map(loopbackEnd)).toEqual([
    '127.0.0.1:80',
    '::1:80',
    '127.0.0.1:80',
  ]);
  for (const address of ['192.0.2.7:80', 'undefined:undefined', '', '::2:80'])
    expect(loopbackEnd(address), address).toBeNull();
});

test.runIf(process.platform === 'linux')(
  'the process at the other end of each connection is found',
  async () => {
    const find = createPeerFinder();
    const addresses: string[] = [];
    for (const host of ['127.0.0.1', '::1']) {
      const server = createServer();
      const port = await listenOn(server, host).catch(() => null);
      // A machine without IPv6.
      if (port === null) continue;
      const address = await new Promise<string>((resolve) => {
        server.once('connection', (socket) => resolve(`${socket.remoteAddress}:${socket.remotePort}`));
        const socket = connect(port, host);
        onTestFinished(() => void socket.destroy());
      });
      addresses.push(address);
    }
    const own = { pid: process.pid, started: processStarted(process.pid) };
    const asked = [...addresses, '127.0.0.1:1', 'nowhere', ...addresses];
    for (const _ of ['first', 'again, from what is known'])
      expect(await find(asked)).toMatchObject(
        asked.map((address) => (addresses.includes(address) ? own : null)),
      );
    expect(await find([])).toEqual([]);
  },
);

test('what lsof says names the process whose own end it is', () => {
  const text =
    'p10\nf7\nn127.0.0.1:8808->127.0.0.1:5000\np20\nf3\nn127.0.0.1:5000->127.0.0.1:8808\nf4\nn[::1]:5001->[::1]:8808\n';
  expect(ownerInLsof(text, '127.0.0.1:5000')).toBe(20);
  expect(ownerInLsof(text, '127.0.0.1:8808')).toBe(10);
  expect(ownerInLsof(text, '::1:5001')).toBe(20);
  expect(ownerInLsof(text, '127.0.0.1:5002')).toBeNull();
});

test('a process is named by its host, pid and start, and tells none of them', () => {
  const own = clientAt(process.pid);
  if (own === null) throw new Error('this process is not known');
  const key = processKey('here', own);
  expect(key).toMatch(/^[0-9a-f]{32}$/);
  expect(processKey('here', { ...own })).toBe(key);
  for (const other of [
    { ...own, pid: own.pid + 1 },
    { ...own, started: `${own.started}1` },
  ])
    expect(processKey('here', other)).not.toBe(key);
  expect(processKey('there', own)).not.toBe(key);
});
