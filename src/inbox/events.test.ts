import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { captureLog } from '../../test/support/log-capture.ts';
import { openLog } from '../telemetry/log.ts';
import { Metrics } from '../telemetry/metrics.ts';
import type { ClaimedJob, NewDelivery } from './delivery.ts';
import { createEvents } from './events.ts';

/** Events over a real log and real meters. */
async function events() {
  const { stream, entries, broken } = captureLog();
  const metrics = new Metrics();
  const made = createEvents(await openLog({ level: 'info', stream }), metrics);
  /** What a counter has counted, over all its tags. */
  const counted = (name: string, tag?: string) => {
    let sum = 0;
    for (const series of metrics.meter(name)?.series() ?? []) {
      const isMeant = tag === undefined || series.tags.some(({ value }) => value === tag);
      if (isMeant) sum += series.measure()[0]?.value ?? 0;
    }
    return sum;
  };
  return { events: made, entries, broken, counted };
}

const body = Buffer.from('{"secret":"body-41"}');

function delivery(event: string | null, jobs: NewDelivery['jobs'] = []): NewDelivery {
  const id = '0199-id';
  return {
    id,
    source: '',
    event,
    dataPointer: '/data',
    contentType: null,
    body,
    receivedAt: 0,
    dedupKey: null,
    jobs,
  };
}

const handled = [{ target: 'handler:paid', orderKey: null }];
const job = (event: string | null, target = 'handler:paid'): ClaimedJob => ({
  job: 1,
  target,
  attempt: 2,
  crashes: 0,
  ordered: false,
  delivery: delivery(event),
});

test('an event that nothing handles is logged as unhandled (CONTRACT.md#events) and counted', async () => {
  const { events: made, entries, counted } = await events();
  made.appended(delivery('other'), 'stored');
  made.appended(delivery(null), 'stored');
  assert.deepEqual(
    entries.map(({ level, msg, delivery: id, event }) => ({ level, msg, id, event })),
    ['other', null].map((event) => ({ level: 'info', msg: 'unhandled event', id: '0199-id', event })),
  );
  assert.equal(counted('webhook.unhandled'), 2);
  assert.equal(counted('webhook.deliveries', 'stored'), 2);
});

test('one that is handled, or was known already, is counted and makes no noise', async () => {
  const { events: made, entries, counted } = await events();
  made.appended(delivery('paid', handled), 'stored');
  made.appended(delivery('other'), 'duplicate');
  made.settled(job('paid'), 'done');
  made.settled(job('paid'), 'released');
  assert.deepEqual(entries, []);
  assert.equal(counted('webhook.deliveries', 'stored'), 1);
  assert.equal(counted('webhook.deliveries', 'duplicate'), 1);
  assert.equal(counted('webhook.attempts', 'done'), 1);
  assert.equal(counted('webhook.unhandled'), 0);
});

test('failed attempts are logged with the delivery and the error, the last one louder', async () => {
  const { events: made, entries, counted } = await events();
  const error = new Error('no route');
  made.settled(job('paid'), 'retry', error);
  made.settled(job('paid'), 'dead', error);
  assert.deepEqual(
    entries.map(({ level, delivery: id, event, attempt }) => ({ level, id, event, attempt })),
    ['warn', 'error'].map((level) => ({ level, id: '0199-id', event: 'paid', attempt: 2 })),
  );
  for (const { err } of entries) assert.equal(Object(err).message, 'no route');
  assert.equal(counted('webhook.attempts', 'retry'), 1);
  assert.equal(counted('webhook.attempts', 'dead'), 1);
});

test('the body of a delivery is never logged', async () => {
  const { events: made, entries } = await events();
  made.appended(delivery('other'), 'stored');
  made.appended(delivery('paid', handled), 'revived');
  for (const outcome of ['done', 'retry', 'dead', 'released'] as const)
    made.settled(job('paid'), outcome, 'why');
  made.leaseLost(job('paid'));
  made.storeFailed(new Error('gone'));
  assert.ok(entries.length >= 6);
  assert.ok(!JSON.stringify(entries).includes('body-41'));
});

test('whatever a sender names its event, a line is one JSON object of bounded size', async () => {
  const { events: made, entries, broken } = await events();
  const evil = fc.constantFrom(
    '\r\n',
    '\n{"level":"fatal"}\n',
    '\u001b[2J',
    '\u2028',
    '\u2029',
    '\0',
    '"',
    '\ud83d',
    '😀',
  );
  const name = fc.oneof(
    fc.string(),
    fc.array(fc.oneof(evil, fc.string())).map((parts) => parts.join('')),
    fc
      .tuple(evil, fc.integer({ min: 150, max: 1_000_000 }))
      .map(([text, length]) => text.repeat(length).slice(0, length)),
  );
  fc.assert(
    fc.property(name, (event) => {
      const before = entries.length;
      made.appended(delivery(event), 'stored');
      made.settled(job(event, `handler:${event}`), 'retry', 'why');
      made.leaseLost(job(event, `handler:${event}`));
      assert.equal(entries.length, before + 3);
      assert.deepEqual(broken, []);
      for (const entry of entries.slice(before)) {
        assert.equal(entry.delivery, '0199-id');
        assert.ok(event.startsWith(String(entry.event)), 'its beginning, as it was');
        assert.ok(JSON.stringify(entry).length < 5_000);
      }
    }),
    { numRuns: 50 },
  );
});
