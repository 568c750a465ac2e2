import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeCertificate, writeCertificate } from '../support/certificates.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const TEST = JSON.stringify({ source: '', event: 'new_commit', data: {} });

/** Asks the console's endpoints; resolves to the status and what the body holds. */
async function ask(request: typeof httpRequest, to: RequestOptions, path: string, body?: string) {
  const headers = { 'x-portico-console': '1', 'content-type': 'application/json', ...to.headers };
  const method = body === undefined ? 'GET' : 'POST';
  const asked = request({ ...to, path: `/actuator/console${path}`, method, headers, agent: false });
  asked.end(body);
  const [response] = await once(asked, 'response');
  let text = '';
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode, value: text.startsWith('{') ? JSON.parse(text) : text };
}

interface Door {
  readonly name: string;
  readonly url: string;
  readonly page: boolean;
}

test('over TLS the console has its own addresses and origin, and sends its test deliveries', async () => {
  await using folder = await temporaryFolder();
  const authority = makeCertificate('authority');
  const env = await writeCertificate(folder.path, makeCertificate('portico', authority));
  await using service = await startTestService({ env });
  await service.listen();
  const { hostname: host, port, origin } = new URL(service.urls.management ?? '');
  const to = { host, port, ca: authority.cert, headers: { origin } };
  const about = await ask(httpsRequest, to, '/api/about');
  assert.equal(about.status, 200);
  for (const { url } of about.value.doors as readonly Door[]) assert.match(url, /^https:/);
  const { status, value } = await ask(httpsRequest, to, '/api/test-deliveries', TEST);
  assert.deepEqual([status, value.status, value.body], [200, 200, 'Webhook received']);
  const plain = { ...to, headers: { origin: origin.replace('https', 'http') } };
  assert.equal((await ask(httpsRequest, plain, '/api/test-deliveries', TEST)).status, 403);
});

test('on Unix sockets the console is for this machine, unless somebody else is spoken for', async () => {
  await using folder = await temporaryFolder();
  const at = (name: string) => join(folder.path, name);
  const env = { MANAGEMENT_PORT: `unix:${at('m')}`, PORT: `unix:${at('w')}` };
  await using service = await startTestService({ env });
  await service.listen();
  const to = { socketPath: at('m') };
  const about = await ask(httpRequest, to, '/api/about');
  assert.equal(about.status, 200);
  const doors = (about.value.doors as readonly Door[]).map(({ name, page }) => [name, page]);
  assert.deepEqual(Object.fromEntries(doors), {
    graphql: true,
    rest: true,
    webhook: false,
    management: false,
  });
  const { value } = await ask(httpRequest, to, '/api/test-deliveries', TEST);
  assert.deepEqual([value.status, value.body], [200, 'Webhook received']);
  const forwarded = { ...to, headers: { 'x-forwarded-for': '203.0.113.7' } };
  assert.equal((await ask(httpRequest, forwarded, '/api/about')).status, 403);
});
