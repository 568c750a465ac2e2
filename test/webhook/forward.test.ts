import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { startReceiver } from '../support/receiver.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const SECRET = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;

async function startForwarding(forward: object, env: Readonly<Record<string, string>> = {}) {
  const service = await startTestService({
    module: `export default { webhook: { forward: ${JSON.stringify(forward)} } };`,
    env: { WEBHOOK_BACKOFF: '1', MANAGEMENT_INCLUDE: 'deliveries', ...env },
  });
  await service.listen();
  const get = async (path: string) =>
    (await fetch(`${service.urls.management}/actuator/deliveries${path}`)).json() as Promise<{
      items: readonly { id: string }[];
      jobs: readonly { target: string; status: string; attempts: number; error: string | null }[];
    }>;
  return {
    service,
    async post(body: string | Uint8Array<ArrayBuffer>) {
      const reply = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body });
      assert.equal(reply.status, 200);
    },
    /** The jobs of the newest delivery, once it has that status. */
    async jobs(status: string) {
      const found = await waitFor(
        `it to be ${status}`,
        async () => (await get(`?status=${status}`)).items[0],
      );
      return (await get(`/${found.id}`)).jobs;
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

test('every delivery goes on byte for byte, signed anew, and only where its event is wanted', async () => {
  await using receiver = await startReceiver();
  const at = { allowPrivate: true, secrets: SECRET };
  await using door = await startForwarding({
    all: { url: `${receiver.url}/all`, ...at },
    paid: { url: `${receiver.url}/paid`, ...at, events: ['paid'] },
  });
  const bodies = ['{"event":"paid","data":1e400}', ' {"event":"other"}\n', '[1]'];
  for (const body of bodies) await door.post(body);
  await waitFor('all of them', () => receiver.at('/all').length === 3);
  await waitFor('the paid one', () => receiver.at('/paid').length === 1);
  assert.deepEqual(
    receiver
      .at('/all')
      .map(({ body }) => body.toString())
      .toSorted(),
    bodies.toSorted(),
  );
  const ids = new Set<unknown>();
  for (const { headers, body } of receiver.at('/all')) {
    new Webhook(SECRET).verify(body.toString(), headers as Record<string, string>, { jsonParse: false });
    ids.add(headers['webhook-id']);
  }
  assert.equal(ids.size, 3);
  assert.equal(receiver.at('/paid')[0]?.body.toString(), bodies[0]);
});

test('a failed attempt comes again under the same id; what is dead for one address is done for the other', async () => {
  await using receiver = await startReceiver({
    '/shaky': (response, attempt) => response.writeHead(attempt < 3 ? 500 : 200).end(),
    '/gone': (response) => response.writeHead(410).end(),
    '/away': (response) => response.writeHead(307, { location: '/elsewhere' }).end(),
  });
  const to = (path: string, more = {}) => ({ url: receiver.url + path, allowPrivate: true, ...more });
  await using door = await startForwarding({
    shaky: to('/shaky'),
    gone: to('/gone'),
    away: to('/away', { attempts: 2 }),
    fine: to('/fine'),
  });
  await door.post('{"event":"e"}');
  const jobs = await door.jobs('dead');
  assert.deepEqual(
    jobs.map(({ target, status, attempts, error }) => [target, status, attempts, error]),
    [
      ['forward:shaky', 'done', 3, null],
      ['forward:gone', 'dead', 1, 'AttemptError: the receiver answered 410'],
      ['forward:away', 'dead', 2, 'AttemptError: the receiver answered 307'],
      ['forward:fine', 'done', 1, null],
    ],
  );
  const shaky = receiver.at('/shaky').map(({ headers }) => headers);
  assert.equal(new Set(shaky.map((headers) => headers['webhook-id'])).size, 1);
  assert.deepEqual(
    shaky.map((headers) => headers['webhook-attempt']),
    ['1', '2', '3'],
  );
  assert.equal(receiver.at('/elsewhere').length, 0, 'a redirect is not followed');
  assert.equal(receiver.at('/fine').length, 1);
});

test('Retry-After holds the next attempt back, in seconds and as a date', async () => {
  const began: Record<string, number[]> = { '/seconds': [], '/date': [] };
  const later = (path: string, header: () => string) => (response: ServerResponse, attempt: number) => {
    began[path]?.push(Date.now());
    response.writeHead(attempt === 1 ? 429 : 204, attempt === 1 ? { 'retry-after': header() } : {}).end();
  };
  await using receiver = await startReceiver({
    '/seconds': later('/seconds', () => '1'),
    // Dates have whole seconds, so this is one to two seconds away.
    '/date': later('/date', () => new Date(Date.now() + 2_000).toUTCString()),
  });
  await using door = await startForwarding({
    seconds: { url: `${receiver.url}/seconds`, allowPrivate: true },
    date: { url: `${receiver.url}/date`, allowPrivate: true },
  });
  await door.post('{"event":"e"}');
  await door.jobs('done');
  for (const [path, [first = 0, second = 0]] of Object.entries(began)) {
    assert.ok(second - first >= 990, `${path}: ${second - first} ms`);
  }
});

test('a receiver that does not answer in time has failed, and its connection is closed', async () => {
  let closed = 0;
  await using receiver = await startReceiver({
    '/slow': (response) => {
      response.on('close', () => closed++);
    },
  });
  const slow = { url: `${receiver.url}/slow`, allowPrivate: true, timeout: 500, attempts: 2 };
  await using door = await startForwarding({ slow });
  await door.post('{"event":"e"}');
  const [job] = await door.jobs('dead');
  assert.match(job?.error ?? '', /took longer than 500 ms/);
  assert.equal(job?.attempts, 2);
  await waitFor('the connections to be closed', () => closed > 0 && closed === receiver.at('/slow').length);
});

test('a private address gets nothing unless that is meant: the start is refused, or for a name the delivery dead', async () => {
  await using receiver = await startReceiver();
  const port = new URL(receiver.url).port;
  await using door = await startForwarding({ here: `http://localhost:${port}/in` });
  await door.post('{"event":"e"}');
  const [job] = await door.jobs('dead');
  assert.match(job?.error ?? '', /localhost is a private address; set allowPrivate/);
  assert.equal(job?.attempts, 1);
  for (const host of ['127.0.0.1', '[::ffff:127.0.0.1]']) {
    await assert.rejects(
      startForwarding({ here: `http://${host}:${port}/in` }),
      /webhook\.forward\.here\.url is the private address .*; set allowPrivate/,
    );
  }
  assert.equal(receiver.at('/in').length, 0);
});
