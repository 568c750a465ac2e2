import assert from 'node:assert/strict';
import { waitFor } from '../../support/wait-for.ts';
import type { Check } from '../check.ts';
import { unique } from '../clients/unique.ts';
import { assertReceived, type Call, calls, deliver, handled, loggedAsUnhandled } from '../clients/webhook.ts';
import { fullModule, waitingModule } from '../modules.ts';

const needs = { module: fullModule };

/** Handlers of the user's own, and what is kept until they have run. */
export const webhookHandlerChecks: readonly Check[] = [
  {
    id: 'HOOK-40',
    heading: 'events',
    level: 'SHOULD',
    title: 'a handler from the configuration module gets id, event, data and receivedAt',
    needs,
    async run(subject) {
      const token = unique('order');
      const start = Date.now();
      const data = { token, items: [1, 'zwei', null, { d: 4.5 }], text: 'Grüße 😀\u2028"\\' };
      assertReceived(await deliver(subject, { event: 'order_placed', data }));
      const call = await handled(subject, token);
      for (const key of ['data', 'event', 'id', 'receivedAt']) assert.ok(call.keys.includes(key), key);
      assert.equal(call.event, 'order_placed');
      assert.deepEqual(call.data, data);
      assert.ok(call.isDate, 'receivedAt is a Date');
      const received = Date.parse(call.receivedAt);
      assert.ok(received >= start - 1 && received <= Date.now() + 1, call.receivedAt);
      assert.match(call.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    },
  },
  {
    id: 'HOOK-41',
    heading: 'events',
    level: 'SHOULD',
    title:
      'each delivery is handled once, in its turn, under an id of its own; equal bodies are two deliveries',
    needs,
    async run(subject) {
      const token = unique('order');
      for (let count = 0; count < 20; count += 1) {
        assertReceived(await deliver(subject, { event: 'order_placed', data: { token } }));
      }
      const last = unique('last');
      await deliver(subject, { event: 'order_placed', data: { token: last } });
      await handled(subject, last);
      const mine = async () =>
        (await calls(subject)).filter(({ data }) => JSON.stringify(data).includes(token));
      await waitFor('20 calls', async () => (await mine()).length >= 20);
      const found = await mine();
      assert.equal(found.length, 20);
      assert.equal(new Set(found.map(({ id }) => id)).size, 20);
    },
  },
  {
    id: 'HOOK-42',
    heading: 'events',
    level: 'SHOULD',
    title: 'the answer does not wait for the handler',
    needs,
    async run(subject) {
      const token = unique('held');
      assertReceived(await deliver(subject, { event: 'order_held', data: { token } }));
      assert.ok(!JSON.stringify(await calls(subject)).includes(token), 'the handler is still held');
      const other = unique('meanwhile');
      assertReceived(await deliver(subject, { event: 'order_placed', data: { token: other } }));
      assert.equal((await subject.management.send('GET', '/actuator/release')).text, 'released');
      await handled(subject, token);
      await handled(subject, other);
    },
  },
  {
    id: 'HOOK-43',
    heading: 'events',
    level: 'SHOULD',
    title: 'a handler that throws changes neither the answer nor the handling of later deliveries',
    needs,
    async run(subject) {
      const token = unique('broken');
      assertReceived(await deliver(subject, { event: 'order_broken', data: { token } }));
      await handled(subject, token);
      const next = unique('next');
      assertReceived(await deliver(subject, { event: 'order_placed', data: { token: next } }));
      await handled(subject, next);
    },
  },
  {
    id: 'HOOK-44',
    heading: 'events',
    level: 'SHOULD',
    title: 'an event with a handler is not logged as unhandled, one without a handler still is',
    needs: { ...needs, logs: true },
    async run(subject) {
      const token = unique('order');
      await deliver(subject, { event: 'order_placed', data: { token } });
      await handled(subject, token);
      const event = unique('nobody');
      await deliver(subject, { event, data: {} });
      await loggedAsUnhandled(subject, event);
      const wrong = subject
        .logs()
        .filter((entry) => entry.event === 'order_placed' && /unhandled/i.test(String(entry.msg)));
      assert.deepEqual(wrong, []);
    },
  },
  {
    id: 'HOOK-45',
    heading: 'webhook-receipt',
    level: 'SHOULD',
    title: 'deliveries that still wait when the service stops are handled after the restart, each once',
    needs: { module: waitingModule, env: { MANAGEMENT_INCLUDE: '*' }, restart: true },
    async run(subject) {
      const management = (path: string) => subject.management.send('GET', path);
      const tokens = Array.from({ length: 200 }, () => unique('waiting'));
      const replies = await Promise.all(
        tokens.map((token) =>
          deliver(subject, { event: 'order_waiting', data: { token, text: 'Grüße 😀' } }),
        ),
      );
      for (const reply of replies) assertReceived(reply);
      await waitFor('the handlers to begin', async () => (await management('/actuator/begun')).text !== '0');
      const restarted = subject.restart?.();
      // Those that have begun may end, once no others will begin.
      await waitFor('the stop to begin', async () => (await management('/readyz')).status === 503);
      assert.equal((await management('/actuator/release')).text, 'released');
      await restarted;
      await waitFor('all calls', async () => (await calls(subject)).length >= tokens.length);
      const handledOnes = (await calls(subject)) as readonly (Call & { held: boolean })[];
      const seen = handledOnes.map(({ data }) => (data as { token: string }).token);
      assert.deepEqual(seen.toSorted(), tokens.toSorted());
      assert.ok(
        handledOnes.some(({ held }) => !held),
        'some waited for the restart',
      );
      for (const { data } of handledOnes) assert.equal((data as { text: string }).text, 'Grüße 😀');
      await subject.restart?.();
      const next = unique('next');
      await deliver(subject, { event: 'order_waiting', data: { token: next } });
      await handled(subject, next);
      assert.equal((await calls(subject)).length, tokens.length + 1, 'what was handled is not handled again');
    },
  },
  {
    id: 'HOOK-46',
    heading: 'events',
    level: 'SHOULD',
    title: '200 deliveries at the same time are all acknowledged and each is handled once',
    needs,
    async run(subject) {
      const tokens = Array.from({ length: 200 }, () => unique('burst'));
      const isBurst = (token: string) => token.startsWith('burst-');
      const replies = await Promise.all(
        tokens.map((token) => deliver(subject, { event: 'order_placed', data: { token } })),
      );
      for (const reply of replies) assertReceived(reply);
      const seen = async () =>
        (await calls(subject)).map(({ data }) => (data as { token: string }).token).filter(isBurst);
      await waitFor('200 calls', async () => (await seen()).length >= 200);
      assert.deepEqual((await seen()).toSorted(), tokens.toSorted());
    },
  },
  {
    id: 'HOOK-47',
    heading: 'events',
    level: 'SHOULD',
    title: 'a handler that threw is called again with the same delivery until it succeeds',
    needs,
    async run(subject) {
      const token = unique('again');
      assertReceived(await deliver(subject, { event: 'order_flaky', data: { token } }));
      const mine = async () =>
        (await calls(subject)).filter(({ data }) => JSON.stringify(data).includes(token));
      await waitFor('a second call', async () => (await mine()).length >= 2, 3_000);
      const [first, second] = await mine();
      assert.deepEqual(second, first);
    },
  },
];
