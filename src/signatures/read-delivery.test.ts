import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { valueAt } from '../core/json.ts';
import type { SchemeName } from './config.ts';
import { defaultLayout, readDelivery as readOfSources, type SourceLayout } from './sources.ts';

describe('read delivery', () => {
  const sourceOf = (scheme: SchemeName, layout: Partial<SourceLayout> = {}) => ({
    ...defaultLayout(scheme),
    ...layout,
    scheme,
  });

  /** What is read, with the data that the pointer points to. */
  function readDelivery(...[source, headers, body]: Parameters<typeof readOfSources>) {
    const found = readOfSources(source, headers, body);
    if (found.kind === 'challenge') return found;
    const { pointer, ...rest } = found;
    return { ...rest, data: valueAt(body, pointer) };
  }

  test('Standard Webhooks', () => {
    const body = { type: 'invoice.paid', timestamp: '2022-11-03T20:26:10.344522Z', data: { id: 1 } };
    assert.deepEqual(readDelivery(sourceOf('standard'), { 'webhook-id': 'msg_1' }, body), {
      kind: 'delivery',
      event: 'invoice.paid',
      senderEvent: null,
      data: { id: 1 },
      dedupKey: 'msg_1',
    });
  });

  test('Standard Webhooks with other header names', () => {
    const layout = defaultLayout('standard', 'svix');
    const source = { ...layout, scheme: 'standard' } as const;
    const headers = { 'svix-id': 'msg_1', 'webhook-id': 'msg_2' };
    assert.deepEqual(readDelivery(source, headers, {}), {
      kind: 'delivery',
      event: null,
      senderEvent: null,
      data: undefined,
      dedupKey: 'msg_1',
    });
  });

  test('GitHub: a push is the contract’s new_commit, and keeps its own name beside it; everything else has one name', () => {
    const body = { ref: 'refs/heads/main', event: 'other' };
    for (const [theirs, ours] of [
      ['push', 'new_commit'],
      ['issues', 'issues'],
      ['ping', 'ping'],
      ['constructor', 'constructor'],
    ]) {
      const headers = { 'x-github-event': theirs, 'x-github-delivery': 'guid' };
      assert.deepEqual(readDelivery(sourceOf('github'), headers, body), {
        kind: 'delivery',
        event: ours,
        senderEvent: ours === theirs ? null : theirs,
        data: body,
        dedupKey: 'guid',
      });
    }
  });

  test('Stripe: payments are payment_received, everything else keeps its name', () => {
    const data = { object: { id: 'pi_1' }, previous_attributes: {} };
    const read = (type: string) => readDelivery(sourceOf('stripe'), {}, { id: 'evt_1', type, data });
    assert.deepEqual(read('payment_intent.succeeded'), {
      kind: 'delivery',
      event: 'payment_received',
      senderEvent: 'payment_intent.succeeded',
      data,
      dedupKey: 'evt_1',
    });
    for (const type of ['charge.succeeded', 'invoice.paid']) {
      const { event, senderEvent } = read(type) as { event: string; senderEvent: string };
      assert.deepEqual([event, senderEvent], ['payment_received', type]);
    }
    for (const type of ['checkout.session.completed', 'charge.refunded']) {
      assert.deepEqual(read(type), {
        kind: 'delivery',
        event: type,
        senderEvent: null,
        data,
        dedupKey: 'evt_1',
      });
    }
  });

  test('Slack: the inner event, and a challenge is answered', () => {
    const event = { type: 'app_mention', text: 'hello' };
    const body = { type: 'event_callback', event_id: 'Ev1', event };
    assert.deepEqual(readDelivery(sourceOf('slack'), {}, body), {
      kind: 'delivery',
      event: 'app_mention',
      senderEvent: null,
      data: event,
      dedupKey: 'Ev1',
    });
    const challenge = { type: 'url_verification', token: 'x', challenge: '3eZbrw1aBm' };
    assert.deepEqual(readDelivery(sourceOf('slack'), {}, challenge), {
      kind: 'challenge',
      answer: '3eZbrw1aBm',
    });
    assert.equal(readDelivery(sourceOf('standard'), {}, challenge).kind, 'delivery');
    for (const odd of [{ ...challenge, challenge: 1 }, { challenge: 'x' }, [challenge], null]) {
      assert.equal(readDelivery(sourceOf('slack'), {}, odd).kind, 'delivery');
    }
  });

  test('hmac and token: the body of the contract', () => {
    const body = { event: 'new_commit', data: { id: 7 } };
    for (const scheme of ['hmac', 'token'] as const) {
      assert.deepEqual(readDelivery(sourceOf(scheme), { 'idempotency-key': '"k"' }, body), {
        kind: 'delivery',
        event: 'new_commit',
        senderEvent: null,
        data: { id: 7 },
        dedupKey: '"k"',
      });
    }
  });

  test('a missing event or key is null, missing data undefined', () => {
    const nothing = { kind: 'delivery', event: null, senderEvent: null, data: undefined, dedupKey: null };
    for (const body of [null, 1, 'text', [], {}, { event: 1 }, { event: '' }, { event: ['new_commit'] }]) {
      assert.deepEqual(readDelivery(sourceOf('token'), {}, body), nothing);
    }
    const headers = { 'x-github-event': ['push'], 'x-github-delivery': '' };
    assert.deepEqual(readDelivery(sourceOf('github'), headers, 1), { ...nothing, data: 1 });
  });

  test('events, data and keys may stand elsewhere', () => {
    const source = sourceOf('hmac', {
      event: { kind: 'header', name: 'x-topic' },
      events: new Map([['orders/create', 'payment_received']]),
      data: ['orders', '0'],
      dedup: { kind: 'pointer', pointer: ['meta', 'number'] },
    });
    const body = { orders: [{ id: 1 }], meta: { number: 42 } };
    assert.deepEqual(readDelivery(source, { 'x-topic': 'orders/create' }, body), {
      kind: 'delivery',
      event: 'payment_received',
      senderEvent: 'orders/create',
      data: { id: 1 },
      dedupKey: '42',
    });
    const never = { ...source, dedup: undefined };
    const read = readDelivery(never, { 'x-topic': 'orders/create', 'idempotency-key': 'k' }, body);
    assert.equal(read.kind === 'delivery' && read.dedupKey, null);
  });

  test('a key is any text but the empty one', () => {
    const keyOf = (key: unknown) => {
      const read = readDelivery(sourceOf('stripe'), {}, { id: key });
      return read.kind === 'delivery' ? read.dedupKey : assert.fail();
    };
    // The database stores a long key as its digest.
    assert.equal(keyOf('x'.repeat(1_000)), 'x'.repeat(1_000));
    for (const none of [null, true, {}, [], '']) assert.equal(keyOf(none), null);
  });

  test('Slack: interactions and commands are events too, with all of their body', () => {
    const click = { type: 'block_actions', actions: [{ value: '1' }] };
    const command = { command: '/deploy', text: 'now', type: 'ignored' };
    const renamed = sourceOf('slack', { events: new Map([['/deploy', 'deploy']]) });
    for (const [source, body, event] of [
      [sourceOf('slack'), click, 'block_actions'],
      [sourceOf('slack'), command, '/deploy'],
      [renamed, command, 'deploy'],
      [sourceOf('slack'), { ssl_check: '1' }, null],
      [sourceOf('slack'), { type: 1 }, null],
    ] as const) {
      const found = readDelivery(source, {}, body);
      assert.ok(found.kind === 'delivery');
      assert.equal(found.event, event);
      assert.equal(found.senderEvent, source === renamed ? '/deploy' : null);
      if (event !== null) assert.deepEqual(found.data, body);
    }
  });
});
