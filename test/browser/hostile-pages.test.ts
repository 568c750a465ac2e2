import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { test } from 'node:test';
import { startTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';
import { launchBrowser, skip } from './support.ts';

/** A name of somebody else, which their name server has resolve to this machine. */
const NAME = 'rebind.example';

/** What the page of that name tries, each outcome as text: fetch, an event stream and a WebSocket of its own origin. */
const SCRIPT = `
const outcome = (work) => work().then(String, (error) => 'failed: ' + error.name);
const json = { 'content-type': 'application/json' };
const statusOf = async (reply) => [reply.status, (await reply.text()).includes('Ada')];
window.attempts = {
  rest: [
    (async () => statusOf(await fetch('/users'))),
    (async () => statusOf(await fetch('/users/1'))),
    (async () => statusOf(await fetch('/users', { method: 'POST', headers: json, body: '{"name":"Eve","email":"e@b"}' }))),
    (async () => statusOf(await fetch('/delete/1', { method: 'DELETE', headers: { 'x-forwarded-host': 'localhost' } }))),
    (() => new Promise((done) => {
      const source = new EventSource('/users');
      source.onopen = () => { source.close(); done('open'); };
      source.onerror = () => { source.close(); done('refused'); };
    })),
  ],
  graphql: [
    (async () => statusOf(await fetch('/graphql?query=%7Busers%7Bname%7D%7D'))),
    (async () => statusOf(await fetch('/graphql', { method: 'POST', headers: json, body: '{"query":"mutation { createUser(name: \\\\"Eve\\\\", email: \\\\"e@b\\\\") { name } }"}' }))),
    (() => new Promise((done) => {
      const socket = new WebSocket('ws://' + location.host + '/graphql', 'graphql-transport-ws');
      socket.onopen = () => { socket.close(); done('open'); };
      socket.onerror = () => done('refused');
    })),
  ],
  management: [
    (async () => statusOf(await fetch('/actuator/env'))),
    (async () => statusOf(await fetch('/readyz'))),
    (async () => statusOf(await fetch('/actuator/console/api/users'))),
    (async () => statusOf(await fetch('/actuator/console/api/users/1', { method: 'DELETE', headers: { 'x-portico-console': '1' } }))),
  ],
};
// One after the other: what one removes another reads.
window.attack = async (door) => {
  const outcomes = [];
  for (const attempt of attempts[door]) outcomes.push(await outcome(attempt));
  return outcomes;
};`;

const ATTACKER = `<!doctype html><title>page</title><script>${SCRIPT}</script>`;

/** Where a name leads: to the attacker's page at first, then to a door. To a browser it is one origin all the time. */
async function openName(stack: AsyncDisposableStack) {
  const page = createHttpServer((_request, reply) => {
    reply.writeHead(200, { 'content-type': 'text/html', connection: 'close' }).end(ATTACKER);
  });
  let target = await portOf(page, stack);
  const name = createServer((socket) => {
    const through = connect(target, '127.0.0.1');
    for (const each of [socket, through]) each.on('error', () => each.destroy());
    socket.pipe(through).pipe(socket);
  });
  const port = await portOf(name, stack);
  return {
    origin: `http://${NAME}:${port}`,
    leadTo(url: string) {
      target = Number(new URL(url).port);
    },
  };
}

async function portOf(server: Server, stack: AsyncDisposableStack, host = '127.0.0.1'): Promise<number> {
  server.listen(0, host);
  await once(server, 'listening');
  stack.defer(() => {
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** What the page achieves at each door once its name leads there. */
async function attack(service: TestService): Promise<Readonly<Record<string, readonly string[]>>> {
  await using stack = new AsyncDisposableStack();
  const browser = stack.use(await launchBrowser([], [`MAP ${NAME} 127.0.0.1`]));
  const context = stack.use(await browser.newContext());
  const achieved: Record<string, readonly string[]> = {};
  for (const door of ['rest', 'graphql', 'management']) {
    const name = await openName(stack);
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(`${name.origin}/`);
    name.leadTo(service.urls[door] ?? '');
    achieved[door] = await page.evaluate<string[]>(`attack('${door}')`);
  }
  return achieved;
}

async function start(env: Readonly<Record<string, string>>): Promise<TestService> {
  const service = await startTestService({ env });
  await service.listen();
  const body = '{"name":"Ada","email":"ada@example.org"}';
  await fetch(`${service.urls.rest}/users`, { method: 'POST', body });
  return service;
}

const usersOf = async ({ urls }: TestService) => (await fetch(`${urls.rest}/users`)).text();

test('a page whose name is made to lead to this machine reads and writes nothing', { skip }, async () => {
  // A proxy on the machine changes nothing: the page sends its headers past it.
  await using service = await start({ HTTP_HOSTS: 'app.example', TRUST_PROXY: 'loopback' });
  const before = await usersOf(service);
  assert.deepEqual(await attack(service), {
    rest: ['403,false', '403,false', '403,false', '403,false', 'refused'],
    graphql: ['403,false', '403,false', 'refused'],
    management: ['403,false', '403,false', '403,false', '403,false'],
  });
  assert.equal(await usersOf(service), before);
  assert.doesNotMatch(
    await (await fetch(`${service.urls.graphql}/graphql?query=%7Busers%7Bname%7D%7D`)).text(),
    /Eve/,
  );
});

test('with that name among its own the doors answer the same page', { skip }, async () => {
  await using service = await start({ HTTP_HOSTS: NAME });
  const { rest = [], graphql, management = [] } = await attack(service);
  assert.deepEqual([rest[0], rest[2], rest[4]], ['200,true', '200,false', 'open']);
  assert.deepEqual(graphql, ['200,true', '200,false', 'open']);
  assert.deepEqual([management[0], management[1]], ['200,false', '200,false']);
});

/** What a page of another site sends without asking first; it reads none of the replies. */
const FORMS = `
const sent = { mode: 'no-cors', method: 'POST', body: '{"event":"forged"}' };
window.send = async (webhook, rest, management) => {
  for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
    await new Promise((done) => {
      const frame = document.createElement('iframe');
      frame.name = 'frame-' + Math.random();
      document.body.append(frame);
      const form = document.createElement('form');
      Object.assign(form, { action: webhook, method: 'POST', enctype, target: frame.name });
      const field = document.createElement('input');
      Object.assign(field, { name: '{"event":"forged","data":"', value: '"}' });
      form.append(field);
      document.body.append(form);
      frame.onload = () => done();
      form.submit();
    });
  }
  await fetch(webhook, sent);
  await fetch(webhook, { ...sent, body: new Blob([sent.body]) });
  navigator.sendBeacon(webhook, sent.body);
  await fetch(rest + '/users', { ...sent, body: '{"name":"Eve","email":"e@b"}' });
  await fetch(management + '/actuator/loggers/rest', { ...sent, body: '{"configuredLevel":"debug"}' });
  // It asks first whether it may.
  await fetch(webhook, { ...sent, mode: 'cors', headers: { 'content-type': 'application/json' } }).catch(() => {});
};`;

test('a page of another site sends no form to a webhook without a secret', { skip }, async () => {
  await using stack = new AsyncDisposableStack();
  const service = stack.use(
    await startTestService({ env: { LOG_REQUESTS: 'true', MANAGEMENT_INCLUDE: 'deliveries,loggers' } }),
  );
  await service.listen();
  const { webhook, rest, management } = service.urls;
  const pages = createHttpServer((_request, reply) => {
    reply
      .setHeader('content-type', 'text/html')
      .end(`<!doctype html><title>page</title><body><script>${FORMS}</script>`);
  });
  const port = await portOf(pages, stack, '127.0.0.2');
  const browser = stack.use(await launchBrowser(['127.0.0.1', '127.0.0.2']));
  const context = stack.use(await browser.newContext());
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(`http://127.0.0.2:${port}/`);
  await page.evaluate(
    `send(${JSON.stringify(`${webhook}/webhook`)}, ${JSON.stringify(rest)}, ${JSON.stringify(management)})`,
  );
  const posts = () =>
    service.log.entries.flatMap(({ msg, method, path, status }) =>
      msg === 'request' && method === 'POST' ? [`${path} ${status}`] : [],
    );
  await waitFor('the beacon', () => posts().length >= 8);
  const forms = Array<string>(6).fill('/webhook 403');
  assert.deepEqual(posts().sort(), ['/actuator/loggers/rest 403', '/users 403', ...forms].sort());
  const { items } = JSON.parse(await (await fetch(`${management}/actuator/deliveries`)).text());
  assert.deepEqual(items, []);
});
