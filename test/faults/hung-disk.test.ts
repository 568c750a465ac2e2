import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
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

/** Holds up every sync of a running process until it is disposed of. */
async function hangSyncs(pid: number): Promise<AsyncDisposable> {
  const calls = 'fsync,fdatasync';
  const hang = `inject=${calls}:delay_enter=600s`;
  const tracer = spawn('strace', ['-f', '-p', String(pid), '-e', `trace=${calls}`, '-e', hang], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
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
      tracer.kill('SIGKILL');
      await ended;
    },
  };
}

interface Health {
  readonly status: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly components: Readonly<Record<string, Health>>;
}

test('a disk that hangs makes health DOWN, and health itself answers in time', {
  skip: missing(),
}, async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({ cwd: folder.path, env: { INTERFACES: 'rest,management' } });
  await portico.ready();
  const { rest, management } = portico.urls;
  const health = async () => {
    const signal = AbortSignal.timeout(10_000);
    const reply = await fetch(`${management}/actuator/health`, { signal });
    return [reply.status, (await reply.json()) as Health] as const;
  };
  assert.equal((await health())[0], 200);

  const hanging = await hangSyncs(portico.child.pid ?? 0);
  const write = fetch(`${rest}/users`, { method: 'POST', body: '{"name":"a","email":"a@b"}' });
  try {
    const [code, down] = await waitFor('the writer to be DOWN', async () => {
      const answer = await health();
      return answer[1].components.writer?.status === 'DOWN' && answer;
    });
    assert.equal(code, 503);
    assert.equal(down.status, 'DOWN');
    assert.match(String(down.components.writer?.details?.error), /^TimeoutError: /);
    assert.equal(down.components.db?.status, 'UP', 'reads go on');
    await waitFor('the time that it has been hanging', async () => {
      const [, again] = await health();
      return /has been hanging for \d+ ms$/.test(String(again.components.writer?.details?.error));
    });
    assert.equal((await fetch(`${management}/livez`)).status, 200);
    assert.equal((await fetch(`${rest}/users`)).status, 200);
  } finally {
    await hanging[Symbol.asyncDispose]();
  }

  assert.equal((await write).status, 200, 'what waited is stored after all');
  await waitFor('health to be UP again', async () => (await health())[0] === 200);
});
