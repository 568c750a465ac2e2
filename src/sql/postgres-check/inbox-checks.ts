import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type ClaimedJob, DeliveryIds, type NewDelivery, TenantChangedError } from '../../inbox/delivery.ts';
import type { Inbox, Outcome } from '../../inbox/inbox.ts';
import type { SendingStore } from '../../sending/store.ts';
import { enqueueStatement } from '../enqueue.ts';
import { type Bench, type Check, expectSeen } from './bench.ts';
import { openStores } from './store-checks.ts';

/** In milliseconds. */
const LEASE = 60_000;
const JOBS = 120;
/** Order keys, and deliveries of each. */
const KEYS = { count: 4, each: 8 };
const PAUSE = 10;
const TRACE = { duration: 1, answer: { status: 200, body: 'ok' }, kept: 5 };
const ids = new DeliveryIds();

function delivery(
  target: string,
  changes: Partial<NewDelivery> & { readonly orderKey?: string } = {},
): NewDelivery {
  const { orderKey = null, ...rest } = changes;
  const now = Date.now();
  return {
    id: ids.next(now),
    source: 'check',
    event: 'check',
    dataPointer: '/data',
    contentType: 'application/json',
    body: Buffer.from('{"event":"check","data":{}}'),
    receivedAt: now,
    dedupKey: null,
    jobs: [{ target, orderKey }],
    ...rest,
  };
}

/** Claims a few jobs of several targets. */
async function claimEach(inbox: Inbox, targets: readonly string[], owner: string) {
  const all = await inbox.claimEach?.(
    targets.map((target) => ({ target, limit: 5 })),
    owner,
    LEASE,
  );
  return (all ?? []).flatMap((jobs) => {
    if (jobs instanceof Error) throw jobs;
    return jobs;
  });
}

/** Claims one job of a target, waiting for the server's clock to reach it. */
async function claimOne({ soon }: Bench, inbox: Inbox, target: string, owner: string): Promise<ClaimedJob> {
  for (const deadline = performance.now() + soon; ; await delay(PAUSE)) {
    const [job] = await inbox.claim(target, 1, owner, LEASE);
    if (job !== undefined) return job;
    expectSeen(performance.now() < deadline, `a stored job of ${target} could not be claimed`);
  }
}

