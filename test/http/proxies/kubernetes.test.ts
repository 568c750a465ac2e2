import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startPortico } from '../../support/portico-process.ts';
import { RunningTime } from '../../support/running-time.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { guideBlock } from './guide.ts';

const manifest = guideBlock('yaml');

/** The number behind a key, the first one behind a line where that is named. */
function numberOf(key: string, behind = ''): number {
  const found = new RegExp(`${behind}[\\s\\S]*?\\b${key}: (\\d+)`).exec(manifest)?.[1];
  if (found === undefined) throw new Error(`no ${key}`);
  return Number(found);
}

/** Whether a probe succeeds, which any status from 200 to 399 does. */
async function probe(url: string): Promise<boolean> {
  const { ok } = await fetch(url).catch(() => ({ ok: false }));
  return ok;
}

test('as Kubernetes probes it, a process that is stopped answers until it is taken out, and ends within its grace', async () => {
  const period = numberOf('periodSeconds', 'readinessProbe') * 1_000;
  const failures = numberOf('failureThreshold', 'readinessProbe');
  const grace = numberOf('terminationGracePeriodSeconds') * 1_000;
  await using folder = await temporaryFolder();
  const env: Record<string, string | undefined> = { SHUTDOWN_PRE_STOP_DELAY: undefined };
  for (const [, name = '', value] of manifest.matchAll(/\{ name: (\w+), value: "(.*?)" \}/g))
    env[name] = value;
  assert.equal(env.HOST, '0.0.0.0');
  await using portico = startPortico({ cwd: folder.path, env });
  await portico.ready();
  const local = (door: string) => (portico.urls[door] ?? '').replace('0.0.0.0', '127.0.0.1');
  const [readiness, liveness] = [`${local('management')}/readyz`, `${local('management')}/livez`];
  assert.ok(await probe(readiness));
  await delay(period);
  assert.ok(await probe(readiness));

  using time = new RunningTime();
  portico.child.kill('SIGTERM');
  // It is taken out by so many probes, the first of which may come a whole period later.
  for (let i = 0; i < failures + 1; i++) {
    await delay(period);
    assert.equal(await probe(readiness), false);
    assert.ok(await probe(liveness), 'nobody restarts it');
    const reply = await fetch(`${local('rest')}/users`);
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.get('connection'), 'close');
  }
  assert.equal(await portico.exited(), 0);
  assert.ok(time.elapsed < grace);
});
