import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

// What a handler may say of itself, as it stands in a configuration. Every attempt logs how many run beside it.
const MODULE = `
let running = {};
const sleep = (ms) => () => new Promise((resolve) => setTimeout(resolve, ms));
const meet = (count) => {
  const { promise, resolve } = Promise.withResolvers();
  let present = 0;
  return () => {
    if (++present === count) resolve();
    return promise;
  };
};
const track = (wait) => async ({ event, data, attempt }, { log, signal }) => {
  running[event] = (running[event] ?? 0) + 1;
  log.info({ event, n: data, attempt, beside: running[event] }, 'begins');
  await wait();
  running[event]--;
  log.info({ event, n: data?.n ?? data, aborted: signal.aborted }, 'ends');
};
const fail = () => { throw new Error('not now'); };
let broken = true;
export default {
  limits: { webhook: { backoff: 1 } },
  webhook: {
    attempts: 2,
    handlers: {
      twice: fail,
      thrice: { handler: fail, attempts: 3 },
      late: { handler: track(sleep(300)), timeout: 50, attempts: 1 },
      three: { handler: track(meet(3)), concurrency: 3 },
      one: { handler: track(sleep(1)), concurrency: 1 },
      ordered: { handler: track(sleep(5)), order: '/data/customer', concurrency: 8 },
      moody: { handler: () => { if (broken) throw new Error('moody'); }, attempts: 1 },
      cheer: () => { broken = false; },
    },
  },
};
`;

let service: TestService;
before(async () => {
  service = await startTestService({
    module: MODULE,
    env: { MANAGEMENT_INCLUDE: 'deliveries,metrics,prometheus' },
  });
  await service.listen();
});
after(() => service[Symbol.asyncDispose]());

async function post(event: string, data: unknown, headers: Record<string, string> = {}): Promise<void> {
  const body = JSON.stringify({ event, data });
  const reply = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body, headers });
  assert.equal(await reply.text(), 'Webhook received');
}

interface Shown {
  readonly items: readonly { readonly id: string; readonly attempts: number }[];
  readonly jobs: readonly { readonly error: string }[];
}

async function get<T = Shown>(path: string): Promise<T> {
  return (await (await fetch(`${service.urls.management}/actuator${path}`)).json()) as T;
}

const dead = (event: string) =>
  waitFor(`${event} to be dead`, async () => (await get(`/deliveries?status=dead&event=${event}`)).items[0]);
const done = (event: string, count: number) =>
  waitFor(`${event} to be done`, async () => {
    const { items } = await get(`/deliveries?status=done&limit=200&event=${event}`);
    return items.length === count && items;
  });
const logged = (msg: string, event: string) =>
  service.log.entries.filter((entry) => entry.msg === msg && entry.event === event);

test('attempts: as many as the handler says, or the option', async () => {
  for (const [event, attempts] of [
    ['twice', 2],
    ['thrice', 3],
  ] as const) {
    await post(event, 1);
    assert.equal((await dead(event)).attempts, attempts, event);
  }
});

test('timeout: an attempt that takes longer has failed, and its signal says so', async () => {
  await post('late', 1);
  const { id } = await dead('late');
  assert.match((await get(`/deliveries/${id}`)).jobs[0]?.error ?? '', /took longer than 50 ms/);
  const ended = await waitFor('the handler to end', () => logged('ends', 'late')[0]);
  assert.equal(ended.aborted, true);
});

test('concurrency: so many at the same time, and no more', async () => {
  for (const [event, most] of [
    ['three', 3],
    ['one', 1],
  ] as const) {
    await Promise.all(Array.from({ length: 12 }, (_, i) => post(event, i)));
    await done(event, 12);
    const beside = logged('begins', event).map((entry) => Number(entry.beside));
    assert.equal(beside.length, 12);
    assert.equal(Math.max(...beside), most, event);
  }
});

test('order: one after the other for each key, in the order of arrival', async () => {
  for (let n = 0; n < 30; n++) await post('ordered', { customer: n % 3, n });
  await done('ordered', 30);
  const ends = logged('ends', 'ordered').map((entry) => Number(entry.n));
  for (const customer of [0, 1, 2]) {
    const of = ends.filter((n) => n % 3 === customer);
    assert.deepEqual(
      of,
      of.toSorted((a, b) => a - b),
      `customer ${customer}`,
    );
    assert.equal(of.length, 10);
  }
});

test('a sender that repeats a dead delivery revives it', async () => {
  await post('moody', 1, { 'idempotency-key': 'moody-1' });
  const { id } = await dead('moody');
  await post('cheer', 1);
  await done('cheer', 1);
  await post('moody', 1, { 'idempotency-key': 'moody-1' });
  const [revived, ...more] = await done('moody', 1);
  assert.deepEqual([revived?.id, more], [id, []]);
  await post('moody', 1, { 'idempotency-key': 'moody-1' });
  await done('moody', 1);
});

test('meters: acknowledgements, batches, backlog, attempts and what is dead', async () => {
  await post('one', 99);
  await done('one', 13);
  const { names } = await get<{ names: readonly string[] }>('/metrics');
  const value = async (name: string, statistic: string, tag = '') => {
    const meter = await get<{ measurements: readonly { statistic: string; value: number }[] }>(
      `/metrics/${name}${tag}`,
    );
    return meter.measurements.find((each) => each.statistic === statistic)?.value ?? Number.NaN;
  };
  assert.ok((await value('webhook.acknowledgements', 'COUNT')) >= 60, names.join());
  assert.ok((await value('webhook.acknowledgements', 'TOTAL_TIME')) > 0);
  assert.ok((await value('webhook.attempts', 'COUNT', '?tag=outcome:done')) >= 56);
  // twice, thrice, late and moody ended badly, and the first two were tried again before.
  assert.equal(await value('webhook.attempts', 'COUNT', '?tag=outcome:dead'), 4);
  assert.equal(await value('webhook.attempts', 'COUNT', '?tag=outcome:retry'), 3);
  assert.equal(await value('webhook.deliveries', 'COUNT', '?tag=result:revived'), 1);
  assert.equal(await value('webhook.deliveries', 'COUNT', '?tag=result:duplicate'), 1);
  await waitFor('the gauges to be current', async () => (await value('webhook.dead', 'VALUE')) === 3);
  assert.equal(await value('webhook.backlog', 'VALUE'), 0);
  assert.equal(await value('webhook.backlog.age', 'VALUE'), 0);
  // Writes by commits are the size of a batch.
  assert.ok((await value('database.writes', 'COUNT')) >= (await value('database.commits', 'COUNT')));
  assert.ok((await value('database.commits', 'COUNT')) > 0);
});
