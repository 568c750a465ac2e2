import assert from 'node:assert/strict';
import type { Check } from '../check.ts';
import { mediaType } from '../clients/rest.ts';
import { unique } from '../clients/unique.ts';
import { assertNeverLogged, assertReceived, deliver, logged, loggedAsUnhandled } from '../clients/webhook.ts';

const json = { 'content-type': 'application/json' };

/** Taking deliveries without a secret, and telling the kinds of events apart. */
export const webhookReceiptChecks: readonly Check[] = [
  {
    id: 'HOOK-01',
    heading: 'webhook-receipt',
    level: 'MUST',
    title: 'POST /webhook answers 200 with exactly "Webhook received"',
    async run(subject) {
      assertReceived(await deliver(subject, { event: 'new_commit', data: { id: 'a1b2c3' } }));
      assertReceived(await deliver(subject, { event: 'payment_received', data: { amount: 5 } }));
      assertReceived(await deliver(subject, { event: unique('other'), data: {} }));
    },
  },
  {
    id: 'HOOK-02',
    heading: 'webhook-receipt',
    level: 'SHOULD',
    title: 'the acknowledgement is plain text',
    async run(subject) {
      const reply = await deliver(subject, { event: 'new_commit', data: {} });
      assertReceived(reply);
      assert.equal(mediaType(reply), 'text/plain');
    },
  },
  {
    id: 'HOOK-03',
    heading: 'authentication',
    level: 'MUST',
    title: 'without a secret every request is accepted, whatever token it brings',
    async run(subject) {
      const body = { event: 'new_commit', data: {} };
      for (const token of [undefined, '', 'anything', 'Webhook received', 'x'.repeat(1_000)]) {
        assertReceived(await deliver(subject, body, token));
      }
    },
  },
  {
    id: 'HOOK-04',
    heading: 'events',
    level: 'MUST',
    title: 'new_commit is handled as a commit',
    needs: { logs: true },
    async run(subject) {
      const before = subject.logs().length;
      assertReceived(await deliver(subject, { event: 'new_commit', data: { sha: 'a1b2c3' } }));
      const entry = await logged(subject, /commit/i, before);
      assert.doesNotMatch(String(entry.msg), /unhandled/i);
    },
  },
  {
    id: 'HOOK-05',
    heading: 'events',
    level: 'MUST',
    title: 'payment_received is handled as a payment',
    needs: { logs: true },
    async run(subject) {
      const before = subject.logs().length;
      assertReceived(await deliver(subject, { event: 'payment_received', data: { amount: 5 } }));
      const entry = await logged(subject, /payment/i, before);
      assert.doesNotMatch(String(entry.msg), /unhandled/i);
    },
  },
  {
    id: 'HOOK-06',
    heading: 'events',
    level: 'MUST',
    title: 'any other event is logged as unhandled, and answered 200',
    needs: { logs: true },
    async run(subject) {
      for (const event of [
        unique('issue_opened'),
        unique('New_Commit'),
        unique(' new_commit'),
        'NEW_COMMIT',
        'new_commit ',
        'payment',
        'commit',
        'toString',
        'constructor',
        'hasOwnProperty',
        '__proto__',
        '',
        unique('événement 😀'),
      ]) {
        assertReceived(await deliver(subject, { event, data: {} }));
        await loggedAsUnhandled(subject, event);
      }
    },
  },
  {
    id: 'HOOK-07',
    heading: 'events',
    level: 'MUST',
    title: 'every handled delivery is logged as such, none as unhandled',
    needs: { logs: true },
    async run(subject) {
      const before = subject.logs().length;
      for (let count = 0; count < 5; count += 1) await deliver(subject, { event: 'new_commit', data: count });
      const other = unique('other');
      await deliver(subject, { event: other, data: {} });
      await loggedAsUnhandled(subject, other);
      await logged(subject, /commit/i, before);
      const wrong = subject
        .logs()
        .slice(before)
        .filter(({ event, msg }) => {
          return event === 'new_commit' && /unhandled/i.test(String(msg));
        });
      assert.deepEqual(wrong, []);
    },
  },
  {
    id: 'HOOK-08',
    heading: 'webhook-body',
    level: 'MUST',
    title: 'data is any JSON value, or not there: nobody validates it',
    async run(subject) {
      const values = [null, true, 0, -1.5e300, '', 'text', [], [1, [2, [3]]], {}, { a: { b: { c: null } } }];
      for (const event of ['new_commit', 'payment_received', 'other']) {
        for (const data of values) assertReceived(await deliver(subject, { event, data }));
        assertReceived(await deliver(subject, { event }));
      }
    },
  },
  {
    id: 'HOOK-09',
    heading: 'webhook-body',
    level: 'SHOULD',
    title: 'a body is any JSON value: an array, a scalar, an object without an event or with a strange one',
    async run(subject) {
      for (const body of [
        [],
        [{ event: 'new_commit' }],
        1,
        0,
        'text',
        '',
        true,
        false,
        null,
        {},
        { data: {} },
        { event: null },
        { event: 5, data: {} },
        { event: ['new_commit'], data: {} },
        { event: { name: 'new_commit' }, data: {} },
        { Event: 'new_commit' },
      ]) {
        assertReceived(await deliver(subject, body));
      }
    },
  },
  {
    id: 'HOOK-10',
    heading: 'webhook-receipt',
    level: 'MUST',
    title: 'the body is parsed as JSON whatever its content type says',
    needs: { logs: true },
    async run(subject) {
      for (const type of [
        undefined,
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data',
        'application/octet-stream',
        'application/cloudevents+json; charset=utf-8',
        'nonsense',
      ]) {
        const event = unique('typed');
        const headers = type === undefined ? {} : { 'content-type': type };
        const body = JSON.stringify({ event, data: {} });
        assertReceived(await subject.webhook.send('POST', '/webhook', { headers, body }));
        await loggedAsUnhandled(subject, event);
      }
    },
  },
  {
    id: 'HOOK-11',
    heading: 'errors',
    level: 'SHOULD',
    title: 'malformed JSON and an empty body are 400 and not processed',
    needs: { logs: true },
    async run(subject) {
      const event = unique('malformed');
      for (const body of [
        '',
        ' ',
        '{',
        `{"event":"${event}"`,
        `{"event":"${event}",}`,
        `event=${event}`,
        'NaN',
        '{}{}',
      ]) {
        const reply = await subject.webhook.send('POST', '/webhook', { headers: json, body });
        assert.equal(reply.status, 400, body);
        assert.notEqual(reply.text, 'Webhook received', body);
      }
      const last = unique('after');
      await deliver(subject, { event: last, data: {} });
      await loggedAsUnhandled(subject, last);
      assertNeverLogged(subject, event);
    },
  },
  {
    id: 'HOOK-12',
    heading: 'webhook-receipt',
    level: 'SHOULD',
    title: 'other methods on /webhook are 405 with Allow: POST',
    async run(subject) {
      assertReceived(await deliver(subject, { event: 'new_commit', data: {} }));
      for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']) {
        const reply = await subject.webhook.send(method, '/webhook');
        assert.equal(reply.status, 405, method);
        assert.match(String(reply.headers.allow), /\bPOST\b/, method);
      }
    },
  },
  {
    id: 'HOOK-13',
    heading: 'webhook-receipt',
    level: 'SHOULD',
    title: 'other paths are 404 for every method, and nothing is processed',
    needs: { logs: true },
    async run(subject) {
      const event = unique('elsewhere');
      const options = { headers: json, body: JSON.stringify({ event, data: {} }) };
      for (const path of ['/', '/Webhook', '/webhooks', '/webhook/github', '/users', '/health']) {
        assert.equal((await subject.webhook.send('POST', path, options)).status, 404, path);
        // A service may say at its root what it is.
        if (path !== '/') assert.equal((await subject.webhook.send('GET', path)).status, 404, path);
      }
      const last = unique('after');
      await deliver(subject, { event: last, data: {} });
      await loggedAsUnhandled(subject, last);
      assertNeverLogged(subject, event);
    },
  },
  {
    id: 'HOOK-14',
    heading: 'events',
    level: 'SHOULD',
    title: 'an event name cannot forge a log line, and a huge one does not fill the log',
    needs: { logs: true },
    async run(subject) {
      const token = unique('forged');
      for (const event of [`a\n{"level":60,"msg":"${token}"}`, `b\r\n\u001b[2J${token}`, `c\u2028${token}`]) {
        assertReceived(await deliver(subject, { event, data: {} }));
      }
      assertReceived(await deliver(subject, { event: 'x'.repeat(200_000), data: {} }));
      const last = unique('after');
      await deliver(subject, { event: last, data: {} });
      await loggedAsUnhandled(subject, last);
      for (const entry of subject.logs()) {
        assert.notEqual(entry.msg, token);
        assert.ok(JSON.stringify(entry).length < 20_000, 'no entry is huge');
      }
    },
  },
  {
    id: 'HOOK-15',
    heading: 'webhook-body',
    level: 'SHOULD',
    title: 'an event that is no string is none, even when it would read like one',
    needs: { logs: true },
    async run(subject) {
      const before = subject.logs().length;
      const reply = await deliver(subject, { event: ['new_commit'], data: {} });
      assertReceived(reply);
      assertReceived(await deliver(subject, { event: 'payment_received', data: {} }));
      await logged(subject, /payment/i, before);
      // Where entries name their deliveries, those that were waiting from before do not count.
      const id = reply.headers['x-delivery-id'];
      const said = subject.logs().slice(before);
      assert.deepEqual(
        said.filter(({ msg, delivery = id }) => /commit/i.test(String(msg)) && delivery === id),
        [],
      );
    },
  },
];
