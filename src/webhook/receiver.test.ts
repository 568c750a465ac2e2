import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HttpProblem } from '@portico/transport';
import fc from 'fast-check';
import fastify, { type FastifyInstance } from 'fastify';
import { rawHttp } from '../../test/support/connections.ts';
import { EmptySecretError } from '../core/passwords.ts';
import type { ClaimedJob, NewDelivery } from '../inbox/delivery.ts';
import type { Work } from '../inbox/work.ts';
import type { Database } from '../sql/database.ts';
import { openDatabase } from '../sql/open.ts';
import { RECEIVER_PATH, receiver, tokenGuard } from './receiver.ts';

describe('receiver', () => {
  interface Receiver extends AsyncDisposable {
    readonly app: FastifyInstance;
    readonly database: Database;
    /** What the receiver reported as stored. */
    readonly stored: readonly NewDelivery[];
    post(
      payload: string | Uint8Array,
      headers?: Record<string, string>,
    ): Promise<{ status: number; text: string; type: unknown }>;
    closeStore(): Promise<void>;
    /** The jobs that wait for their handler. */
    jobs(): Promise<readonly ClaimedJob[]>;
    /** The bodies of the deliveries that wait. */
    bodies(): Promise<readonly string[]>;
  }

  interface Options {
    readonly secrets?: readonly string[];
    readonly headers?: readonly string[];
    readonly maxBodyBytes?: number;
    readonly work?: Pick<Work, 'store'>;
  }

  /** The receiver on a real inbox; every event but `other` has a handler. */
  async function receive({ secrets = [], ...options }: Options = {}): Promise<Receiver> {
    const database = openDatabase('sqlite::memory:');
    const closing = new AsyncDisposableStack();
    closing.use(database);
    const app = fastify();
    const stored: NewDelivery[] = [];
    await app.register(receiver, {
      prefix: RECEIVER_PATH,
      inbox: database.inbox,
      secrets: () => secrets,
      sources: [],
      maxBodyBytes: 1024 * 1024,
      maxBytesInFlight: 64 * 1024 * 1024,
      work: {
        async store(facts) {
          const jobs =
            facts.event === null || facts.event === 'other' ? [] : [{ target: 't', orderKey: null }];
          const delivery = { ...facts, jobs };
          const appended = await database.inbox.append(delivery);
          stored.push(delivery);
          return appended;
        },
      },
      refused: () => assert.fail('no source is signed'),
      ...options,
    });
    const jobs = () => {
      const now = Date.now();
      return database.inbox.claim('t', 1_000, 'test', 60_000, { now });
    };
    return {
      app,
      database,
      stored,
      async post(payload, headers = {}) {
        const reply = await app.inject({
          method: 'POST',
          url: '/webhook',
          headers,
          payload: Buffer.from(payload),
        });
        return { status: reply.statusCode, text: reply.body, type: reply.headers['content-type'] };
      },
      closeStore: () => closing.disposeAsync(),
      jobs,
      bodies: async () => (await jobs()).map(({ delivery }) => Buffer.from(delivery.body).toString()),
      async [Symbol.asyncDispose]() {
        await app.close();
        await closing.disposeAsync();
      },
    };
  }

  const RECEIVED = { status: 200, text: 'Webhook received', type: 'text/plain; charset=utf-8' };

  test('an event is stored, reported and acknowledged with the text of the contract', async () => {
    await using door = await receive();
    const before = Date.now();
    assert.deepEqual(await door.post('{"event":"paid","data":{"amount":1}}'), RECEIVED);
    const [job, ...more] = await door.jobs();
    assert.deepEqual(more, []);
    const { id, source, event, dataPointer, receivedAt } = job?.delivery ?? assert.fail('nothing waits');
    assert.deepEqual({ source, event, dataPointer }, { source: '', event: 'paid', dataPointer: '/data' });
    assert.ok(receivedAt >= before && receivedAt <= Date.now());
    assert.deepEqual(
      door.stored.map((delivery) => delivery.id),
      [id],
    );
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test('the body is kept byte for byte, where parsing and printing it would change it', async () => {
    const bodies = [
      '{"event":"e","data":1e400}',
      '{"event":"e","data":12345678901234567890}',
      '{"event":"e","data":[0.1e1,-0,1E+2,1.0,1.00000000000000000001]}',
      ' {\t"event" :\r\n"e", "data": {"b":1,"a":2,"b":3} }\n',
      '{"event":"\\u0065","data":"\\u00e9\\/\\ud800"}',
      '\ufeff{"event":"e","data":"é\u2028😀"}',
    ];
    await using door = await receive();
    for (const body of bodies) assert.deepEqual(await door.post(body), RECEIVED);
    assert.deepEqual(await door.bodies(), bodies);
  });

  test('any JSON object with an event comes out as it went in, whatever its content type says', async () => {
    await using door = await receive();
    const type = fc.constantFrom(
      'application/json',
      'text/plain',
      'application/json; charset=latin1',
      'no type at all',
      '',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.jsonValue(),
        fc.constantFrom(0, 1, '\t'),
        type,
        async (data, space, contentType) => {
          const body = Buffer.from(JSON.stringify({ event: 'e', data }, null, space));
          fc.pre(!body.includes('__proto__'));
          assert.deepEqual(await door.post(body, { 'content-type': contentType }), RECEIVED);
          assert.deepEqual(await door.bodies(), [body.toString()]);
        },
      ),
      { numRuns: 50 },
    );
  });

  test('an event without a handler is stored as unhandled and acknowledged all the same (CONTRACT.md#events)', async () => {
    await using door = await receive();
    assert.deepEqual(await door.post('{"event":"other","data":{}}'), RECEIVED);
    assert.deepEqual(
      door.stored.map(({ event, jobs }) => [event, jobs]),
      [['other', []]],
    );
    assert.deepEqual(await door.bodies(), [], 'it waits for no handler');
  });

  test('any JSON value is a delivery; without an event that is a text it has none', async () => {
    await using door = await receive();
    const values = [
      'null',
      '0',
      '"event"',
      '[]',
      '[{"event":"paid"}]',
      '{}',
      '{"event":null}',
      '{"event":7}',
      '{"Event":"paid"}',
    ];
    for (const value of values) assert.deepEqual(await door.post(value), RECEIVED, value);
    assert.deepEqual(
      door.stored.map(({ event, jobs }) => [event, jobs]),
      values.map(() => [null, []]),
    );
  });

  test('names that objects have by nature are events like others', async () => {
    await using door = await receive();
    const events = ['constructor', '__proto__', '', 'a\0b', '\u2028😀', 'x'.repeat(10_000)];
    for (const event of events) {
      assert.deepEqual(await door.post(JSON.stringify({ event })), RECEIVED);
    }
    assert.deepEqual(
      (await door.jobs()).map(({ delivery }) => delivery.event),
      events,
    );
  });

  test('a body that is no JSON is a 400 and leaves nothing behind', async () => {
    await using door = await receive();
    const wrong = [
      '',
      ' ',
      '{',
      '{"event":"paid"',
      "{'event':1}",
      '{"event":"paid"}x',
      '{"__proto__":1}',
      '['.repeat(65),
    ];
    for (const body of wrong) {
      const { status, type } = await door.post(body);
      assert.equal(status, 400, body);
      assert.equal(type, 'text/plain; charset=utf-8');
    }
    assert.equal((await door.post(Buffer.from([0x22, 0xff, 0x22]))).status, 400);
    assert.deepEqual(door.stored, []);
    assert.deepEqual(await door.bodies(), []);
  });

  test('a body above the limit is a 413 and leaves nothing behind', async () => {
    await using door = await receive({ maxBodyBytes: 100 });
    const sized = (size: number) => `"${'a'.repeat(size - 2)}"`;
    assert.equal((await door.post(sized(100))).status, 200);
    assert.equal((await door.post(sized(101))).status, 413);
    assert.equal(door.stored.length, 1);
  });

  test('a wrong token is the 401 of the contract, and the event is not processed (CONTRACT.md#webhook-receipt)', async () => {
    await using door = await receive({ secrets: ['s3cret'] });
    for (const token of [undefined, '', 'wrong']) {
      const headers: Record<string, string> = token === undefined ? {} : { 'x-webhook-token': token };
      const { status, text } = await door.post('{"event":"paid"}', headers);
      assert.deepEqual({ status, text }, { status: 401, text: 'Unauthorized' });
      assert.equal((await door.post('{"event":', headers)).status, 401, 'the body is not looked at');
    }
    assert.deepEqual(door.stored, []);
    assert.deepEqual(await door.bodies(), []);
    assert.deepEqual(await door.post('{"event":"paid"}', { 'x-webhook-token': 's3cret' }), RECEIVED);
  });

  test('a delivery that cannot be stored is a 503 that asks to come again, never a 200', async () => {
    await using door = await receive();
    await door.closeStore();
    for (const body of ['{"event":"paid"}', '{"event":"other"}', 'null']) {
      const reply = await door.app.inject({ method: 'POST', url: '/webhook', payload: body });
      assert.equal(reply.statusCode, 503);
      assert.equal(reply.headers['retry-after'], '1');
      assert.equal(reply.body, 'Service Unavailable');
    }
    assert.deepEqual(door.stored, []);
  });

  test('any other failure to store is no 200 either', async () => {
    const work = { store: () => Promise.reject(new Error('secret-55')) };
    await using door = await receive({ work });
    const { status, text } = await door.post('{"event":"paid"}');
    assert.deepEqual({ status, text }, { status: 500, text: 'Internal Server Error' });
    assert.deepEqual(door.stored, []);
  });

  test('the content type is kept as it was sent', async () => {
    await using door = await receive();
    await door.post('1', { 'content-type': 'Text/X; charset="latin1"' });
    assert.equal(door.stored[0]?.contentType, 'Text/X; charset="latin1"');
  });

  test('a delivery without a content type has none', async () => {
    await using door = await receive();
    await door.post('1');
    assert.equal(door.stored[0]?.contentType, null);
  });

  test('a delivery that its sender repeats under its own id is acknowledged again and stored once', async () => {
    await using door = await receive();
    for (const header of ['webhook-id', 'idempotency-key']) {
      const headers = { [header]: `${header}-1` };
      for (let i = 0; i < 3; i++) assert.deepEqual(await door.post('{"event":"paid"}', headers), RECEIVED);
      assert.equal((await door.bodies()).length, 1, header);
    }
    for (const [key, stored] of [
      ['x'.repeat(5_000), 1],
      ['', 2],
    ] as const) {
      for (let i = 0; i < 2; i++) await door.post('{"event":"paid"}', { 'webhook-id': key });
      assert.equal((await door.bodies()).length, stored, 'a key of any length, but the empty one is none');
    }
  });

  test('the reply says what the stored delivery is called; to a repeated one, what the first is', async () => {
    await using door = await receive();
    const idOf = async (headers: Record<string, string> = {}) => {
      const request = { method: 'POST', url: '/webhook', payload: '{"event":"paid"}', headers } as const;
      return (await door.app.inject(request)).headers['x-delivery-id'];
    };
    const plain = [await idOf(), await idOf()];
    assert.deepEqual(
      plain,
      door.stored.map(({ id }) => id),
    );
    const first = await idOf({ 'webhook-id': 'w1' });
    assert.equal(first, door.stored.at(-1)?.id);
    assert.equal(await idOf({ 'webhook-id': 'w1' }), first);
    assert.equal(await idOf({ 'idempotency-key': 'w1' }), first);
    assert.notEqual(await idOf({ 'webhook-id': 'w2' }), first);
  });

  test('other methods and other paths', async () => {
    await using door = await receive();
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE'] as const) {
      const reply = await door.app.inject({ method, url: '/webhook?x=1' });
      assert.equal(reply.statusCode, 405, method);
      assert.equal(reply.headers.allow, 'POST');
    }
    for (const url of ['/', '/webhook/1', '/Webhook', '/webhooks']) {
      assert.equal((await door.app.inject({ method: 'POST', url, payload: '{}' })).statusCode, 404, url);
    }
    assert.deepEqual(door.stored, []);
  });
});

