import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startWithMemory } from './worst/many-users.ts';
import { residentMegabytes } from './worst/watch.ts';

const USERS = 60_000;
/** Each asks for some 4 MB, and reads nothing of it. */
const READERS = 150;
/** 64 MiB wait in sockets, 32 MiB are being made, and there is the garbage of both; unbounded it would be 600 MB. */
const MAX_MEMORY = 250;

const query = JSON.stringify({ query: '{users{id name email}}' });
const head = `POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${query.length}\r\n\r\n`;

test('clients that do not read long results hold bounded memory, and others are answered', {
  timeout: 110_000,
}, async (t) => {
  await using folder = await temporaryFolder();
  await using portico = await startWithMemory(folder.path, USERS);
  const url = new URL(portico.urls.graphql ?? '');
  const pid = portico.child.pid ?? 0;
  const ask = async (text: string) => {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(new URL('/graphql', url), { method: 'POST', headers, body: text })).text();
  };
  for (let i = 0; i < 3; i++) await ask(query);
  const before = residentMegabytes(pid);
  let most = 0;
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (let i = 0; i < READERS; i++) {
    const socket = connect(Number(url.port), url.hostname);
    socket.on('error', () => {}).pause();
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(head + query);
  }
  for (let i = 0; i < 30; i++) {
    assert.match(await ask('{"query":"{hello}"}'), /Hello/);
    most = Math.max(most, residentMegabytes(pid) - before);
    await delay(100);
  }
  t.diagnostic(`${READERS} readers: ${most.toFixed(0)} MB`);
  assert.ok(most < MAX_MEMORY, `${most} MB`);
});
