import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { engineUrls } from '../support/databases.ts';
import { type Answer, forwards, startReceiver } from '../support/receiver.ts';
import { startWebhooks } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const always =
  (status: number, headers: Readonly<Record<string, string>> = {}): Answer =>
  (response) =>
    response.writeHead(status, headers).end();

for (const [engine, urlOf] of Object.entries(engineUrls)) {
  describe(`the rate of a forward address on ${engine}`, () => {
    test('rate: what has to wait stays pending without an attempt', async () => {
      await using receiver = await startReceiver();
      const rules = `{ rate: { limit: '1/h', burst: 2 } }`;
      const module = forwards(receiver.url, `slow: to('/slow', ${rules}), free: to('/free')`);
      await using door = await startWebhooks(await urlOf(), module);
      const sent: string[] = [];
      for (let n = 0; n < 5; n++) sent.push(await door.post({ event: 'e', data: n }));
      await waitFor('the burst', () => receiver.at('/slow').length === 2);
      await waitFor('the others', () => receiver.at('/free').length === 5);
      const shown = await waitFor('both to be recorded', async () => {
        const all = await Promise.all(sent.map(door.show));
        const jobs = all.flatMap((each) => each.jobs.filter(({ target }) => target === 'forward:slow'));
        return jobs.filter(({ status }) => status === 'done').length === 2 && jobs;
      });
      assert.deepEqual(shown.map(({ status, attempts }) => [status, attempts]).sort(), [
        ...Array(2).fill(['done', 1]),
        ...Array(3).fill(['pending', 0]),
      ]);
      assert.equal(receiver.at('/slow').length, 2);
    });

    test('429 and 503 with Retry-After hold back all deliveries to the address, and no other address', async () => {
      const wait = { 'retry-after': '3600' };
      await using receiver = await startReceiver({
        '/many': always(429, wait),
        '/down': always(503, wait),
        '/once': (response, attempt) =>
          response.writeHead(attempt === 1 ? 429 : 204, attempt === 1 ? { 'retry-after': '1' } : {}).end(),
      });
      const module = forwards(
        receiver.url,
        `many: to('/many'), down: to('/down'), once: to('/once'), free: to('/free')`,
      );
      await using door = await startWebhooks(await urlOf(), module);
      const jobOf = async (id: string, target: string) =>
        (await door.show(id)).jobs.find((job) => job.target === `forward:${target}`);
      const first = await door.post({ event: 'e' });
      for (const target of ['many', 'down']) {
        await waitFor(`${target} to answer`, async () => (await jobOf(first, target))?.error ?? undefined);
      }
      const second = await door.post({ event: 'e' });
      await waitFor('the free one', () => receiver.at('/free').length === 2);
      await waitFor(
        'the one that waited a second',
        async () => (await jobOf(second, 'once'))?.status === 'done',
      );
      const paused = door
        .logged('forward address paused')
        .map(({ forward, status, wait }) => [forward, status, wait]);
      assert.deepEqual(paused.sort(), [
        ['down', 503, 3_600_000],
        ['many', 429, 3_600_000],
        ['once', 429, 1_000],
      ]);
      // Some polls later.
      await sleep(50);
      for (const target of ['many', 'down']) {
        // A claim that was under way when the pause began gives its job back.
        const job = await waitFor(`${target} to be pending`, async () => {
          const found = await jobOf(second, target);
          return found?.status === 'pending' && found;
        });
        assert.equal(job.attempts, 0, target);
        assert.equal(receiver.at(`/${target}`).length, 1);
      }
    });
  });
}
