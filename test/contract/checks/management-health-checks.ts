import assert from 'node:assert/strict';
import { waitFor } from '../../support/wait-for.ts';
import type { Check, Subject } from '../check.ts';
import { asObject, base, get, holds, object } from '../clients/management.ts';
import { fullModule } from '../modules.ts';

const health = `${base}/health`;

/** On a busy machine the database may be late with its first answer. */
async function isUp(subject: Subject): Promise<void> {
  await waitFor('the health to be UP', async () => {
    const reply = await get(subject, health);
    return reply.status === 200 && asObject(reply.json()).status === 'UP';
  });
}

/** Runs `check` while one health check, which was healthy, fails as the custom endpoint makes it. */
async function whileBroken(subject: Subject, endpoint: string, check: () => Promise<void>): Promise<void> {
  await isUp(subject);
  assert.equal((await get(subject, `${base}/${endpoint}`)).text, 'broken');
  try {
    await check();
  } finally {
    await get(subject, `${base}/repair`);
  }
}

/** UP, DOWN and what is behind it. */
export const managementHealthChecks: readonly Check[] = [
  {
    id: 'MGMT-01',
    heading: 'management-bodies',
    level: 'MUST',
    title: 'health is an object with the status "UP" when all is well',
    run: isUp,
  },
  {
    id: 'MGMT-02',
    heading: 'health-status',
    level: 'MUST',
    title: 'health is UP while every custom check returns 0',
    needs: { module: fullModule },
    run: isUp,
  },
  {
    id: 'MGMT-03',
    heading: 'health-status',
    level: 'MUST',
    title: 'a custom check that returns another code reports DOWN with that code as a detail',
    needs: { module: fullModule },
    run: (subject) =>
      whileBroken(subject, 'break', async () => {
        const body = asObject((await get(subject, health)).json());
        assert.equal(body.status, 'DOWN');
        assert.ok(holds(body, 8_437) || holds(body, '8437'), JSON.stringify(body));
      }),
  },
  {
    id: 'MGMT-04',
    heading: 'health-status',
    level: 'SHOULD',
    title: 'a negative code is a failure too, and DOWN is 503',
    needs: { module: fullModule },
    run: (subject) =>
      whileBroken(subject, 'negate', async () => {
        const body = await object(subject, health, 503);
        assert.equal(body.status, 'DOWN');
        assert.ok(holds(body, -1) || holds(body, '-1'), JSON.stringify(body));
      }),
  },
  {
    id: 'MGMT-05',
    heading: 'health-status',
    level: 'SHOULD',
    title: 'the failing check is named as a DOWN component, the passing one as UP',
    needs: { module: fullModule },
    run: (subject) =>
      whileBroken(subject, 'break', async () => {
        const components = asObject((await object(subject, health, 503)).components);
        assert.equal(asObject(components.quick).status, 'UP');
        const pump = asObject(components.pump);
        assert.equal(pump.status, 'DOWN');
        assert.ok(holds(pump.details, 8_437), JSON.stringify(pump));
      }),
  },
  {
    id: 'MGMT-06',
    heading: 'health-status',
    level: 'MUST',
    title: 'a check that throws is a check that fails: DOWN',
    needs: { module: fullModule },
    run: (subject) =>
      whileBroken(subject, 'explode', async () => {
        const reply = await get(subject, health);
        assert.equal(asObject(reply.json()).status, 'DOWN');
        assert.doesNotMatch(reply.text, /\bat .+:\d+:\d+|node_modules|portico\.config/);
      }),
  },
  {
    id: 'MGMT-07',
    heading: 'health-status',
    level: 'SHOULD',
    title: 'health follows its checks from UP to DOWN and back',
    needs: { module: fullModule },
    async run(subject) {
      const becomes = (status: string) =>
        waitFor(`health ${status}`, async () => {
          const reply = await get(subject, health);
          return asObject(reply.json()).status === status && reply.status === (status === 'UP' ? 200 : 503);
        });
      await becomes('UP');
      assert.equal((await get(subject, `${base}/break`)).text, 'broken');
      await becomes('DOWN');
      assert.equal((await get(subject, `${base}/repair`)).text, 'repaired');
      await becomes('UP');
    },
  },
  {
    id: 'MGMT-08',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: '/livez and /readyz answer 200 outside the base path once the service listens',
    async run(subject) {
      for (const path of ['/livez', '/readyz']) {
        assert.equal((await get(subject, path)).status, 200, path);
        assert.equal((await get(subject, `${path}x`)).status, 404, path);
      }
    },
  },
  {
    id: 'MGMT-09',
    heading: 'health-status',
    level: 'SHOULD',
    title: 'a failing custom check does not make the process look dead',
    needs: { module: fullModule },
    run: (subject) =>
      whileBroken(subject, 'break', async () => {
        assert.equal((await get(subject, health)).status, 503);
        assert.equal((await get(subject, '/livez')).status, 200);
      }),
  },
];
