// Preloaded into programs that would listen on every interface and cannot be told otherwise: a port without a host
// is opened on loopback. At Node's own last step, because naming a host to `listen` would make it asynchronous,
// and the suite asks for the port in the same tick.
import { Server } from 'node:net';

const open = Server.prototype._listen2;
if (typeof open !== 'function')
  throw new Error('This Node opens its ports in another way: see loopback-only.js');

Server.prototype._listen2 = function openOnLoopback(address, port, addressType, ...rest) {
  const isEveryInterface = address === null && typeof port === 'number';
  return isEveryInterface
    ? open.call(this, '127.0.0.1', port, 4, ...rest)
    : open.call(this, address, port, addressType, ...rest);
};
