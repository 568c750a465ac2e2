import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { engineUrls } from '../support/databases.ts';
import { startWebhooks } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const handlers = (entries: string) => `
const handled = ({ data }, { log }) => log.info({ data }, 'handled');
const boom = () => { throw new Error('broken filter'); };
export default { webhook: { handlers: { ${entries} } } };
`;

for (const [engine, urlOf] of Object.entries(engineUrls)) {
  describe(`filters on ${engine}`, () => {
    test('what no filter wants is stored without a job, counted, and logged at debug alone', async () => {
      const module = handlers(`
        issues: { handler: handled, when: { pointer: '/action', is: 'opened' } },
        large: { handler: handled, when: ({ data }) => data.total > 100 },
      `);
      const url = await urlOf();
      await using door = await startWebhooks(url, module);
      const unwanted = await door.post({ event: 'issues', action: 'closed' });
      const small = await door.post({ event: 'large', data: { total: 7 } });
      const unhandled = await door.post({ event: 'other' });
      for (const id of [unwanted, small, unhandled]) {
        const { status, jobs } = await door.show(id);
        assert.deepEqual([status, jobs], ['unhandled', []]);
      }
      const filtered = door.logged('delivery filtered');
      assert.deepEqual(
        filtered.map(({ delivery, level }) => [delivery, level]),
        [
          [unwanted, 'debug'],
          [small, 'debug'],
        ],
      );
      assert.deepEqual(
        door.logged('unhandled event').map(({ delivery }) => delivery),
        [unhandled],
      );
      const metrics = await door.metrics();
      assert.match(metrics, /^webhook_filtered_total 2$/m);
      assert.match(metrics, /^webhook_unhandled_total 1$/m);

      const wanted = await door.post({ event: 'issues', action: 'opened', data: 1 });
      const big = await door.post({ event: 'large', data: { total: 700 } });
      for (const id of [wanted, big]) await door.until(id, 'done');
      assert.deepEqual(
        door.logged('handled').map(({ data }) => data),
        [1, { total: 700 }],
      );
      // A replay asks the filters of today.
      assert.equal(await door.replay(unwanted), 409);
      await door[Symbol.asyncDispose]();
      await using later = await startWebhooks(url, handlers('issues: handled'));
      assert.equal(await later.replay(unwanted), 204);
      await later.until(unwanted, 'done');
    });

    test('a filter that throws loses nothing: the attempts fail until it answers', async () => {
      const url = await urlOf();
      await using door = await startWebhooks(
        url,
        handlers(
          `paid: { handler: handled, when: boom, attempts: 2 }, free: { handler: handled, when: boom, attempts: 10_000 }`,
        ),
      );
      const dead = await door.post({ event: 'paid', data: 1 });
      const [job] = (await door.until(dead, 'dead')).jobs;
      assert.deepEqual([job?.attempts, job?.error], [2, 'Error: broken filter']);
      const [told] = door.logged('rule failed');
      assert.deepEqual([told?.delivery, told?.target, told?.level], [dead, 'handler:paid', 'error']);
      assert.match(String(told?.error), /broken filter/);
      const open = [await door.post({ event: 'free', data: 2 }), await door.post({ event: 'free', data: 3 })];
      await waitFor('a failed attempt of each', async () =>
        (await Promise.all(open.map(door.show))).every(({ jobs }) => jobs[0]?.error !== null),
      );
      assert.deepEqual(door.logged('handled'), []);

      const mended = '{ handler: handled, when: ({ data }) => data !== 3 }';
      await door[Symbol.asyncDispose]();
      await using later = await startWebhooks(url, handlers(`paid: ${mended}, free: ${mended}`));
      for (const id of open) await later.until(id, 'done');
      assert.equal(await later.replay(dead), 204);
      await later.until(dead, 'done');
      assert.deepEqual(
        later.logged('handled').map(({ data }) => data),
        [2, 1],
        'the one that the mended filter does not want ends without its handler',
      );
      const [left, ...more] = later.logged('delivery filtered before its attempt');
      assert.deepEqual([left?.delivery, left?.target, more], [open[1], 'handler:free', []]);
    });

    test('an order that throws holds its delivery back until it gives a key', async () => {
      const ordered = (order: string) =>
        handlers(`e: { handler: handled, order: ${order}, attempts: 10_000 }`);
      const url = await urlOf();
      await using door = await startWebhooks(url, ordered('boom'));
      const id = await door.post({ event: 'e', data: 1 });
      await waitFor('a failed attempt', async () => (await door.show(id)).jobs[0]?.error ?? undefined);
      assert.deepEqual(door.logged('handled'), []);
      await door[Symbol.asyncDispose]();
      await using later = await startWebhooks(url, ordered('({ data }) => data'));
      await later.until(id, 'done');
    });
  });
}