/** What Portico does with deliveries. */
export const INBOX_CHECKS: readonly Check[] = [
  {
    name: 'inbox',
    promise: 'Deliveries are stored, claimed, retried, recorded, replayed and removed',
    needs: ['migrations'],
    meaning: 'Webhooks are refused, or handlers run in a wrong way here.',
    async run(bench) {
      const { inbox, deliveries, sending } = await openStores(bench);
      const target = 'inbox';
      const now = await inbox.clock();
      expectSeen((await inbox.append(delivery(target))) === 'stored', 'a delivery was not stored');
      const job = await claimOne(bench, inbox, target, 'one');
      const { renewed } = await inbox.renew('one', [job.job], LEASE);
      expectSeen(renewed.length === 1, 'a lease was not renewed');
      expectSeen(
        await inbox.settle(job, 'one', { kind: 'retry', wait: 0, error: 'no', trace: TRACE }),
        'a failure was not recorded',
      );
      const again = await claimOne(bench, inbox, target, 'one');
      expectSeen(again.attempt === 2, `the second attempt has the number ${again.attempt}`);
      // As if the lease had ended, another process claims it.
      const [taken] = await inbox.claim(target, 1, 'two', LEASE, { now: now + 10 * LEASE });
      expectSeen(taken?.job === again.job, 'a job whose lease had ended could not be claimed');
      expectSeen(
        !(await inbox.settle(again, 'one', { kind: 'done', trace: TRACE })),
        'a process settled a job after it lost the lease',
      );
      expectSeen(
        await inbox.settle(taken, 'two', { kind: 'dead', error: 'no', trace: TRACE }),
        'an outcome was not recorded',
      );
      const id = job.delivery.id;
      expectSeen(
        await deliveries.replay(id, [{ target, orderKey: null }], now),
        'a dead delivery was not replayed',
      );
      expectSeen((await inbox.append(delivery('released'))) === 'stored', 'a delivery was not stored');
      const released = await claimOne(bench, inbox, 'released', 'one');
      expectSeen(await inbox.settle(released, 'one', { kind: 'released' }), 'a job was not released');
      const handed = await handOver(inbox, delivery('handed'), 'handed');
      await inbox.settleDone?.([{ job: handed, trace: TRACE }], 'one');
      const done = await inbox.settle(handed, 'one', { kind: 'done', trace: { ...TRACE, answer: null } });
      expectSeen(done || inbox.settleDone !== undefined, 'a success was not recorded');
      expectSeen(await deliveries.discard(id, now), 'a delivery was not discarded');
      await Promise.all([
        deliveries.list({}, 10, { after: 0 }),
        deliveries.list({}, 10),
        deliveries.find(id),
        deliveries.resolve(id.slice(0, 8), 5),
      ]);
      await publications(inbox, sending);
      await upkeep(inbox, now);
      return 'a delivery with a failure, a lost lease, a replay and its end, events for endpoints, and the upkeep';
    },
  },
  {
    name: 'enqueued',
    promise: 'A delivery enqueued in a transaction is taken over once it commits',
    needs: ['migrations'],
    meaning: 'enqueue() of a program does not work here.',
    async run(bench) {
      const [{ inbox }, connection] = [await openStores(bench), await bench.connect()];
      const { text, values } = enqueueStatement({ event: 'check', data: 1 });
      await connection.run({ text: 'BEGIN' }, undefined);
      await connection.run({ text }, values);
      expectSeen((await inbox.enqueued.oldest()).length === 0, 'a delivery was seen before its commit');
      await connection.run({ text: 'COMMIT' }, undefined);
      const [found] = await inbox.enqueued.oldest();
      expectSeen(found !== undefined, 'a committed delivery was not seen');
      const taken = { seq: found.seq, delivery: delivery('enqueued', { id: found.id }) };
      const [first, second] = [await inbox.enqueued.take([taken]), await inbox.enqueued.take([taken])];
      expectSeen(
        first[0] === 'stored' && second[0] === undefined,
        `taken over as ${first[0]} and ${second[0]}`,
      );
      return 'it was seen after its commit, and taken over once';
    },
  },
  {
    name: 'duplicates',
    promise: 'Deliveries with the same id of the sender, received at once, are stored once',
    needs: ['migrations'],
    meaning: 'A repeated webhook would be handled twice.',
    async run(bench) {
      const stores = [await openStores(bench), await openStores(bench)];
      const dedupKey = randomUUID();
      const appends = Array.from({ length: 20 }, (_, i) =>
        stores[i % 2]?.inbox.append(delivery('duplicates', { dedupKey })),
      );
      const stored = (await Promise.all(appends)).filter((result) => result === 'stored').length;
      expectSeen(stored === 1, `20 deliveries with one id were stored ${stored} times`);
      const id = await stores[0]?.inbox.idOf('check', dedupKey);
      expectSeen(id !== undefined, 'the stored delivery was not found by its id');
      return '20 deliveries over two pools of connections were stored once';
    },
  },
  {
    name: 'claims',
    promise: 'Concurrent claims give each job to one process',
    needs: ['migrations'],
    meaning: 'Handlers would run twice at the same time, or some deliveries never. Do not run Portico here.',
    async run(bench) {
      const stores = [await openStores(bench), await openStores(bench)];
      const [target, other] = ['claims', 'claims-too'] as const;
      await Promise.all(
        Array.from({ length: JOBS }, (_, i) =>
          stores[i % 2]?.inbox.append(delivery(i % 3 === 0 ? other : target)),
        ),
      );
      const claimed: number[] = [];
      const deadline = performance.now() + 3 * bench.soon;
      const work = async (inbox: Inbox, owner: string) => {
        while (claimed.length < JOBS && performance.now() < deadline) {
          const jobs = await claimEach(inbox, [target, other], owner);
          claimed.push(...jobs.map(({ job }) => job));
          await Promise.all(
            jobs.map(async (job) => {
              expectSeen(
                await inbox.settle(job, owner, { kind: 'done', trace: TRACE }),
                'an outcome was not recorded',
              );
            }),
          );
          if (jobs.length === 0) await delay(PAUSE);
        }
      };
      await Promise.all(stores.flatMap(({ inbox }, i) => [work(inbox, `a${i}`), work(inbox, `b${i}`)]));
      const different = new Set(claimed).size;
      expectSeen(different === claimed.length, `${claimed.length - different} jobs were claimed twice`);
      expectSeen(different === JOBS, `${different} of ${JOBS} jobs could be claimed`);
      const left = await stores[0]?.inbox.due([target, other]);
      expectSeen(left?.length === 0, 'a job that is done is due again');
      return `${JOBS} jobs went to four claimants on two pools of connections, each once`;
    },
  },
  {
    name: 'order',
    promise: 'Jobs with the same order key run one at a time, in order',
    needs: ['migrations'],
    meaning: 'Handlers with an order would see deliveries of one key at the same time or in a wrong order.',
    async run(bench) {
      const stores = [await openStores(bench), await openStores(bench)];
      const target = 'order';
      const total = KEYS.count * KEYS.each;
      for (let n = 0; n < KEYS.each; n++) {
        const keys = Array.from({ length: KEYS.count }, (_, key) => `k${key}`);
        const body = (key: string) => Buffer.from(JSON.stringify({ key, n }));
        const append = (orderKey: string, i: number) =>
          stores[(n + i) % 2]?.inbox.append(delivery(target, { orderKey, body: body(orderKey) }));
        await Promise.all(keys.map(append));
      }
      const running = new Set<string>();
      const next = new Map<string, number>();
      let ended = 0;
      const handle = async (inbox: Inbox, owner: string, first: ClaimedJob) => {
        for (let job: ClaimedJob | undefined = first; job !== undefined; ) {
          const { key, n } = JSON.parse(Buffer.from(job.delivery.body).toString()) as {
            key: string;
            n: number;
          };
          expectSeen(!running.has(key), `two jobs of the key ${key} ran at the same time`);
          expectSeen(
            n === (next.get(key) ?? 0),
            `of the key ${key}, job ${n} ran instead of ${next.get(key) ?? 0}`,
          );
          running.add(key);
          await delay(1);
          running.delete(key);
          next.set(key, n + 1);
          ended++;
          // They are recorded in different tables.
          const outcome = (
            n % 2 === 0 ? { kind: 'dead', error: 'check', trace: TRACE } : { kind: 'done', trace: TRACE }
          ) satisfies Outcome;
          const finished = await inbox.finish(job, owner, outcome, { lease: LEASE, maxBytes: 1_000 });
          expectSeen(finished.recorded, 'an outcome was not recorded');
          job = finished.next;
        }
      };
      const deadline = performance.now() + 3 * bench.soon;
      const work = async (inbox: Inbox, owner: string) => {
        while (ended < total && performance.now() < deadline) {
          const jobs = await inbox.claim(target, 3, owner, LEASE);
          await Promise.all(jobs.map((job) => handle(inbox, owner, job)));
          if (jobs.length === 0) await delay(PAUSE);
        }
      };
      await Promise.all(stores.flatMap(({ inbox }, i) => [work(inbox, `a${i}`), work(inbox, `b${i}`)]));
      expectSeen(ended === total, `${ended} of ${total} jobs ran`);
      return `${total} jobs of ${KEYS.count} keys ran in order on two pools of connections`;
    },
  },
];

