import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { inFull } from '../support/proof-settings.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const MODULE = `
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, threadId } from 'node:worker_threads';
const never = () => new Promise(() => {});
const exists = (name) => existsSync(join(import.meta.dirname, name));
const here = ({ data }, { log }) => { log.info({ isMainThread, threadId, n: data }, 'ran'); };
const aborted = (signal) => new Promise((resolve) => signal.addEventListener('abort', resolve));
class Refusal extends Error { name = 'Refusal'; code = 'NO'; }
export default {
  limits: { webhook: { isolateMemory: 48, backoff: 1 } },
  webhook: {
    isolate: true,
    attempts: 2,
    handlers: {
      good: here,
      inside: { handler: here, isolate: false },
      rejects: () => { Promise.reject(new Error('poison')); return never(); },
      throws: () => { setTimeout(() => { throw new Error('poison'); }, 1); return never(); },
      exits: () => process.exit(3),
      hoards: async () => { const all = []; for (;;) { all.push(new Array(1e5).fill(all.length)); await null; } },
      spins: { handler: () => { for (;;); }, timeout: 100, attempts: 1 },
      refuses: () => { throw new Refusal('not me'); },
      waits: () => { while (!exists('go')); },
      late: {
        handler: async (_, { signal, log }) => {
          await aborted(signal);
          log.warn({ err: signal.reason, big: 1n }, 'told to end');
        },
        timeout: 50,
        attempts: 1,
      },
      leaves: {
        handler: (_, { log }) => {
          log.info({ threadId }, 'leaving');
          setTimeout(() => { throw new Error('left'); }, 1);
        },
        concurrency: 1,
      },
      floods: ({ data }, { log }) => { for (let i = 0; i < 50; i++) log.debug({ text: 'x'.repeat(1e5) }, 'flood'); },
    },
  },
};
`;

interface Shown {
  readonly items: readonly { readonly id: string; readonly status: string; readonly attempts: number }[];
  readonly jobs: readonly { readonly error: string; readonly crashes: number }[];
}

const urls: Readonly<Record<string, () => Promise<string>>> = {
  SQLite: async () => 'sqlite::memory:',
  ...(withoutPostgres === undefined && { PostgreSQL: () => postgresUrl() }),
};

for (const [engine, url] of Object.entries(urls)) {
  describe(`isolated handlers on ${engine}`, { timeout: 300_000 }, () => {
    let service: TestService;
    before(async () => {
      const env = { MANAGEMENT_INCLUDE: 'deliveries,metrics', DATABASE_URL: await url() };
      service = await startTestService({ module: MODULE, env });
      await service.listen();
    });
    after(() => service[Symbol.asyncDispose]());

    async function post(event: string, data: unknown = null): Promise<void> {
      const body = JSON.stringify({ event, data });
      const reply = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body });
      assert.equal(await reply.text(), 'Webhook received');
    }
    const get = async (path: string): Promise<Shown> =>
      (await (await fetch(`${service.urls.management}/actuator${path}`)).json()) as Shown;
    const list = async (event: string, status: string) =>
      (await get(`/deliveries?status=${status}&limit=200&event=${event}`)).items;
    const ended = (event: string, status: string, count = 1) =>
      waitFor(`${event} to be ${status}`, async () => {
        const items = await list(event, status);
        return items.length === count && items;
      });
    const logged = (msg: string) => service.log.entries.filter((entry) => entry.msg === msg);

    /** Sends one bad delivery between good ones; resolves to the error of the bad one, and to its attempts. */
    async function beside(event: string) {
      const good = (await list('good', 'done')).length;
      for (let i = 0; i < 9; i++) await post(i === 4 ? event : 'good', i);
      const all = await ended('good', 'done', good + 8);
      assert.ok(all.every(({ attempts }) => attempts === 1));
      const [bad] = await ended(event, 'dead');
      const [job] = (await get(`/deliveries/${bad?.id}`)).jobs;
      assert.equal(job?.crashes, 0, 'it is known who is to blame');
      return [job.error, bad?.attempts] as const;
    }

    const crashes: Readonly<Record<string, RegExp>> = {
      rejects: /^AttemptError: its worker thread ended: an uncaught error, Error: poison$/,
      throws: /^AttemptError: its worker thread ended: an uncaught error, Error: poison$/,
      exits: /^AttemptError: its worker thread ended: process\.exit\(3\)$/,
      hoards: /^AttemptError: its worker thread ended: it needed more than 48 MiB of memory$/,
    };
    // A thread ends alike on each engine.
    const tried = Object.entries(crashes).slice(0, inFull || engine === 'SQLite' ? 4 : 1);
    for (const [event, error] of tried) {
      test(`a handler that ${event} costs its own attempts alone`, async () => {
        const [message, attempts] = await beside(event);
        assert.match(message, error);
        assert.equal(attempts, 2);
      });
    }

    test('a loop that never ends is ended after the timeout', async () => {
      const [message] = await beside('spins');
      assert.equal(
        message,
        'AttemptError: took longer than 100 ms and ignored its signal, so its worker thread was ended',
      );
    });

    test('a blocked thread blocks nothing else', async () => {
      await post('waits');
      await ended('waits', 'processing');
      const good = (await list('good', 'done')).length;
      await post('good');
      await ended('good', 'done', good + 1);
      assert.equal((await list('waits', 'processing')).length, 1);
      await writeFile(join(service.folder, 'go'), '');
      await ended('waits', 'done');
    });

    test('the signal, the log, errors and meters are as elsewhere', async () => {
      await post('late');
      const [late] = await ended('late', 'dead');
      assert.equal(
        (await get(`/deliveries/${late?.id}`)).jobs[0]?.error,
        'AttemptError: took longer than 50 ms',
      );
      const [told] = logged('told to end');
      const { err, ...fields } = told as { readonly err: { readonly message: string } };
      assert.match(err.message, /took longer than 50 ms/);
      const { delivery, event, attempt, big, logger } = fields as Record<string, unknown>;
      assert.deepEqual(
        { delivery, event, attempt, big, logger },
        { delivery: late?.id, event: 'late', attempt: 1, big: '1', logger: 'inbox' },
      );
      await post('refuses');
      const [refused] = await ended('refuses', 'dead');
      assert.equal((await get(`/deliveries/${refused?.id}`)).jobs[0]?.error, 'Refusal: not me');
      const dead = service.log.entries.find(
        (each) => each.msg === 'delivery dead' && each.delivery === refused?.id,
      );
      const thrown = dead?.err as { readonly type: string; readonly code: string; readonly stack: string };
      assert.deepEqual([thrown.type, thrown.code], ['Refusal', 'NO']);
      assert.match(thrown.stack, /portico\.config\.ts/);
      const meter = await fetch(
        `${service.urls.management}/actuator/metrics/webhook.attempts?tag=outcome:dead`,
      );
      const { measurements } = (await meter.json()) as {
        readonly measurements: readonly { value: number }[];
      };
      assert.ok((measurements[0]?.value ?? 0) >= 2);
    });

    test('what a handler leaves behind costs no other delivery', async () => {
      for (let i = 0; i < 3; i++) await post('leaves');
      const done = await ended('leaves', 'done', 3);
      assert.ok(done.every(({ attempts }) => attempts === 1));
      await waitFor(
        'its error to be logged',
        () => logged('uncaught error of a delivery whose handler had ended').length > 0,
      );
    });

    test('a thread in which something was left behind runs no other delivery', async () => {
      const strays = () => logged('uncaught error of a delivery whose handler had ended').length;
      const before = strays();
      const done = (await list('leaves', 'done')).length;
      await post('leaves');
      await ended('leaves', 'done', done + 1);
      await waitFor('its error', () => strays() > before);
      const left = logged('leaving').at(-1)?.threadId;
      assert.ok(Number(left) > 0);
      const ran = logged('ran').length;
      for (let i = 1; i <= 3; i++) {
        await post('good', i);
        await waitFor('the next one', () => logged('ran').length === ran + i);
      }
      const threads = logged('ran').slice(ran);
      assert.ok(threads.every(({ threadId }) => threadId !== left));
    });

    test('a handler that logs faster than it is read waits', async () => {
      await post('floods');
      await ended('floods', 'done');
    });

    test('`isolate: false` runs in the main thread', async () => {
      await post('inside', 'in');
      await ended('inside', 'done');
      const threads = logged('ran').map(({ isMainThread, n }) => [n, isMainThread]);
      assert.deepEqual(
        threads.filter(([, isMain]) => isMain),
        [['in', true]],
      );
    });

    test('a stop ends the threads', async () => {
      await service.current.stop();
      const { workers = [] } = process.report.getReport() as { readonly workers?: readonly unknown[] };
      assert.deepEqual(workers, []);
    });
  });
}
