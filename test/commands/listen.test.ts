import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { freePort } from '../support/free-port.ts';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { storeDeliveries } from '../support/stored-deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const ENV = { MANAGEMENT_INCLUDE: '*' };

const waiting = (listener: PorticoProcess) =>
  waitFor('listen to begin', () => listener.stderr.includes('Waiting for deliveries'));

async function post(service: PorticoProcess, body: string): Promise<string> {
  const reply = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body });
  assert.equal(reply.status, 200);
  await reply.text();
  return reply.headers.get('x-delivery-id') ?? assert.fail('no id');
}

interface Taken {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A local program that takes deliveries, and answers those that contain `bad` with a 500. */
async function localProgram() {
  const taken: Taken[] = [];
  const server = createServer(async (request, response) => {
    const body = (await buffer(request)).toString();
    taken.push({ headers: request.headers, body });
    response.writeHead(body.includes('bad') ? 500 : 200).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    taken,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

for (const [engine, skip] of [
  ['sqlite', false],
  ['postgresql', withoutPostgres ?? false],
] as const) {
  test(`each new delivery is posted once, in order, byte for byte (${engine})`, { skip }, async () => {
    await using folder = await temporaryFolder();
    const database = engine === 'sqlite' ? {} : { DATABASE_URL: await postgresUrl() };
    const options = { cwd: folder.path, env: { ...ENV, ...database, WEBHOOK_HEADERS: 'x-request-id' } };
    await using service = startPortico(options);
    await service.ready();
    await post(service, '{"event":"old"}');
    await using program = await localProgram();
    const url = service.urls.management ?? '';
    const args = ['listen', '--url', url, '--to', program.url, '--json'];
    await using listener = startPortico({ cwd: folder.path, args });
    await waiting(listener);
    const bodies = ['{"event": "a",  "n":1.50}', '{"event":"bad"}', ...new Array(250).fill('{"event":"c"}')];
    const ids: string[] = [];
    for (const body of bodies) ids.push(await post(service, body));
    await waitFor('all of them', () => listener.logs().length === bodies.length);
    assert.deepEqual(
      program.taken.map(({ body }) => body),
      bodies,
    );
    assert.deepEqual(
      program.taken.map(({ headers }) => headers['x-delivery-id']),
      ids,
    );
    assert.equal(program.taken[0]?.headers['x-portico-event'], 'a');
    assert.deepEqual(
      listener.logs().map(({ id, result }) => [id, result]),
      ids.map((id, i) => [id, i === 1 ? '500' : '200']),
    );
    // It has changed nothing.
    const reply = await fetch(`${url}/actuator/deliveries/${ids[1]}`);
    assert.equal(((await reply.json()) as { status: string }).status, 'unhandled');
    listener.child.kill('SIGINT');
    assert.equal(await listener.exited(), 0);
  });
}

test('what came while the service was away comes when it is back, and nothing twice', async () => {
  await using folder = await temporaryFolder();
  const MANAGEMENT_PORT = String(await freePort());
  const options = { cwd: folder.path, env: { ...ENV, MANAGEMENT_PORT } };
  await using program = await localProgram();
  const start = async () => {
    const service = startPortico(options);
    await service.ready();
    return service;
  };
  let service = await start();
  const args = ['listen', '--url', `http://127.0.0.1:${MANAGEMENT_PORT}`, '--to', program.url, '--json'];
  await using listener = startPortico({ cwd: folder.path, args });
  await waiting(listener);
  await post(service, '{"event":"before"}');
  await waitFor('the first', () => listener.logs().length === 1);
  service.child.kill('SIGKILL');
  await service[Symbol.asyncDispose]();
  await waitFor('the outage', () => listener.stderr.includes('trying again'));
  await using database = await openDatabase(`sqlite:${join(folder.path, 'portico.db')}`);
  await storeDeliveries(database, 'meanwhile', 120);
  service = await start();
  await using _ = service;
  await waitFor('the rest', () => listener.logs().length === 121);
  await post(service, '{"event":"after"}');
  await waitFor('the last', () => listener.logs().length === 122);
  assert.match(listener.stderr, /Connected again\./);
  assert.deepEqual(
    [...Map.groupBy(program.taken, ({ headers }) => headers['x-portico-event'])].map(([event, all]) => [
      event,
      all.length,
    ]),
    [
      ['before', 1],
      ['meanwhile', 120],
      ['after', 1],
    ],
  );
});

test('a command gets the body and the variables; its code is the result', async () => {
  await using folder = await temporaryFolder();
  await using service = startPortico({
    cwd: folder.path,
    env: { ...ENV, WEBHOOK_HEADERS: 'x-request-id' },
  });
  await service.ready();
  const body = `{"event":"a","data":"${'x'.repeat(100_000)}"}`;
  for (const text of [body, '{"event":"b\\u0000\\u001b"}']) await post(service, text);
  const script =
    'cat >> bodies; echo "$PORTICO_ID $PORTICO_EVENT" >> names; echo shown; test "$PORTICO_EVENT" = a';
  const args = ['listen', '--url', service.urls.management ?? '', '--after', '0', '--exec', script];
  await using listener = startPortico({ cwd: folder.path, args });
  await waitFor('both', () => listener.stdout.trim().split('\n').length === 2);
  const [first = '', second = ''] = listener.stdout.trim().split('\n');
  assert.match(first, /^2\S+Z {2}\/webhook {2}a {2}[\w-]{36} {2}exit 0 {2}\d+ ms$/);
  assert.match(second, /^2\S+Z {2}\/webhook {2}b\\u0000\\u001b {2}[\w-]{36} {2}exit 1 {2}\d+ ms$/);
  assert.match(listener.stderr, /shown\nshown\n/);
  assert.equal(await readFile(join(folder.path, 'bodies'), 'utf8'), `${body}{"event":"b\\u0000\\u001b"}`);
  listener.child.kill('SIGINT');
  assert.equal(await listener.exited(), 0);
});

test('only one source or event, and what it cannot follow', async () => {
  await using folder = await temporaryFolder();
  await using service = startPortico({ cwd: folder.path, env: ENV });
  await service.ready();
  const url = service.urls.management ?? '';
  for (const event of ['a', 'b', 'a', 'end']) await post(service, `{"event":"${event}"}`);
  const args = ['listen', '--url', url, '--after', '0', '--event', 'a', '--source', ''];
  await using listener = startPortico({ cwd: folder.path, args });
  await waitFor('both', () => listener.stdout.split('\n').length === 3);
  assert.match(listener.stdout, /^(?:2\S+Z {2}\/webhook {2}a {2}[\w-]{36} {2}unhandled\n){2}$/);

  const listen = (...words: string[]) => runCommand(['listen', ...words], { cwd: folder.path });
  const other = await listen('--url', `${service.urls.webhook}`);
  assert.equal(other.code, 1);
  assert.match(other.stderr, /has no deliveries; it must be a management door/);
  const nothing = await listen('--url', `http://127.0.0.1:${await freePort()}`);
  assert.equal(nothing.code, 1);
  assert.match(nothing.stderr, /gave no answer: .*ECONNREFUSED/);
  for (const [words, problem] of [
    [['--to', 'x'], /--to must be an http or https URL/],
    [['--to', 'http://x', '--exec', 'y'], /--to and --exec exclude each other/],
    [['--url', 'http://a:b@x'], /give --user and --password-file/],
    [['--url', 'http://x', '--user', 'x'], /need each other/],
    [['--after', 'x'], /--after must be a whole number/],
  ] as const) {
    const { code, stderr } = await listen(...words);
    assert.equal(code, 2, stderr);
    assert.match(stderr, problem);
  }
});

test('a service without settings of its own is followed by the endpoints of its console', async () => {
  await using folder = await temporaryFolder();
  await using service = startPortico({ cwd: folder.path });
  await service.ready();
  const id = await post(service, '{"event":"a"}');
  const url = service.urls.management ?? '';
  const args = ['listen', '--url', url, '--after', '0', '--exec', 'cat', '--json'];
  await using listener = startPortico({ cwd: folder.path, args });
  await waitFor('the line', () => listener.logs().length === 1);
  assert.equal(listener.logs()[0]?.id, id);
});

test('a door with a login, and one that hides bodies', async () => {
  await using folder = await temporaryFolder();
  const secured = { ...ENV, MANAGEMENT_USER: 'ops', MANAGEMENT_PASSWORD: 'right' };
  await using service = startPortico({ cwd: folder.path, env: secured });
  await service.ready();
  await post(service, '{"event":"a"}');
  await writeFile(join(folder.path, 'password'), 'right\n');
  const url = service.urls.management ?? '';
  const refused = await runCommand(['listen', '--url', url], { cwd: folder.path });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /answered 401; give --user and --password-file/);
  const login = ['--user', 'ops', '--password-file', 'password'];
  const args = ['listen', '--url', url, '--after', '0', ...login];
  await using listener = startPortico({ cwd: folder.path, args });
  await waitFor('the line', () => listener.stdout.endsWith('unhandled\n'));

  await using closed = await temporaryFolder();
  const sources = { a: { scheme: 'shopify', secrets: 'x' } };
  await writeFile(join(closed.path, 'portico.config.json'), JSON.stringify({ webhook: { sources } }));
  await using signed = startPortico({ cwd: closed.path });
  await signed.ready();
  const told = await runCommand(['listen', '--url', signed.urls.management ?? ''], { cwd: folder.path });
  assert.equal(told.code, 1);
  assert.match(told.stderr, /answered 403: .*Set MANAGEMENT_USER and MANAGEMENT_PASSWORD/);

  await using other = startPortico({
    cwd: folder.path,
    env: { ...ENV, MANAGEMENT_SHOW_DETAILS: 'never', DATABASE_URL: 'sqlite:other.db' },
  });
  await other.ready();
  await post(other, '{"event":"a"}');
  const hidden = ['listen', '--url', other.urls.management ?? '', '--after', '0', '--exec', 'cat'];
  const { code, stderr } = await runCommand(hidden, { cwd: folder.path });
  assert.equal(code, 1);
  assert.match(stderr, /does not show bodies; see management\.showDetails/);
});
