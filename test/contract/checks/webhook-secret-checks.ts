import assert from 'node:assert/strict';
import { rawHttp } from '../../support/connections.ts';
import type { Check } from '../check.ts';
import { unique } from '../clients/unique.ts';
import {
  assertNeverLogged,
  assertReceived,
  assertUnauthorized,
  calls,
  deliver,
  handled,
  loggedAsUnhandled,
} from '../clients/webhook.ts';
import { fullModule, settings } from '../modules.ts';

const secret = settings.secret.WEBHOOK_SECRET;
const needs = { env: settings.secret, module: fullModule };
const wrong = [
  'wrong',
  '',
  ' ',
  secret.slice(0, -1),
  `${secret}x`,
  secret.toLowerCase(),
  secret.toUpperCase(),
  `${secret},${secret}`,
  `Bearer ${secret}`,
  `"${secret}"`,
  'undefined',
  'null',
  '*',
  'x'.repeat(4_000),
];

/** The shared secret in x-webhook-token. */
export const webhookSecretChecks: readonly Check[] = [
  {
    id: 'HOOK-20',
    heading: 'webhook-receipt',
    level: 'MUST',
    title: 'when secured, a missing token is 401 with exactly "Unauthorized"',
    needs,
    async run(subject) {
      assertReceived(await deliver(subject, { event: 'new_commit', data: {} }, secret));
      assertUnauthorized(await deliver(subject, { event: 'new_commit', data: {} }));
      assertUnauthorized(await subject.webhook.send('POST', '/webhook'));
    },
  },
  {
    id: 'HOOK-21',
    heading: 'webhook-receipt',
    level: 'MUST',
    title: 'when secured, a token that differs in anything is 401 with exactly "Unauthorized"',
    needs,
    async run(subject) {
      assertReceived(await deliver(subject, { event: 'new_commit', data: {} }, secret));
      for (const token of wrong) assertUnauthorized(await deliver(subject, { event: 'new_commit' }, token));
    },
  },
  {
    id: 'HOOK-22',
    heading: 'webhook-receipt',
    level: 'MUST',
    title: 'the right token is 200, and the event is processed by its kind',
    needs: { ...needs, logs: true },
    async run(subject) {
      for (const event of ['new_commit', 'payment_received']) {
        assertReceived(await deliver(subject, { event, data: {} }, secret));
      }
      const event = unique('opened');
      assertReceived(await deliver(subject, { event, data: {} }, secret));
      await loggedAsUnhandled(subject, event);
    },
  },
  {
    id: 'HOOK-23',
    heading: 'webhook-receipt',
    level: 'MUST',
    title: 'a refused event is not processed: no handler runs and no log entry names it',
    needs: { ...needs, logs: true },
    async run(subject) {
      const token = unique('refused');
      const body = { event: 'order_placed', data: { token } };
      assertUnauthorized(await deliver(subject, body));
      for (const other of wrong) assertUnauthorized(await deliver(subject, body, other));
      const unhandled = unique('refused-other');
      assertUnauthorized(await deliver(subject, { event: unhandled, data: {} }, 'wrong'));
      const good = unique('accepted');
      assertReceived(await deliver(subject, { event: 'order_placed', data: { token: good } }, secret));
      await handled(subject, good);
      assert.ok(!JSON.stringify(await calls(subject)).includes(token));
      assertNeverLogged(subject, token);
      assertNeverLogged(subject, unhandled);
    },
  },
  {
    id: 'HOOK-24',
    heading: 'webhook-receipt',
    level: 'MUST',
    title: 'a wrong token is 401 whatever the body is: malformed, empty or huge',
    needs,
    async run(subject) {
      assertReceived(await deliver(subject, { event: 'new_commit', data: {} }, secret));
      for (const body of ['{', '', '\u0000', '['.repeat(10_000), 'x'.repeat(60_000)]) {
        for (const token of [undefined, 'wrong']) {
          const headers = { 'content-type': 'application/json', ...(token && { 'x-webhook-token': token }) };
          assertUnauthorized(await subject.webhook.send('POST', '/webhook', { headers, body }));
        }
      }
    },
  },
  {
    id: 'HOOK-25',
    heading: 'authentication',
    level: 'SHOULD',
    title: 'while a secret is rotated each of several is right, and nothing else',
    needs: { env: settings.twoSecrets },
    async run(subject) {
      const body = { event: 'new_commit', data: {} };
      for (const token of ['the-old-one', 'the-new-one']) assertReceived(await deliver(subject, body, token));
      for (const token of [
        'the-old-one,the-new-one',
        'the-old-one,',
        ',',
        '',
        'the',
        'the-old-one the-new-one',
      ]) {
        assertUnauthorized(await deliver(subject, body, token));
      }
      assertUnauthorized(await deliver(subject, body));
    },
  },
  {
    id: 'HOOK-26',
    heading: 'webhook-receipt',
    level: 'MUST',
    title: 'the token counts only in the header x-webhook-token, whose name is in any case',
    needs,
    async run(subject) {
      const options = { body: '{"event":"new_commit","data":{}}' };
      const send = (headers: Record<string, string>, query = '') =>
        subject.webhook.send('POST', `/webhook${query}`, { ...options, headers });
      assertReceived(await send({ 'X-Webhook-Token': secret }));
      assertReceived(await send({ 'X-WEBHOOK-TOKEN': secret }));
      assertUnauthorized(await send({ authorization: secret }));
      assertUnauthorized(await send({ 'x-webhook-secret': secret }));
      assertUnauthorized(await send({}, `?x-webhook-token=${secret}`));
    },
  },
  {
    id: 'HOOK-27',
    heading: 'authentication',
    level: 'SHOULD',
    title: 'the secret and tokens that were sent are in no log entry',
    needs: { ...needs, logs: true },
    async run(subject) {
      const token = unique('guess');
      await deliver(subject, { event: 'new_commit', data: {} }, token);
      await deliver(subject, { event: 'new_commit', data: {} }, secret);
      const last = unique('after');
      await deliver(subject, { event: last, data: {} }, secret);
      await loggedAsUnhandled(subject, last);
      assertNeverLogged(subject, token);
      assertNeverLogged(subject, secret);
    },
  },
  {
    id: 'HOOK-28',
    heading: 'authentication',
    level: 'SHOULD',
    title: 'a secret beyond ASCII matches when the sender writes it in UTF-8',
    needs: { env: settings.beyondAscii },
    async run(subject) {
      // Header bytes go out as Latin-1: this is how the UTF-8 bytes of a text get into one.
      const bytes = (text: string) => Buffer.from(text, 'utf8').toString('latin1');
      const body = { event: 'new_commit', data: {} };
      assertReceived(await deliver(subject, body, bytes('Schlüssel-ключ')));
      assertUnauthorized(await deliver(subject, body, bytes('Schlussel-ключ')));
    },
  },
  {
    id: 'HOOK-29',
    heading: 'webhook-receipt',
    level: 'SHOULD',
    title: 'the token is checked before the body is read: the 401 does not wait for it',
    needs: { ...needs, socket: true },
    async run(subject) {
      const head = 'POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000';
      for (const token of ['', '\r\nX-Webhook-Token: wrong']) {
        const reply = await rawHttp(subject.webhook.url ?? '', [`${head}${token}\r\n\r\n{"event":`]);
        assert.equal(reply.status, 401);
        assert.match(reply.text, /\r\n\r\nUnauthorized$/);
      }
      const tooLarge = `${head}000\r\nX-Webhook-Token: wrong\r\n\r\n`;
      assert.equal((await rawHttp(subject.webhook.url ?? '', [tooLarge])).status, 401);
      assertReceived(await deliver(subject, { event: 'new_commit', data: {} }, secret));
    },
  },
];
