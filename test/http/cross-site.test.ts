import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Door } from '../../src/config/options/options.ts';
import { LAST_REQUEST } from '../support/odd-requests.ts';
import { startTransportTwins, type TransportTwins } from '../support/transport-twins.ts';

const JSON_TYPE = 'Content-Type: application/json';
const USER = '{"name":"Eve","email":"e@x.y"}';
const NOTE = '{"name":"Eve","text":"a"}';
const MUTATION = '{"query":"mutation { createUser(name: \\"Eve\\", email: \\"e@x.y\\") { name } }"}';
const STREAM = 'Accept: text/event-stream';
const UPGRADE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws';

type Asked = readonly [door: Door, line: string, lines: string, body: string];

/** What a page of another site may not have its browser send. */
const REFUSED: readonly Asked[] = [
  ['rest', 'POST /users', JSON_TYPE, USER],
  ['rest', 'POST /users', 'Content-Type: text/plain', USER],
  ['rest', 'POST /users', 'Content-Type: application/x-ndjson', `${USER}\n`],
  ['rest', 'PUT /update/1', JSON_TYPE, USER],
  ['rest', 'DELETE /delete/1', '', ''],
  ['rest', 'GET /users', STREAM, ''],
  ['rest', 'POST /notes', JSON_TYPE, NOTE],
  ['rest', 'POST /notes', 'Content-Type: text/plain', NOTE],
  ['rest', 'POST /notes', 'Content-Type: application/x-ndjson', `${NOTE}\n`],
  ['rest', 'POST /_batch', JSON_TYPE, `{"writes":[{"method":"POST","path":"/notes","body":${NOTE}}]}`],
  ['rest', 'PATCH /notes/Ada', JSON_TYPE, '{"text":"Eve"}'],
  ['rest', 'PUT /notes/Eve', JSON_TYPE, '{"text":"Eve"}'],
  ['rest', 'DELETE /notes/Ada', '', ''],
  ['rest', 'DELETE /notes?text=a', 'Prefer: max-affected=9', ''],
  ['rest', 'GET /notes', STREAM, ''],
  ['rest', 'GET /_changes?relation=notes', '', ''],
  ['graphql', 'POST /graphql', JSON_TYPE, MUTATION],
  ['graphql', 'POST /graphql', `${JSON_TYPE}\r\n${STREAM}`, '{"query":"subscription{userCreated{id}}"}'],
  ['graphql', 'GET /graphql?query=subscription%7BuserCreated%7Bid%7D%7D', STREAM, ''],
  ['graphql', 'GET /graphql', UPGRADE, ''],
  ['management', 'POST /actuator/loggers/rest', JSON_TYPE, '{"configuredLevel":"debug"}'],
  ['management', 'GET /actuator/heapdump', '', ''],
  ['management', 'GET /actuator/cpuprofile?seconds=1', '', ''],
  ['management', 'GET /actuator/console/api/live?topics=log', STREAM, ''],
  ['webhook', 'POST /webhook', 'Content-Type: text/plain', '{"event":"forged"}'],
  ['webhook', 'POST /webhook', 'Content-Type: application/x-www-form-urlencoded', '{"event":"forged"}'],
  ['webhook', 'POST /webhook', '', '{"event":"forged"}'],
];

/** What passes, because it changes nothing and the page cannot read it, or because its browser would have asked first. */
const ANSWERED: readonly Asked[] = [
  ['rest', 'GET /users', '', ''],
  ['rest', 'GET /users/1', '', ''],
  ['rest', 'GET /notes', '', ''],
  ['rest', 'GET /notes/Ada', '', ''],
  ['graphql', 'GET /graphql?query=%7Bhello%7D', '', ''],
  ['management', 'GET /actuator/health', '', ''],
  ['webhook', 'POST /webhook', JSON_TYPE, '{"event":"known"}'],
];

async function start(more: Readonly<Record<string, string>> = {}): Promise<TransportTwins> {
  const twins = await startTransportTwins({
    module: `export default { relations: { notes: {
      key: ['name'],
      columns: { name: { type: 'text', max: 9 }, text: { type: 'text', max: 9 } },
    } } };`,
    env: {
      MANAGEMENT_INCLUDE: '*',
      MANAGEMENT_ENDPOINT_ACCESS: 'heapdump=unrestricted,cpuprofile=unrestricted',
      ...more,
    },
  });
  await ask(twins, ['rest', 'POST /users', JSON_TYPE, '{"name":"Ada","email":"a@x.y"}'], '', 'x');
  await ask(twins, ['rest', 'POST /notes', JSON_TYPE, '{"name":"Ada","text":"a"}'], '', 'x');
  return twins;
}

