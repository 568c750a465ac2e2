import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { residentMegabytes } from '../support/memory.ts';
import { inFull } from '../support/proof-settings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWithMemory } from './worst/many-users.ts';

const USERS = 6_000;
/** Few users with long names make a long result in less time. */
const ENDING = 'x'.repeat(280);
/** Each asks for some 2 MB, and reads nothing of it. */
const READERS = inFull ? 300 : 150;
/** 64 MiB wait in sockets, 32 MiB are being made, and there is the garbage of both; unbounded it would be 300 MB or more. */
const MAX_MEMORY = 200;
const ENVIRONMENT = {
  INTERFACES: 'graphql,management',
  MANAGEMENT_INCLUDE: 'prometheus',
  // The C library would keep what is freed, and the memory of the process would tell of the past.
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
};

const query = JSON.stringify({ query: 'query long {users{id name email}}' });
const head = `POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${query.length}\r\n\r\n`;

test('clients that do not read long results hold bounded memory, and others are answered', async (t) => {
  await using folder = await temporaryFolder();
  await using portico = await startWithMemory(folder.path, USERS, ENVIRONMENT, ENDING);
  const { graphql = '', management } = portico.urls;
  const url = new URL(graphql);
  const pid = portico.child.pid ?? 0;
  const ask = async (text: string) => {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(new URL('/graphql', url), { method: 'POST', headers, body: text })).text();
  };
  /** How many long results have been made. */
  const made = async () => {
    const text = await (await fetch(`${management}/actuator/prometheus`)).text();
    // Whatever their outcome: on a busy machine clients that read nothing for long are cut.
    const counts = text.matchAll(/^graphql_operations_seconds_count\{name="long",.*\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  for (let i = 0; i < 3; i++) await ask(query);
  const early = await made();
  assert.equal(early, 3);
  const before = residentMegabytes(pid);
  let most = 0;
  const look = () => {
    most = Math.max(most, residentMegabytes(pid) - before);
  };
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
    look();
  }
  await waitFor(
    'all results to be made',
    async () => {
      assert.match(await ask('{"query":"{hello}"}'), /Hello/);
      look();
      return (await made()) - early >= READERS;
    },
    110_000,
  );
  t.diagnostic(`${READERS} readers: ${most.toFixed(0)} MB`);
  assert.ok(most < MAX_MEMORY, `${most} MB`);
});