/** Events for the endpoints of a tenant, which are stored for one version of them alone. */
async function publications(inbox: Inbox, sending: SendingStore): Promise<void> {
  const endpoint = await sending.createEndpoint({
    id: 'ep_check',
    tenant: 'check',
    settings: { url: 'https://example.org/' },
    secrets: [],
    disabled: null,
    failingSince: null,
    createdAt: Date.now(),
  });
  expectSeen(endpoint !== undefined, 'an endpoint was not stored');
  const { version, endpoints } = await sending.subscribers('check');
  expectSeen(endpoints.length === 1, 'an endpoint was not found');
  const [found] = await sending.inStates(['working'], { after: [0, 0], limit: 1 });
  const { working } = await sending.countStates();
  expectSeen(found?.id === 'ep_check' && working === 1, 'an endpoint was not found by its state');
  const looks = [sending.versions({ after: 'a', limit: 10 }), sending.versionsOf(['check'])];
  for (const tenants of await Promise.all(looks))
    expectSeen(tenants[0]?.hasEndpoint === true, 'a tenant with an endpoint was not found');
  const target = 'endpoint:check/ep_check';
  const published = (of: number) =>
    delivery(target, { source: 'tenant:check', tenant: { name: 'check', version: of } });
  for (const dedupKey of ['published', null]) {
    const appended = await inbox.append({ ...published(version), dedupKey });
    expectSeen(appended === 'stored', 'an event was not stored');
  }
  await handOver(inbox, published(version), target);
  const { due } = await inbox.waiting('endpoint:', { after: '', limit: 10 });
  expectSeen(due.includes(target), 'the job of an endpoint was not found');
  await sending.removeEndpoint('check', 'ep_check');
  const refused = await inbox.append(published(version)).catch((error: unknown) => error);
  expectSeen(refused instanceof TenantChangedError, 'an event was stored for endpoints that had changed');
}

