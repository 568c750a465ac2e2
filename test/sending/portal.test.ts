import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startReceiver } from '../support/receiver.ts';
import { startSending } from '../support/sending.ts';
import { waitFor } from '../support/wait-for.ts';

/** Opens the portal for a tenant by a link; `call` is one of its requests. */
async function openPortal(
  sending: Awaited<ReturnType<typeof startSending>>,
  tenant: string,
  minutes?: number,
) {
  const { status, body } = await sending.call(
    'POST',
    `/webhooks/tenants/${tenant}/portal`,
    minutes === undefined ? {} : { minutes },
  );
  assert.equal(status, 201, JSON.stringify(body));
  const [base, token] = body.url.split('/#');
  const call = async (method: string, path: string, given?: unknown, authorization = `Bearer ${token}`) => {
    const response = await fetch(`${base}/api/${path}`, {
      method,
      headers: { authorization, ...(given !== undefined && { 'content-type': 'application/json' }) },
      ...(given !== undefined && { body: JSON.stringify(given) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  };
  return { base, token, call, expiresAt: body.expiresAt };
}

const PORTAL = { port: 0, title: 'Acme <hooks>', origins: ['https://app.example.com'] };

test('a link opens the endpoints and events of its tenant, and those of no other', async () => {
  await using receiver = await startReceiver();
  await using sending = await startSending(undefined, { portal: PORTAL });
  const other = await sending.endpoint('other', { url: `${receiver.url}/other` });
  const event = await sending.publish({ tenant: 'other', type: 'a', data: 1 });
  await waitFor('it', () => receiver.at('/other').length === 1);
  const { call } = await openPortal(sending, 'acme');
  assert.deepEqual((await call('GET', 'me')).body, { tenant: 'acme', title: PORTAL.title, transforms: [] });
  const made = await call('POST', 'endpoints', { url: `${receiver.url}/own` });
  assert.equal(made.status, 201);
  const own = made.body.id;
  assert.deepEqual(
    (await call('GET', 'endpoints')).body.items.map(({ id }: { id: string }) => id),
    [own],
  );
  assert.equal((await call('POST', `endpoints/${own}/test`, {})).status, 202);
  await waitFor('the test event', () => receiver.at('/own').length === 1);
  const [sent] = (await call('GET', `endpoints/${own}/events`)).body.items;
  assert.equal(sent.type, 'portico.test');

  // What other tenants have does not exist here, by any path.
  const foreign: readonly (readonly [string, string, unknown?])[] = [
    ['GET', `endpoints/${other.id}`],
    ['PATCH', `endpoints/${other.id}`, { enabled: false }],
    ['DELETE', `endpoints/${other.id}`],
    ['GET', `endpoints/${other.id}/stats`],
    ['GET', `endpoints/${other.id}/events`],
    ['GET', `endpoints/${other.id}/events/${event}/attempts`],
    ['POST', `endpoints/${other.id}/events/${event}/resend`],
    ['POST', `endpoints/${other.id}/secret`, {}],
    ['POST', `endpoints/${other.id}/secret/show`],
    ['POST', `endpoints/${other.id}/test`, {}],
    ['POST', `endpoints/${other.id}/replay`, { since: '1h' }],
    ['GET', `events/${event}`],
    ['POST', `endpoints/${own}/events/${event}/resend`],
    ['GET', `endpoints/${own}/events/${event}/attempts`],
    ['GET', 'tenants'],
    ['GET', 'tenants/other/endpoints'],
    ['GET', `endpoints/..%2F..%2Fother%2Fendpoints`],
    ['GET', `endpoints/../../other/endpoints`],
    ['PUT', 'event-types/a', {}],
    ['DELETE', 'event-types/a'],
    ['POST', 'portal', {}],
    ['GET', ''],
  ];
  for (const [method, path, given] of foreign) {
    const { status } = await call(method, path, given);
    assert.ok(status === 404 || status === 405, `${method} ${path}: ${status}`);
  }
  assert.deepEqual(
    (await call('GET', 'events')).body.items.map(({ type }: { type: string }) => type),
    ['portico.test'],
  );
  assert.equal(
    (await sending.call('GET', `/webhooks/tenants/other/endpoints/${other.id}`)).body.enabled,
    true,
  );
});

test('only a link that is whole and has not ended opens the portal', async () => {
  await using sending = await startSending(undefined, { portal: PORTAL });
  const { call, token, expiresAt } = await openPortal(sending, 'acme', 5);
  assert.ok(Date.parse(expiresAt) - Date.now() <= 300_000);
  const [version, payload, signature] = token.split('.');
  const forged = Buffer.from(JSON.stringify(['other', Date.now() + 60_000])).toString('base64url');
  const wrong = [
    '',
    'Bearer ',
    `Bearer ${version}.${forged}.${signature}`,
    `Bearer ${version}.${payload}.`,
    `Bearer ${payload}.${signature}`,
    `Basic ${token}`,
  ];
  for (const authorization of wrong)
    assert.equal((await call('GET', 'endpoints', undefined, authorization)).status, 401, authorization);
  assert.equal((await call('GET', 'endpoints')).status, 200);
  for (const minutes of [0, -1, 1e9, 'x']) {
    const { status } = await sending.call('POST', '/webhooks/tenants/acme/portal', { minutes });
    assert.equal(status, 400);
  }
});

test('the page says who may embed it, and its title is text', async () => {
  await using sending = await startSending(undefined, { portal: PORTAL });
  const { base } = await openPortal(sending, 'acme');
  const page = await fetch(`${base}/`);
  assert.match(
    page.headers.get('content-security-policy') ?? '',
    /frame-ancestors https:\/\/app\.example\.com/,
  );
  const text = await page.text();
  assert.ok(text.includes('Acme &lt;hooks&gt;'));
  assert.ok(!text.includes('<hooks>'));
});
