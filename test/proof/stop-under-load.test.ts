import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Stops under load: PORTICO_STOPS=100 is the long proof. */
const STOPS = Number(process.env.PORTICO_STOPS ?? 5);
const CLIENTS = 50;

type Outcome = 'answered' | 'refused' | 'cut';

/** One request on a connection of its own. */
async function ask(port: number, request: string): Promise<Outcome> {
  const socket = connect({ port, host: '127.0.0.1' });
  let text = '';
  let isConnected = false;
  socket.on('error', () => {});
  socket.on('connect', () => {
    isConnected = true;
    socket.write(request);
  });
  socket.on('data', (piece) => {
    text += piece;
  });
  await new Promise((resolve) => socket.once('close', resolve));
  if (/^HTTP\/1\.1 200 [\s\S]+\r\n\r\n./.test(text)) return 'answered';
  return isConnected ? 'cut' : 'refused';
}

/** A client that connects again for each request, until nobody listens. */
async function client(port: number, request: string, outcomes: Record<Outcome, number>): Promise<void> {
  for (;;) {
    const outcome = await ask(port, request);
    outcomes[outcome]++;
    if (outcome === 'refused') return;
  }
}

test(`a stop cuts no request of ${CLIENTS} clients that connect again for each`, async (t) => {
  const sum = { answered: 0, refused: 0, cut: 0 };
  for (let stop = 0; stop < STOPS; stop++) {
    await using place = await temporaryFolder();
    await using portico = startPortico({ cwd: place.path, env: { SHUTDOWN_PRE_STOP_DELAY: '50' } });
    await portico.ready();
    const port = Number(new URL(portico.urls.graphql ?? '').port);
    const body = '{"query":"{ hello }"}';
    const request = `POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
    const clients = Array.from({ length: CLIENTS }, () => client(port, request, sum));
    setTimeout(() => portico.child.kill('SIGTERM'), 100 + Math.random() * 50);
    await Promise.all(clients);
    assert.equal(await portico.exited(), 0);
  }
  t.diagnostic(`${STOPS} stops: ${sum.answered} answered, ${sum.cut} cut`);
  assert.ok(sum.answered > STOPS * CLIENTS);
  // None on a machine that has time; without the wait it is every second one of the clients.
  assert.ok(sum.cut < STOPS, `${sum.cut} cut`);
});
