import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Hundreds of hostile clients: PORTICO_HOSTILE=20 for 4,000 slow senders, 2,000 slow readers and 10,000 idle ones. */
const SCALE = Number(process.env.PORTICO_HOSTILE ?? 1);
const USERS = 4_500;
/** Requests of good clients in each measurement. */
const ASKED = 2_000;
const GOOD_CLIENTS = 8;

/** The p99 of good clients' requests, in milliseconds; each must be answered. */
async function p99(port: number): Promise<number> {
  const times: number[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: GOOD_CLIENTS });
  const ask = async (id: number) => {
    const start = performance.now();
    const asked = request({ port, host: '127.0.0.1', path: `/users/${id}`, agent }).end();
    const [reply] = await once(asked, 'response');
    reply.resume();
    await once(reply, 'end');
    assert.equal(reply.statusCode, 200);
    times.push(performance.now() - start);
  };
  await Promise.all(
    Array.from({ length: GOOD_CLIENTS }, async () => {
      for (let i = 0; i < ASKED / GOOD_CLIENTS; i++) {
        await ask(1 + (i % USERS));
        await delay(1);
      }
    }),
  );
  agent.destroy();
  return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0;
}

function megabytes(pid: number | undefined): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

test('hostile clients shut nobody out and hold bounded memory', { timeout: 900_000 }, async (t) => {
  await using place = await temporaryFolder();
  await using portico = startPortico({
    cwd: place.path,
    env: { INTERFACES: 'rest' },
  });
  await portico.ready();
  const url = portico.urls.rest ?? '';
  const port = Number(new URL(url).port);
  const create = (i: number) =>
    fetch(`${url}/users`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: `user ${i}`, email: `u${i}@example.com` }),
    }).then((reply) => reply.text());
  for (let i = 0; i < USERS; i += 100)
    await Promise.all(Array.from({ length: 100 }, (_, j) => create(i + j)));
  await p99(port);
  const before = await p99(port);
  const memory = megabytes(portico.child.pid);

  const script = join(import.meta.dirname, 'hostile/attack.ts');
  const attack = spawn(process.execPath, [script, String(port), String(SCALE)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => attack.kill('SIGKILL'));
  await once(attack.stdout, 'data');
  const during = await p99(port);
  const held = megabytes(portico.child.pid);
  t.diagnostic(
    `p99 ${before.toFixed(1)} ms before, ${during.toFixed(1)} during; ${memory.toFixed(0)} MB before, ${held.toFixed(0)} during`,
  );
  // The budget of replies, the garbage of a busy minute, and some 12 kB for each connection that is open.
  assert.ok(held - memory < 300 + 12 * SCALE, `${held - memory} MB`);
});
