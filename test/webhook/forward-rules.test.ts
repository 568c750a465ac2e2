import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { engineUrls } from '../support/databases.ts';
import { type Answer, FORWARD_SECRET, forwards, startReceiver } from '../support/receiver.ts';
import { startWebhooks } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

for (const [engine, urlOf] of Object.entries(engineUrls)) {
  describe(`forward addresses on ${engine}`, () => {
    test('what a transformation makes is sent, signed after it', async () => {
      await using receiver = await startReceiver();
      const module = forwards(
        receiver.url,
        `
        code: to('/in', { transform: ({ data, attempt }) => ({
          url: '${receiver.url}/code?n=' + attempt, body: { doubled: data * 2 }, headers: { 'x-kind': 'code' },
        }) }),
        data: to('/data', { transform: { body: { n: '/data' }, headers: { 'x-kind': '{event} {/data}' } } }),
        plain: to('/plain', { when: { pointer: '/data', above: 100 } }),
      `,
      );
      await using door = await startWebhooks(await urlOf(), module);
      const id = await door.post({ event: 'e', data: 7 });
      const { jobs } = await door.until(id, 'done');
      assert.deepEqual(jobs.map(({ target }) => target).sort(), ['forward:code', 'forward:data']);
      const expected = { '/code?n=1': ['{"doubled":14}', 'code'], '/data': ['{"n":7}', 'e 7'] };
      for (const [path, [body, kind]] of Object.entries(expected)) {
        const [got] = receiver.at(path);
        assert.ok(got);
        const headers = got.headers as Record<string, string>;
        assert.deepEqual([got.body.toString(), headers['x-kind']], [body, kind]);
        assert.deepEqual([headers['content-type'], headers['webhook-id']], ['application/json', id]);
        new Webhook(FORWARD_SECRET).verify(got.body.toString(), headers);
      }
      assert.equal(receiver.at('/in').length + receiver.at('/plain').length, 0);
    });

    test('a transformation or filter that throws or does not end in time is a failed attempt, and nothing is sent', async () => {
      await using receiver = await startReceiver();
      const module = forwards(
        receiver.url,
        `
        throws: to('/throws', { attempts: 2, transform: () => { throw new Error('cannot map'); } }),
        hangs: to('/hangs', { attempts: 1, timeout: 50, transform: () => new Promise(() => {}) }),
        filter: to('/filter', { attempts: 1, when: () => { throw new Error('broken filter'); } }),
        missing: to('/missing', { attempts: 1, transform: { body: '/nowhere' } }),
      `,
      );
      await using door = await startWebhooks(await urlOf(), module);
      const id = await door.post({ event: 'e' });
      const jobs = await waitFor('all to be dead', async () => {
        const shown = (await door.show(id)).jobs;
        return shown.every(({ status }) => status === 'dead') && shown;
      });
      const failed = Object.fromEntries(
        jobs.map(({ target, attempts, error }) => [target, [attempts, error]]),
      );
      assert.deepEqual(failed, {
        'forward:throws': [2, 'Error: cannot map'],
        'forward:hangs': [1, 'AttemptError: took longer than 50 ms'],
        'forward:filter': [1, 'Error: broken filter'],
        'forward:missing': [1, 'Error: transform: the body has nothing at /nowhere'],
      });
      for (const path of ['/throws', '/hangs', '/filter', '/missing'])
        assert.equal(receiver.at(path).length, 0, path);
    });

    test('order: one after the other for each key, and a failed one holds back those after it', async () => {
      const running = new Map<string, number>();
      let most = 0;
      const track: Answer = (response, attempt) => {
        const count = (running.get('all') ?? 0) + 1;
        running.set('all', count);
        most = Math.max(most, count);
        setTimeout(() => {
          running.set('all', count - 1);
          response.writeHead(attempt <= 2 ? 500 : 204).end();
        }, 5);
      };
      await using receiver = await startReceiver({ '/pointer': track });
      const module = forwards(
        receiver.url,
        `
        pointer: to('/pointer', { order: '/data/key', attempts: 50 }),
        code: to('/code', { order: ({ data }) => data.key, attempts: 50 }),
      `,
      );
      await using door = await startWebhooks(await urlOf(), module);
      const sent: string[] = [];
      for (let n = 0; n < 6; n++) sent.push(await door.post({ event: 'e', data: { key: 'k', n } }));
      for (const id of sent) await door.until(id, 'done');
      assert.equal(most, 1);
      const order = (path: string) => receiver.at(path).map(({ body }) => JSON.parse(String(body)).data.n);
      assert.deepEqual(order('/pointer'), [0, 0, 0, 1, 2, 3, 4, 5]);
      assert.deepEqual(order('/code'), [0, 1, 2, 3, 4, 5]);
    });
  });
}
