// Subscribers in a separate process: opens them, then creates users one at a time, each after all subscribers
// have received the previous one. Prints the time until the last subscriber received each user, in
// milliseconds.
import { once } from 'node:events';
import { WebSocket } from 'ws';

const [, , origin = '', subscribers = '0', seconds = '0'] = process.argv;
/** Maximum connections opened concurrently. */
const AT_ONCE = 100;
const query = 'subscription { userCreated { id name email } }';
const mutation = 'mutation { createUser(name: "A name", email: "a@example.com") { id } }';

let received = 0;
let onAll: () => void = () => {};

async function subscribe(): Promise<WebSocket> {
  const socket = new WebSocket(`${origin.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  socket.send('{"type":"connection_init"}');
  await once(socket, 'message');
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
  socket.on('message', (data: Buffer) => {
    if (!data.includes('"next"')) return;
    received++;
    if (received === sockets.length) onAll();
  });
  return socket;
}

async function create(): Promise<void> {
  const reply = await fetch(`${origin}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: mutation }),
  });
  const text = await reply.text();
  if (reply.status !== 200 || text.includes('"errors"')) throw new Error(text);
}

/** Creates a user; resolves to the time until every subscriber has received its event. */
async function reachAll(): Promise<number> {
  received = 0;
  const all = new Promise<void>((resolve) => {
    onAll = resolve;
  });
  const begin = performance.now();
  await Promise.all([create(), all]);
  return performance.now() - begin;
}

const sockets: WebSocket[] = [];
while (sockets.length < Number(subscribers)) {
  const count = Math.min(AT_ONCE, Number(subscribers) - sockets.length);
  sockets.push(...(await Promise.all(Array.from({ length: count }, subscribe))));
}
// An answered ping shows that everything sent before it has been read.
await Promise.all(
  sockets.map(async (socket) => {
    socket.ping();
    await once(socket, 'pong');
  }),
);
for (let i = 0; i < 3; i++) await reachAll();
process.stdout.write('ready\n');
await once(process.stdin, 'data');
const times: number[] = [];
const end = performance.now() + Number(seconds) * 1_000;
while (performance.now() < end) times.push(await reachAll());
process.stdout.write(`${JSON.stringify(times)}\n`);
for (const socket of sockets) socket.terminate();
process.exit(0);