const ask = (twins: TransportTwins, [door, line, lines, body]: Asked, page: string, host: string) => {
  const length = body === '' ? '' : `Content-Length: ${body.length}`;
  const head = [`${line} HTTP/1.1`, `Host: ${host}`, page, lines, length].filter((each) => each !== '');
  // What is done to a connection that is a WebSocket ends it.
  return twins.ask(door, [`${head.join('\r\n')}\r\n\r\n${body}`, LAST_REQUEST], { silence: 150 });
};

/** Fails unless both transports refuse all that a page may not have sent, and answer the rest; `page` is what its browser says. */
async function refuses(twins: TransportTwins, page: string, host: string): Promise<void> {
  for (const asked of REFUSED) {
    const { fast, fastify } = await ask(twins, asked, page, host);
    assert.match(fast, /^HTTP\/1\.1 403 [\s\S]*?\r\nx-error-code: CROSS_SITE\r\n/, `${asked} ${page}`);
    assert.equal(fast, fastify);
  }
  for (const asked of ANSWERED) {
    const { fast, fastify } = await ask(twins, asked, page, host);
    assert.match(fast, /^HTTP\/1\.1 200 /, `${asked} ${page}`);
    if (asked[0] !== 'management') assert.equal(fast, fastify);
  }
}

/** Fails if anything was written but the one user. */
async function unchanged({ fast, fastify }: TransportTwins): Promise<void> {
  for (const { urls } of [fast, fastify]) {
    const { data } = JSON.parse(await (await fetch(`${urls.rest}/users`)).text());
    assert.deepEqual(
      data.map(({ name }: { name: string }) => name),
      ['Ada'],
    );
    assert.equal(await (await fetch(`${urls.rest}/notes`)).text(), '[{"name":"Ada","text":"a"}]');
    const users = await (await fetch(`${urls.graphql}/graphql?query=%7Busers%7Bname%7D%7D`)).text();
    assert.doesNotMatch(users, /Eve/);
    const { items } = JSON.parse(await (await fetch(`${urls.management}/actuator/deliveries`)).text());
    assert.ok(items.every(({ event }: { event: string }) => event === 'known'));
  }
}

test('what a browser sends from another site is refused at every door, by Sec-Fetch-Site or by Origin', async () => {
  await using twins = await start();
  await refuses(twins, 'Sec-Fetch-Site: cross-site\r\nOrigin: http://evil.example', 'x:8000');
  await refuses(twins, 'Origin: http://evil.example', 'x:8000');
  await refuses(twins, 'Origin: null', 'x:8000');
  await unchanged(twins);
});

test('behind a trusted proxy Origin is compared with the name that it forwards', async () => {
  await using twins = await start({ TRUST_PROXY: '127.0.0.1', HTTP_HOSTS: 'app.example,x' });
  const forwarded = 'X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: app.example';
  await refuses(twins, `Origin: http://x\r\n${forwarded}`, 'x');
  await unchanged(twins);
  const own = `Origin: https://app.example\r\n${forwarded}`;
  const { fast, fastify } = await ask(twins, ['rest', 'PUT /update/1', JSON_TYPE, USER], own, 'x');
  assert.match(fast, /^HTTP\/1\.1 200 /);
  assert.equal(fast, fastify);
});

test('a page of the door itself may do all of it, in whatever browser', async () => {
  await using twins = await start();
  for (const page of ['Origin: http://X:3000', 'Sec-Fetch-Site: same-origin\r\nOrigin: http://x:8000']) {
    for (const asked of REFUSED) {
      const [, line] = asked;
      if (line.includes('heapdump') || line.includes('cpuprofile')) continue;
      const { fast } = await ask(twins, asked, page, 'x:8000');
      assert.doesNotMatch(fast, /CROSS_SITE/, `${asked} ${page}`);
    }
  }
});

test('where the webhook needs a token, the token decides', async () => {
  await using twins = await start({ WEBHOOK_SECRET: 'sesame' });
  const page = 'Sec-Fetch-Site: cross-site\r\nOrigin: http://evil.example';
  const asked: Asked = ['webhook', 'POST /webhook', 'Content-Type: text/plain', '{"event":"known"}'];
  assert.match((await ask(twins, asked, page, 'x')).fast, /^HTTP\/1\.1 401 [\s\S]*Unauthorized/);
  const { fast, fastify } = await ask(twins, asked, `${page}\r\nX-Webhook-Token: sesame`, 'x');
  assert.match(fast, /^HTTP\/1\.1 200 [\s\S]*Webhook received/);
  assert.equal(fast, fastify);
});