describe('token guard', () => {
  interface Guarded extends AsyncDisposable {
    /** The status for header lines sent byte for byte. */
    status(...lines: readonly (string | Uint8Array)[]): Promise<number | undefined>;
    readonly url: string;
    readonly handled: number;
  }

  const guard = (...secrets: readonly string[]) => guardBy(() => secrets);

  async function guardBy(secrets: () => readonly string[]): Promise<Guarded> {
    let handled = 0;
    const app = fastify({ forceCloseConnections: true });
    app.setErrorHandler((error: HttpProblem, _request, reply) =>
      reply.code(error.status).headers(error.headers).send('refused'),
    );
    const check = tokenGuard(secrets);
    app.post('/', { onRequest: async ({ headers }) => check(headers) }, () => {
      handled++;
      return 'handled';
    });
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    return {
      url,
      get handled() {
        return handled;
      },
      async status(...lines) {
        const fields = lines.flatMap((line) => [line, '\r\n']);
        const parts = ['POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n', ...fields, '\r\n'];
        const bytes = parts.map((part) => Buffer.from(part));
        return (await rawHttp(url, [Buffer.concat(bytes)])).status;
      },
      [Symbol.asyncDispose]: () => app.close(),
    };
  }

  const TOKEN = 'x-webhook-token: ';

  test('without secrets every request passes (CONTRACT.md#authentication)', async () => {
    await using door = await guard();
    assert.equal(await door.status(), 200);
    assert.equal(await door.status(`${TOKEN}anything`), 200);
  });

  test('the right token passes, in a header of any case, with spaces around it', async () => {
    await using door = await guard('s3cret');
    assert.equal(await door.status(`${TOKEN}s3cret`), 200);
    assert.equal(await door.status('X-WEBHOOK-Token:   s3cret\t'), 200);
  });

  test('a missing, empty, wrong or doubled token is a 401 and the event is not processed', async () => {
    await using door = await guard('s3cret');
    const wrong = [
      '',
      's3cre',
      's3cret1',
      'S3CRET',
      's3cret, s3cret',
      's3 cret',
      '"s3cret"',
      'Bearer s3cret',
      '\u00ff',
    ];
    for (const token of wrong) assert.equal(await door.status(TOKEN + token), 401, token);
    assert.equal(await door.status(), 401);
    assert.equal(await door.status('authorization: s3cret'), 401);
    assert.equal(await door.status(`${TOKEN}s3cret`, `${TOKEN}s3cret`), 401, 'two are one wrong one');
    assert.equal(door.handled, 0);
  });

  test('while a secret is rotated each of several passes, and nothing made of them', async () => {
    await using door = await guard('old', 'new', 'next');
    for (const token of ['old', 'new', 'next']) assert.equal(await door.status(TOKEN + token), 200, token);
    for (const token of ['', 'oldnew', 'old,new', 'old,new,next', ',']) {
      assert.equal(await door.status(TOKEN + token), 401, token);
    }
  });

  test('secrets that change count from the next request on', async () => {
    let secrets: readonly string[] = ['old'];
    await using door = await guardBy(() => secrets);
    assert.equal(await door.status(`${TOKEN}old`), 200);
    secrets = ['new'];
    assert.equal(await door.status(`${TOKEN}old`), 401);
    assert.equal(await door.status(`${TOKEN}new`), 200);
    secrets = [];
    assert.equal(await door.status(), 200);
    secrets = ['new'];
    assert.equal(await door.status(), 401);
  });

  test('a secret beyond ASCII passes in UTF-8, and in Latin-1 where that can write it', async () => {
    await using door = await guard('gehäim-ß', 'клю́ч-😀');
    const bytes = (text: string, encoding: 'utf8' | 'latin1') =>
      Buffer.concat([Buffer.from(TOKEN), Buffer.from(text, encoding)]);
    assert.equal(await door.status(bytes('gehäim-ß', 'utf8')), 200);
    assert.equal(await door.status(bytes('gehäim-ß', 'latin1')), 200);
    assert.equal(await door.status(bytes('клю́ч-😀', 'utf8')), 200);
    assert.equal(await door.status(bytes('gehaim-ß', 'utf8')), 401);
    assert.equal(await door.status(bytes('gehäim-\u00c3\u009f', 'utf8')), 401, 'encoded twice');
  });

  test('what only decodes to a replacement character is not the secret that holds one', async () => {
    await using door = await guard('a\u00c3b');
    assert.equal(await door.status(Buffer.from([...Buffer.from(TOKEN), 0x61, 0xff, 0x62])), 401);
  });

  test('a refusal comes before the body does, and closes the connection so that the body is not read as a request', async () => {
    await using door = await guard('s3cret');
    const head = 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n';
    const { status, text } = await rawHttp(door.url, [head], { silence: 2_000 });
    assert.equal(status, 401);
    assert.match(text, /^connection: close\r$/im);
  });

  test('an empty secret would let everybody in, so it is refused at the start', () => {
    assert.throws(() => tokenGuard(() => ['s3cret', '']), EmptySecretError);
  });
});
