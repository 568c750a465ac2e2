import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { MAIN, startPortico } from '../support/portico-process.ts';
import { proofCount } from '../support/proof-settings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// PORTICO_LONG_IMPORT: how many users. Held as objects they would take some 150 bytes each.
const USERS = proofCount('PORTICO_LONG_IMPORT', 200_000, 200_000);
/** What the process may keep in its heap, in megabytes: without an import it keeps some 22. */
const HEAP = 40;

function* lines(): Generator<string> {
  for (let i = 0; i < USERS; ) {
    let text = '';
    for (const end = Math.min(USERS, i + 1_000); i < end; i++)
      text += `{"name":"User ${i}","email":"user${i}@example.com"}\n`;
    yield text;
  }
}

test(`an import of ${USERS} users, with a report on each, runs in a heap of ${HEAP} MB`, {
  timeout: 300_000 + 2 * USERS,
}, async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({
    cwd: folder.path,
    wrapper: ['env', `NODE_OPTIONS=--max-old-space-size=${HEAP} --max-semi-space-size=4`],
    main: MAIN,
    env: { INTERFACES: 'rest' },
  });
  await portico.ready();
  const sent = request(`${portico.urls.rest}/users`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
  });
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  const sending = pipeline(lines(), sent);
  let end = '';
  for await (const text of (await answered)[0].setEncoding('utf8')) end = (end + text).slice(-100);
  await sending;
  assert.deepEqual(JSON.parse(end.trim().split('\n').at(-1) ?? ''), { created: USERS, refused: 0 });
  const list = await fetch(`${portico.urls.rest}/users`, { headers: { accept: 'application/x-ndjson' } });
  let count = 0;
  for await (const chunk of list.body ?? []) count += Buffer.from(chunk).filter((byte) => byte === 10).length;
  assert.equal(count, USERS);
});
