import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** Why the test cannot run here, or false. */
function missing(): string | false {
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'needs strace (Debian package strace)';
  }
}

/** Makes system calls of a running process fail until it is disposed of. */
async function failCalls(pid: number, calls: string): Promise<AsyncDisposable> {
  const tracer = spawn(
    'strace',
    ['-f', '-p', String(pid), '-e', `trace=${calls}`, '-e', `inject=${calls}:error=EIO`],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let said = '';
  tracer.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const ended = once(tracer, 'close');
  await waitFor('the tracer to attach', () => {
    if (tracer.exitCode !== null) throw new Error(`strace ended: ${said}`);
    return said.includes('attached');
  });
  return {
    async [Symbol.asyncDispose]() {
      tracer.kill('SIGINT');
      await ended;
    },
  };
}

const post = (url: string, name: string) =>
  fetch(`${url}/users`, { method: 'POST', body: JSON.stringify({ name, email: 'a@b' }) });

const RELATIONS = { notes: { columns: { name: { type: 'text', max: 20, unique: true } } } };
/** Writes of rows. */
const WRITES: readonly (readonly [string, string, string, Readonly<Record<string, string>>?])[] = [
  ['POST', '/notes', '{"name":"refused"}'],
  ['POST', '/notes', '[{"name":"refused"}]'],
  ['POST', '/notes?on=name', '{"name":"refused"}'],
  ['PATCH', '/notes/1', '{"name":"refused"}'],
  ['POST', '/_batch', '{"writes":[{"method":"POST","path":"/notes","body":{"name":"refused"}}]}'],
  ['DELETE', '/notes?id=1', '', { prefer: 'max-affected=1' }],
];

test('after a failed sync nothing is acknowledged, health is DOWN and the process ends non-zero', {
  skip: missing(),
}, async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify({ relations: RELATIONS }));
  await using portico = startPortico({ cwd: folder.path, env: { SHUTDOWN_PRE_STOP_DELAY: '4000' } });
  await portico.ready();
  const { rest = '', management = '', webhook = '' } = portico.urls;
  assert.equal((await post(rest, 'acknowledged')).status, 200);
  const created = await fetch(`${rest}/notes`, { method: 'POST', body: '{"name":"acknowledged"}' });
  assert.equal(created.status, 201);
  assert.equal((await fetch(`${management}/actuator/health`)).status, 200);

  await using _failing = await failCalls(portico.child.pid ?? 0, 'fsync,fdatasync');
  const refused = await post(rest, 'refused');
  assert.equal(refused.status, 503);
  assert.equal(await refused.text(), '{"status":"error","message":"Failed to create user"}');
  // The next sync would succeed as far as the file system says; the process must not believe it.
  assert.equal((await post(rest, 'refused too')).status, 503);
  assert.equal((await fetch(`${webhook}/webhook`, { method: 'POST', body: '{"event":"x"}' })).status, 503);
  for (const [method, path, body, headers = {}] of WRITES) {
    const write = await fetch(`${rest}${path}`, { method, headers, body: body === '' ? null : body });
    const { code } = (await write.json()) as { code: string };
    assert.deepEqual([write.status, code], [503, 'STORE_UNAVAILABLE'], `${method} ${path}`);
  }
  const health = await fetch(`${management}/actuator/health`);
  assert.equal(health.status, 503);
  assert.match(await health.text(), /"status":"DOWN"/);
  assert.equal((await fetch(`${management}/readyz`)).status, 503);
  assert.equal((await fetch(`${rest}/users/1`)).status, 200, 'reads go on');
  assert.equal(await portico.exited(), 1);
  assert.match(portico.stderr, /\nportico: Stopped because the store failed: .+\. Exit code 1\.\n$/);

  await using next = startPortico({ cwd: folder.path });
  await next.ready();
  const { data } = (await (await fetch(`${next.urls.rest}/users`)).json()) as { data: { name: string }[] };
  assert.ok(data.some(({ name }) => name === 'acknowledged'));
  assert.ok(!data.some(({ name }) => name === 'refused too'));
  const notes = await (await fetch(`${next.urls.rest}/notes`)).json();
  assert.deepEqual(notes, [{ id: 1, name: 'acknowledged' }]);
});
