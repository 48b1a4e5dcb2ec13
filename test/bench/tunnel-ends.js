// The two ends of a tunnel, for its figures: `source` sends a gigabyte or less to each who connects, as many bytes as its argument says;
// `bare` is a proxy that does nothing but CONNECT: the yardstick.
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const BLOCK = Buffer.alloc(64 * 1024, 'tapedeck');

const ENDS = {
  source: () => createServer((socket) => void pipeline(Readable.from(blocks()), socket).catch(() => {})),
  bare: () =>
    createHttpServer().on('connect', ({ url }, socket, head) => {
      const { hostname, port } = new URL(`http://${url}`);
      const server = connect(port, hostname, () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        server.write(head);
        void Promise.all([pipeline(socket, server), pipeline(server, socket)]).catch(() => {});
      });
      server.once('error', () => socket.destroy());
    }),
};

function* blocks() {
  for (let left = Number(process.argv[3]); left > 0; left -= BLOCK.length) yield BLOCK;
}

const end = ENDS[process.argv[2]]();
end.listen(0, '127.0.0.1', () => {
  process.stderr.write(`listening on http://127.0.0.1:${end.address().port}/\n`);
});
