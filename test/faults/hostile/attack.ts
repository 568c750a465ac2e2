// Hostile clients in a process of their own, so that good ones elsewhere are measured without them.
// Arguments: the port, and how many hundreds of slow readers; "ready" on standard output once all are connected.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const [port = 0, scale = 1] = process.argv.slice(2).map(Number);
const HEAD = 'HTTP/1.1\r\nHost: localhost\r\n';

/** Opens connections from twenty addresses of this machine and sends a text on each. */
async function dial(count: number, network: number, text: string): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  for (let i = 0; i < count; i++) {
    const localAddress = `127.0.${network}.${1 + (i % 20)}`;
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.on('error', () => {});
    sockets.push(socket);
    socket.write(text);
    if (i % 50 === 49) await once(socket, 'connect').catch(() => {});
  }
  return sockets;
}

// They never read.
await dial(100 * scale, 1, `GET /users ${HEAD}\r\n`.repeat(20));
const senders = await dial(200 * scale, 2, `POST /users ${HEAD}Content-Length: 1000\r\n\r\n`);
const idle = await dial(500 * scale, 3, `GET /users/1 ${HEAD}\r\n`);
for (const socket of [...senders, ...idle]) socket.resume();
let next = 0;
setInterval(() => {
  // Each of them sends a byte a second.
  for (let i = 0; i < senders.length / 20; i++) senders[next++ % senders.length]?.write('x');
}, 50);
process.stdout.write('ready\n');