/** Stores a delivery with a key and one without it, each with its job handed over; returns the job of the second. */
async function handOver(inbox: Inbox, given: NewDelivery, target: string): Promise<ClaimedJob> {
  let handed: ClaimedJob | undefined;
  for (const dedupKey of [`handed over to ${target}`, null]) {
    const handOver = { targets: [target], owner: 'one', lease: LEASE };
    const [result] = await inbox.appendAll([{ ...given, id: randomUUID(), dedupKey }], [handOver]);
    if (result instanceof Error) throw result;
    handed = result?.jobs[0];
    expectSeen(handed !== undefined, 'a delivery was not handed over');
  }
  return handed as ClaimedJob;
}

/** What a service does besides handling deliveries. */
async function upkeep(inbox: Inbox, now: number): Promise<void> {
  await inbox.recordHeartbeat(['inbox'], now);
  await inbox.expireOrphans(now - LEASE, 10, 'no target', now);
  await inbox.due(['inbox'], now);
  await inbox.dueQuarantined(['inbox'], now);
  await inbox.claim('inbox', 1, 'one', LEASE, { quarantined: true });
  await inbox.backlog();
  await inbox.deadLetters(now, LEASE);
  await inbox.size();
  const before = now + 20 * LEASE;
  await inbox.prune({ kind: 'ended', before });
  await inbox.prune({ kind: 'unhandled', before: now - LEASE, now });
  await inbox.prune({ kind: 'excess', before, maxBytes: 1 });
  await inbox.forgetKeys(now - LEASE, 10);
  const move = { name: 'check', from: 0, to: now };
  const moved = await Promise.all([inbox.checkpoints.move(move), inbox.checkpoints.move(move)]);
  expectSeen(moved.filter(Boolean).length === 1, 'one step of a checkpoint was made twice');
  const appended = await inbox.checkpoints.append(
    { name: 'check', from: now, to: now + 1 },
    delivery('planned'),
  );
  expectSeen(appended === 'stored', 'the delivery of a schedule was not stored');
  const place = await inbox.relay.begin({ position: 1, at: 1 });
  expectSeen(
    await inbox.relay.move(place, { position: 2, at: 2 }, [delivery('relayed')]),
    'a relay was not moved',
  );
  await inbox.relay.end();
}
