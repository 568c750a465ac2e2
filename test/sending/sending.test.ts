import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { startReceiver } from '../support/receiver.ts';
import { sendingEngines, startSending } from '../support/sending.ts';
import { waitFor } from '../support/wait-for.ts';

for (const [engine, { skip, url }] of Object.entries(sendingEngines)) {
  describe(`sending on ${engine}`, { skip }, () => {
    test('an event reaches the endpoints that are subscribed to it, signed, and no others', async () => {
      await using receiver = await startReceiver();
      await using sending = await startSending(await url());
      const all = await sending.endpoint('acme', { url: `${receiver.url}/all` });
      const paid = await sending.endpoint('acme', {
        url: `${receiver.url}/paid`,
        types: ['invoice.paid', 'order.*'],
      });
      await sending.endpoint('acme', { url: `${receiver.url}/large`, filter: { amount: { gt: 100 } } });
      await sending.endpoint('acme', { url: `${receiver.url}/eu`, channels: ['eu'] });
      await sending.endpoint('other', { url: `${receiver.url}/other` });
      const ids = [
        await sending.publish({ tenant: 'acme', type: 'invoice.paid', data: { amount: 7 } }),
        await sending.publish({ tenant: 'acme', type: 'order.line.added', data: { amount: 700 } }),
        await sending.publish({
          tenant: 'acme',
          type: 'invoice.made',
          data: { amount: 8 },
          channels: ['eu', 'x'],
        }),
      ];
      await waitFor('all of them', () => receiver.at('/all').length === 3);
      await waitFor('some of them', () => receiver.at('/paid').length === 2);
      await waitFor('the large one', () => receiver.at('/large').length === 1);
      await waitFor('the one of the channel', () => receiver.at('/eu').length === 1);
      assert.deepEqual(receiver.at('/other'), []);
      for (const [path, { secret }] of [
        ['/all', all],
        ['/paid', paid],
      ] as const) {
        for (const { headers, body } of receiver.at(path)) {
          const signed = [body.toString(), headers as Record<string, string>] as const;
          const event = new Webhook(secret).verify(...signed);
          new SvixWebhook(secret).verify(...signed);
          const another = new SvixWebhook(`whsec_${Buffer.alloc(32).toString('base64')}`);
          assert.throws(() => another.verify(...signed));
          assert.ok(ids.includes(String(headers['webhook-id'])));
          assert.equal(typeof (event as { type: unknown }).type, 'string');
        }
      }
      const [large] = receiver.at('/large');
      assert.equal(large?.headers['webhook-id'], ids[1]);
      assert.deepEqual(JSON.parse(String(large?.body)).data, { amount: 700 });
      const shown = await sending.call('GET', `/webhooks/tenants/acme/events/${ids[0]}`);
      assert.equal(shown.status, 200);
      assert.deepEqual(shown.body.body.data, { amount: 7 });
      await waitFor('its ends', async () => {
        const { body } = await sending.call('GET', `/webhooks/tenants/acme/events/${ids[0]}`);
        return (
          body.endpoints.length === 2 &&
          body.endpoints.every((each: { status: string }) => each.status === 'done')
        );
      });
      assert.equal((await sending.call('GET', `/webhooks/tenants/other/events/${ids[0]}`)).status, 404);
    });

    test('a request with the same key is one event', async () => {
      await using receiver = await startReceiver();
      await using sending = await startSending(await url());
      await sending.endpoint('acme', { url: `${receiver.url}/all` });
      const event = { tenant: 'acme', type: 'a', data: 1 };
      const headers = { 'idempotency-key': 'one' };
      const first = await sending.call('POST', '/events', event, headers);
      const second = await sending.call('POST', '/events', event, headers);
      assert.deepEqual([first.status, second.status], [202, 200]);
      assert.equal(first.body.endpoints, 1);
      assert.equal(second.body.id, first.body.id);
      await sending.publish({ ...event, data: 2 });
      await waitFor('both', () => receiver.at('/all').length === 2);
    });

    test('a failed attempt is repeated, and its history is shown', async () => {
      await using receiver = await startReceiver({
        '/late': (response, attempt) => response.writeHead(attempt < 3 ? 500 : 200).end(`answer ${attempt}`),
      });
      await using sending = await startSending(await url());
      const { id } = await sending.endpoint('acme', { url: `${receiver.url}/late` });
      const event = await sending.publish({ tenant: 'acme', type: 'a', data: {} });
      await waitFor('the third attempt', () => receiver.at('/late').length === 3);
      const at = `/webhooks/tenants/acme/endpoints/${id}`;
      const attempts = await waitFor('its history', async () => {
        const { body } = await sending.call('GET', `${at}/events/${event}/attempts`);
        return body.items.length === 3 ? body.items : undefined;
      });
      assert.deepEqual(
        attempts.map(({ outcome, status, answer }: Record<string, unknown>) => [outcome, status, answer]),
        [
          ['retry', 500, 'answer 1'],
          ['retry', 500, 'answer 2'],
          ['done', 200, 'answer 3'],
        ],
      );
      const { body: stats } = await sending.call('GET', `${at}/stats`);
      assert.deepEqual(stats.byStatus, { done: 1 });
      await waitFor('it not to fail', async () => (await sending.call('GET', at)).body.failingSince === null);
    });

    test('a rotation signs with both secrets, and 410 disables the endpoint with a notice', async () => {
      await using receiver = await startReceiver({ '/gone': (response) => response.writeHead(410).end() });
      await using sending = await startSending(await url());
      const { id, secret } = await sending.endpoint('acme', { url: `${receiver.url}/all` });
      const at = `/webhooks/tenants/acme/endpoints/${id}`;
      const rotated = await sending.call('POST', `${at}/secret`, {});
      assert.equal(rotated.status, 200);
      await sending.publish({ tenant: 'acme', type: 'a', data: {} });
      await waitFor('it', () => receiver.at('/all').length === 1);
      const [{ headers, body } = { headers: {}, body: '' }] = receiver.at('/all');
      for (const each of [secret, rotated.body.secret])
        new Webhook(each).verify(body.toString(), headers as Record<string, string>);
      assert.equal((await sending.call('GET', at)).body.secret, undefined);
      const shown = await sending.call('POST', `${at}/secret/show`);
      assert.deepEqual(
        shown.body.secrets.map((each: { secret: string }) => each.secret),
        [rotated.body.secret, secret],
      );

      const gone = await sending.endpoint('acme', { url: `${receiver.url}/gone` });
      await sending.publish({ tenant: 'acme', type: 'b', data: {} });
      const disabled = await waitFor('it to be disabled', async () => {
        const { body } = await sending.call('GET', `/webhooks/tenants/acme/endpoints/${gone.id}`);
        return body.enabled ? undefined : body;
      });
      assert.equal(disabled.disabledBecause, 'gone');
      await sending.publish({ tenant: 'acme', type: 'c', data: {} });
      await waitFor('the other endpoint', () => receiver.at('/all').length === 3);
      assert.equal(receiver.at('/gone').length, 1);
    });

    test('an endpoint made later gets earlier events by a replay, and one event by a resend', async () => {
      await using receiver = await startReceiver();
      await using sending = await startSending(await url());
      const events: string[] = [];
      for (const type of ['a', 'b', 'a'])
        events.push(await sending.publish({ tenant: 'acme', type, data: { type } }));
      const { id } = await sending.endpoint('acme', { url: `${receiver.url}/late` });
      const at = `/webhooks/tenants/acme/endpoints/${id}`;
      const resent = await sending.call('POST', `${at}/events/${events[1]}/resend`);
      assert.equal(resent.status, 202);
      await waitFor('the resent one', () => receiver.at('/late').length === 1);
      let after: number | null = 0;
      let added = 0;
      while (after !== null) {
        const { body, status } = await sending.call('POST', `${at}/replay`, {
          since: '1h',
          types: ['a'],
          after,
        });
        assert.equal(status, 200, JSON.stringify(body));
        added += body.added;
        after = body.next;
      }
      assert.equal(added, 2);
      await waitFor('all', () => receiver.at('/late').length === 3);
      assert.deepEqual(
        receiver
          .at('/late')
          .map(({ headers }) => headers['webhook-id'])
          .toSorted(),
        events.toSorted(),
      );
    });

    test('what each attempt was answered stays, when a success is resent too', async () => {
      await using receiver = await startReceiver({
        '/in': (response, attempt) => response.writeHead(attempt === 1 ? 500 : 201).end(`answer ${attempt}`),
      });
      await using sending = await startSending(await url());
      const { id } = await sending.endpoint('acme', { url: `${receiver.url}/in` });
      const event = await sending.publish({ tenant: 'acme', type: 'a', data: 1 });
      const at = `/webhooks/tenants/acme/endpoints/${id}/events/${event}`;
      const attempts = async () => {
        const { body } = await sending.call('GET', `${at}/attempts`);
        return body.items.map(({ attempt, outcome, status, answer }: Record<string, unknown>) =>
          [attempt, outcome, status, answer].join(' '),
        );
      };
      const before = ['1 retry 500 answer 1', '2 done 201 answer 2'];
      await waitFor('the success', async () => (await attempts()).length === 2);
      assert.deepEqual(await attempts(), before);
      assert.equal((await sending.call('POST', `${at}/resend`)).status, 202);
      await waitFor('the resent one', async () => (await attempts()).length === 3);
      assert.deepEqual(await attempts(), [...before, '1 done 201 answer 3']);
    });
  });
}
