import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { engineUrls } from '../support/databases.ts';
import { startWebhooks } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const HOUR = 3_600_000;

const module = `
const boom = () => { throw new Error('broken rule'); };
const handler = ({ data }, { log }) => log.info({ data, at: Date.now() }, 'handled');
const gate = Promise.withResolvers();
const work = async (delivery, context) => {
  if (delivery.data.waits) await gate.promise;
  handler(delivery, context);
};
export default { webhook: {
  schedules: { tick: '* * * * * *' },
  handlers: {
    plain: handler,
    remind: { handler, runAt: '/data/at' },
    later: { handler, runAt: ({ receivedAt, data }) => new Date(receivedAt.getTime() + data.wait) },
    broken: { handler, runAt: boom, priority: boom, attempts: 2 },
    tick: { handler, runAt: ({ data }) => Date.parse(data.plannedAt) + ${HOUR} },
    work: { handler: work, concurrency: 1, priority: '/data/level' },
    go: () => gate.resolve(),
  },
} };
`;

for (const [engine, urlOf] of Object.entries(engineUrls)) {
  describe(`times and priorities on ${engine}`, () => {
    test('a delivery waits for its time, over a restart too, and a replay does not', async () => {
      const url = await urlOf();
      const runAt = Math.floor(Date.now() / 1_000) * 1_000 + HOUR;
      const at = new Date(runAt).toISOString();
      let remind = '';
      for (let start = 1; start <= 2; start++) {
        await using door = await startWebhooks(url, module);
        remind ||= await door.post({ event: 'remind', data: { at } });
        const later = await door.post({ event: 'later', data: { wait: HOUR } });
        await door.until(await door.post({ event: 'plain' }), 'done');
        const { jobs, ...shown } = await door.show(remind);
        assert.equal(shown.status, 'pending');
        const times = [shown, ...jobs].map((each) => (each as { plannedAt?: unknown }).plannedAt);
        assert.deepEqual([...times, jobs[0]?.attempts], [at, at, 0]);
        assert.equal((await door.show(later)).status, 'pending');
        assert.equal(await door.replay(remind), 409);
      }
      await using door = await startWebhooks(url, module);
      const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
      const path = `${door.service.urls.management}/actuator/deliveries/${remind}`;
      assert.equal((await fetch(path, { ...init, body: '{"action":"discard"}' })).status, 204);
      assert.equal(await door.replay(remind), 204);
      await door.until(remind, 'done');
    });

    test('it is handled at its time and not before, and at once where the time is past or none', async () => {
      await using door = await startWebhooks(await urlOf(), module);
      const at = Date.now() + 400;
      const remind = await door.post({ event: 'remind', data: { at } });
      const invalid = await door.post({ event: 'remind', data: { at: 'soon' } });
      for (const data of [{ at: 1 }, {}])
        await door.until(await door.post({ event: 'remind', data }), 'done');
      for (const id of [remind, invalid]) await door.until(id, 'done');
      const entry = door.logged('handled').find(({ data }) => (data as { at?: unknown }).at === at);
      assert.ok(Number(entry?.at) >= at, `${entry?.at} is before ${at}`);
      const ignored = door.logged('rule ignored');
      assert.deepEqual(
        ignored.map(({ delivery, target, level, error }) => [delivery, target, level, error]),
        [[invalid, 'handler:remind', 'warn', 'runAt is a text, not a time']],
      );
    });

    test('while a function throws, the attempts fail', async () => {
      await using door = await startWebhooks(await urlOf(), module);
      const [job] = (await door.until(await door.post({ event: 'broken' }), 'dead')).jobs;
      assert.deepEqual([job?.attempts, job?.error], [2, 'Error: broken rule']);
      assert.equal(door.logged('rule failed').length, 1);
    });

    test('what a schedule stores waits for its time as well', async () => {
      await using door = await startWebhooks(await urlOf(), module);
      const list = `${door.service.urls.management}/actuator/deliveries?source=portico:schedule`;
      const [item] = await waitFor('a tick', async () => {
        const { items } = (await (await fetch(list)).json()) as {
          items: { id: string; plannedAt: string }[];
        };
        return items.length > 0 && items;
      });
      assert.ok(Date.parse(item?.plannedAt ?? '') > Date.now());
      assert.equal((await door.show(item?.id ?? '')).status, 'pending');
    });

    test('the free slot goes to the delivery with the highest priority', async () => {
      await using door = await startWebhooks(await urlOf(), module);
      const first = await door.post({ event: 'work', data: { n: 0, waits: true } });
      await door.until(first, 'processing');
      const levels = [0, undefined, 5, 7];
      const ids = [];
      for (const [i, level] of levels.entries()) {
        ids.push(await door.post({ event: 'work', data: { n: i + 1, level } }));
      }
      await door.post({ event: 'go' });
      for (const id of ids) await door.until(id, 'done');
      const order = door
        .logged('handled')
        .flatMap(({ data }) => (data as { n?: number } | undefined)?.n ?? []);
      assert.deepEqual(order, [0, 4, 3, 1, 2]);
    });
  });
}
