import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { startPortico } from '../support/portico-process.ts';
import { RunningTime, within } from '../support/running-time.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

interface Health {
  readonly status: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly components?: Readonly<Record<string, Health>>;
}

async function healthOf(urls: Readonly<Record<string, string>>, path = '') {
  const reply = await fetch(`${urls.management}/actuator/health${path}`);
  return { code: reply.status, ...((await reply.json()) as Health) };
}

test('all that the process uses is checked', async () => {
  await using service = await startTestService({ database: 'file' });
  await service.listen();
  const { code, status, components = {} } = await healthOf(service.urls);
  assert.equal(code, 200);
  assert.equal(status, 'UP');
  const names = ['db', 'writer', 'diskSpace', 'eventLoop', 'webhookBacklog'];
  assert.deepEqual(Object.keys(components), names);
  assert.deepEqual(components.db, { status: 'UP' });
  assert.deepEqual(components.writer, { status: 'UP' });
  assert.equal(components.diskSpace?.details?.path, service.folder);
  assert.deepEqual(components.webhookBacklog?.details, {
    open: 0,
    dead: 0,
    thresholdMs: 3_600_000,
    clockSkewMs: 0,
  });
  for (const name of names) assert.equal((await healthOf(service.urls, `/${name}`)).status, 'UP', name);
});

test('a writer that hangs shows within its time to live and its timeout, and no request waits for it', async () => {
  await using service = await startTestService({ database: 'file' });
  await service.listen();
  const healthy = await healthOf(service.urls);
  assert.equal(healthy.components?.writer?.status, 'UP');
  const other = new DatabaseSync(join(service.folder, 'portico.db'));
  try {
    other.exec('BEGIN IMMEDIATE');
    const began = performance.now();
    using time = new RunningTime();
    const write = fetch(`${service.urls.rest}/users`, { method: 'POST', body: '{"name":"a","email":"a@b"}' });
    const down = await waitFor('the writer to be DOWN', async () => {
      const health = await within(1_500, () => healthOf(service.urls));
      return health.components?.writer?.status === 'DOWN' && health;
    });
    // A second to live, two seconds of timeout.
    assert.ok(performance.now() - began > 1_900);
    assert.ok(time.elapsed < 4_500, `${time.elapsed} ms`);
    assert.equal(down.code, 503);
    assert.match(String(down.components?.writer?.details?.error), /^TimeoutError: /);
    assert.equal(down.components?.db?.status, 'UP');
    other.exec('ROLLBACK');
    assert.equal((await write).status, 200);
    await waitFor('the writer to be UP', async () => (await healthOf(service.urls)).code === 200);
  } finally {
    other.close();
  }
});

test('what is not used is not checked', async () => {
  await using service = await startTestService({ env: { INTERFACES: 'graphql,management' } });
  await service.listen();
  const { components = {} } = await healthOf(service.urls);
  assert.deepEqual(Object.keys(components), ['diskSpace', 'eventLoop']);
  assert.equal(components.diskSpace?.details?.path, process.cwd());
  await using rest = await startTestService({ env: { INTERFACES: 'rest,management' } });
  await rest.listen();
  const used = Object.keys((await healthOf(rest.urls)).components ?? {});
  assert.deepEqual(used, ['db', 'writer', 'diskSpace', 'eventLoop']);
});

test('checks and groups of the module, by its settings', async () => {
  await using service = await startTestService({
    env: { MANAGEMENT_SHOW_DETAILS: 'never' },
    module: `export default { management: {
      healthChecks: {
        quick: () => 0,
        hangs: { check: () => new Promise(() => {}), timeout: 20, critical: false },
        counts: { check: () => ({ status: 'UP', details: { runs: ++runs } }), ttl: 3_600_000 },
      },
      healthGroups: { ops: { include: ['quick', 'hangs', 'counts'], showDetails: 'always' } },
    } };
    let runs = 0;`,
  });
  await service.listen();
  const { components, ...whole } = await healthOf(service.urls, '');
  assert.deepEqual(whole, { code: 200, status: 'UP', groups: ['liveness', 'ops', 'readiness'] });
  assert.equal(components, undefined);
  assert.equal((await healthOf(service.urls, '/quick')).code, 404);
  const ops = await healthOf(service.urls, '/ops');
  assert.equal(ops.status, 'UP');
  assert.equal(ops.components?.hangs?.status, 'DOWN');
  assert.equal(ops.components?.hangs?.details?.critical, false);
  for (let i = 0; i < 2; i++) {
    assert.deepEqual((await healthOf(service.urls, '/ops/counts')).details, { runs: 1 });
  }
  const said = service.log.entries.filter(({ msg }) => msg === 'health check failed');
  assert.deepEqual(
    said.map(({ check, status, error }) => [check, status, error]),
    [['hangs', 'DOWN', 'TimeoutError: no answer within 20 ms']],
  );
});

test('a delivery that waits too long is DOWN', async () => {
  await using service = await startTestService({
    env: { MANAGEMENT_BACKLOG_THRESHOLD: '1' },
    module: `
      let release;
      const released = new Promise((done) => { release = done; });
      export default {
        management: { endpoints: [{ id: 'release', read() { release(); return 'released'; } }] },
        webhook: { handlers: { slow: () => released } },
      };`,
  });
  await service.listen();
  await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"slow"}' });
  await new Promise((done) => setTimeout(done, 10));
  const { code, status, details } = await healthOf(service.urls, '/webhookBacklog');
  assert.equal(code, 503);
  assert.equal(status, 'DOWN');
  assert.equal(details?.open, 1);
  assert.ok(Number(details?.oldestMs) > 1);
  await fetch(`${service.urls.management}/actuator/release`);
});

const ending = async (module: string, env: Readonly<Record<string, string>> = {}) => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), module);
  await using portico = startPortico({ cwd: folder.path, env });
  return [await portico.exited(), portico.stderr.trim()] as const;
};

test('a group with an unknown member stops the start, and says so', async () => {
  const [code, stderr] = await ending(
    `export default { management: { healthGroups: { ops: { include: ['bd'] } } } };`,
  );
  assert.equal(code, 2);
  assert.match(stderr, /healthGroups\.ops\.include\[0\] "bd" is no health check; did you mean db\?$/);
});

test('so does one with a member that this process does not have', async () => {
  const [code, stderr] = await ending(
    `export default { management: { healthGroups: { ops: { include: ['db'] } } } };`,
    { INTERFACES: 'graphql,management' },
  );
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^portico: The health group "ops" names "db", which is no health check here\. [^\n]*$/,
  );
});

test('readiness turns with the stop, the whole health does not', async () => {
  await using folder = await temporaryFolder();
  // A busy machine delays the event loop of a start.
  await using portico = startPortico({
    cwd: folder.path,
    env: { SHUTDOWN_PRE_STOP_DELAY: '60000', MANAGEMENT_EVENT_LOOP_THRESHOLD: '60000' },
  });
  await portico.ready();
  assert.equal((await healthOf(portico.urls, '/readiness')).status, 'UP');
  portico.child.kill('SIGTERM');
  await waitFor('readiness to turn', async () => {
    const { code, components } = await healthOf(portico.urls, '/readiness');
    return code === 503 && components?.readinessState?.status === 'OUT_OF_SERVICE';
  });
  assert.equal((await healthOf(portico.urls)).status, 'UP');
  assert.equal((await healthOf(portico.urls, '/liveness')).status, 'UP');
});
