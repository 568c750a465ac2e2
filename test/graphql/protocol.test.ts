import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { rawHttp } from '../support/connections.ts';
import { ask, type GraphqlDoor, openDoor, type Received, type Sent, send } from './support/door.ts';

const json = { 'content-type': 'application/json' };
const MODERN = 'application/graphql-response+json; charset=utf-8';
const LEGACY = 'application/json; charset=utf-8';
const mutation = 'mutation { createUser(name: "Ada", email: "ada@example.org") { id } }';

const post = (query: string, headers: Sent['headers'] = {}): Sent => ({
  method: 'POST',
  headers: { ...json, ...headers },
  body: [JSON.stringify({ query })],
});

describe('GraphQL over HTTP, where the audits do not look', () => {
  let door: GraphqlDoor;
  const ourSend = (sent: Sent, query = ''): Promise<Received> => send(door.url + query, sent);

  before(async () => {
    door = await openDoor();
  });
  after(() => door[Symbol.asyncDispose]());

  describe('the type of the answer', () => {
    const accepted: readonly (readonly [accept: string | undefined, type: string])[] = [
      [undefined, LEGACY],
      ['*/*', LEGACY],
      ['application/*', LEGACY],
      ['application/json', LEGACY],
      ['application/graphql-response+json', MODERN],
      ['application/graphql-response+json;q=0.5, application/json;q=0.4', MODERN],
      ['application/graphql-response+json;q=0.4, application/json;q=0.5', LEGACY],
      ['application/json, application/graphql-response+json', MODERN],
      ['application/graphql-response+json;q=0, */*', LEGACY],
      ['text/html;q=0.9, application/json', LEGACY],
      ['APPLICATION/GRAPHQL-RESPONSE+JSON', MODERN],
    ];
    for (const [accept, type] of accepted) {
      test(`Accept: ${accept ?? '(absent)'}`, async () => {
        const sent = post('{ hello }', accept === undefined ? {} : { accept });
        const { status, headers } = await ourSend(sent);
        assert.deepEqual([status, headers['content-type']], [200, type]);
        // What is no request has another status for those who know the newer type.
        const wrong = await ourSend({ ...sent, body: [JSON.stringify({ query: '{ nothing }' })] });
        assert.deepEqual([wrong.status, wrong.headers['content-type']], [type === MODERN ? 400 : 200, type]);
      });
    }

    test('an Accept header that is really absent', async () => {
      const body = '{"query":"{ hello }"}';
      const head = `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
      const { status, text } = await rawHttp(door.url, [
        `${head}Content-Length: ${body.length}\r\n\r\n${body}`,
      ]);
      assert.equal(status, 200);
      assert.match(text, /^content-type: application\/json; charset=utf-8\r$/m);
      assert.match(text, /\{"data":\{"hello":"Hello from Portico!"\}\}$/);
    });

    for (const accept of ['text/plain', 'image/png', 'application/json;q=0', 'text/event-stream;q=0']) {
      test(`Accept: ${accept} is a 406 that says what there is`, async () => {
        const { status, text } = await ourSend(post('{ hello }', { accept }));
        assert.equal(status, 406);
        assert.match(text, /application\/json or application\/graphql-response\+json/);
      });
    }

    test('the answer to a GET varies with Accept, the page too', async () => {
      for (const accept of ['application/json', 'text/html', 'text/plain']) {
        const { headers } = await ourSend({ headers: { accept } }, '?query={hello}');
        assert.equal(headers.vary, 'accept', accept);
      }
      assert.equal((await ourSend({ headers: { accept: 'text/html' } })).headers.vary, 'accept');
    });
  });

  describe('methods', () => {
    for (const method of ['PUT', 'DELETE', 'PATCH']) {
      test(`${method} is a 405 that names the others`, async () => {
        const { status, headers } = await ourSend({ method, headers: json });
        assert.deepEqual([status, headers.allow], [405, 'GET, HEAD, POST, OPTIONS']);
      });
    }

    test('a mutation by GET is a 405 that names POST, and does nothing', async () => {
      const { status, headers } = await ourSend({}, `?query=${encodeURIComponent(mutation)}`);
      assert.deepEqual([status, headers.allow], [405, 'POST']);
      const named = 'query Q { hello } mutation M { createUser(name: "a", email: "b") { id } }';
      const url = `?query=${encodeURIComponent(named)}&operationName=`;
      assert.equal((await ourSend({}, `${url}M`)).status, 405);
      assert.equal((await ourSend({}, `${url}Q`)).status, 200);
      assert.match(
        (await ask(door.url, '{ users { id } }')).text,
        /^\{"data":\{"users":\[\{"id":"1"\},\{"id":"2"\}\]\}\}$/,
      );
    });

    test('HEAD is GET without its body', async () => {
      const get = await ourSend({}, '?query={hello}');
      const head = await ourSend({ method: 'HEAD' }, '?query={hello}');
      assert.deepEqual([head.status, head.text], [200, '']);
      for (const name of ['content-type', 'content-length', 'vary']) {
        assert.equal(head.headers[name], get.headers[name]);
      }
      assert.equal((await ourSend({ method: 'HEAD' }, `?query=${encodeURIComponent(mutation)}`)).status, 405);
    });

    test('HEAD of an event stream ends', async () => {
      const sent = { method: 'HEAD', headers: { accept: 'text/event-stream' } };
      const { status, headers } = await ourSend(sent, '?query=subscription{userCreated{id}}');
      assert.deepEqual([status, headers['content-type']], [200, 'text/event-stream; charset=utf-8']);
    });

    test('OPTIONS names the methods', async () => {
      const { status, headers, text } = await ourSend({ method: 'OPTIONS' });
      assert.deepEqual([status, headers.allow, text], [204, 'GET, HEAD, POST, OPTIONS', '']);
    });
  });

  describe('the body', () => {
    test('one of the largest size passes, one byte more is a 413', async () => {
      const of = (size: number) => {
        const [head = '', tail = ''] = ['{"query":"{ hello }","extensions":{"x":"', '"}}'];
        return [head + 'x'.repeat(size - head.length - tail.length) + tail];
      };
      assert.equal((await ourSend({ ...post(''), body: of(102_400) })).status, 200);
      assert.equal((await ourSend({ ...post(''), body: of(102_401) })).status, 413);
      // Said in the head, or found out on the way.
      const told = { ...json, 'content-length': 102_401 };
      assert.equal((await ourSend({ method: 'POST', headers: told, body: of(102_401) })).status, 413);
    });

    for (const charset of ['iso-8859-1', 'utf-16', '"latin1"', 'utf-7']) {
      test(`charset=${charset} is a 415`, async () => {
        const sent = post('{ hello }', { 'content-type': `application/json; charset=${charset}` });
        assert.equal((await ourSend(sent)).status, 415);
      });
    }

    for (const charset of ['utf-8', 'UTF-8', '"utf-8"']) {
      test(`charset=${charset} is read`, async () => {
        const sent = post('{ hello }', { 'content-type': `application/json; charset=${charset}` });
        assert.equal((await ourSend(sent)).status, 200);
      });
    }

    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
    ]) {
      test(`${type}, which any page can send, is a 415`, async () => {
        assert.equal((await ourSend(post('{ hello }', { 'content-type': type }))).status, 415);
      });
    }

    test('a list of requests is a 400 and runs none of them', async () => {
      const before = await ask(door.url, '{ users { id } }');
      const body = [JSON.stringify([{ query: mutation }, { query: mutation }])];
      assert.equal((await ourSend({ ...post(''), body })).status, 400);
      assert.equal((await ask(door.url, '{ users { id } }')).text, before.text);
    });

    test('characters that are split anywhere arrive whole', async () => {
      const name = 'é€𝒳';
      const query = `{ __type(name: "${name}") { name } hello ${'#é€𝒳'} }`;
      const body = Buffer.from(`${JSON.stringify({ query: `${query}\n}`, variables: { name } })}`);
      const whole = (await ourSend({ ...post(''), body: [body] })).text;
      assert.match(whole, /Hello from Portico!/);
      for (let at = 1; at < body.length; at++) {
        const pieces = [body.subarray(0, at), body.subarray(at)];
        assert.equal((await ourSend({ ...post(''), body: pieces })).text, whole, `split at ${at}`);
      }
      const bytes = Array.from(body, (byte) => Uint8Array.of(byte));
      assert.equal((await ourSend({ ...post(''), body: bytes })).text, whole);
      const measured = { ...json, 'content-length': body.length };
      assert.equal((await ourSend({ method: 'POST', headers: measured, body: bytes })).text, whole);
    });
  });

  describe('requests from other sites', () => {
    const from = (site: string | undefined): Record<string, string> =>
      site === undefined ? {} : { 'sec-fetch-site': site };

    test('a write from another site is a 403 and does nothing', async () => {
      const before = await ask(door.url, '{ users { id } }');
      assert.equal((await ourSend(post(mutation, from('cross-site')))).status, 403);
      assert.equal((await ask(door.url, '{ users { id } }')).text, before.text);
    });

    for (const site of ['same-origin', 'same-site', 'none', undefined]) {
      test(`a write with Sec-Fetch-Site: ${site ?? '(absent)'} is done`, async () => {
        const { status, text } = await ourSend(post(mutation, from(site)));
        assert.equal(status, 200);
        assert.match(text, /"createUser":\{"id":"\d+"\}/);
      });
    }

    test('a read from another site is answered', async () => {
      assert.equal((await ourSend({ headers: from('cross-site') }, '?query={hello}')).status, 200);
    });
  });

  test('of several operations the named one runs, each time', async () => {
    const query = `query A { a: hello } query B { b: users { id } }
      query C($id: ID!) { c: user(id: $id) { name } } mutation D { d: createUser(name: "D", email: "d@d") { name } }`;
    const expected: Readonly<Record<string, RegExp>> = {
      A: /^\{"data":\{"a":"Hello from Portico!"\}\}$/,
      B: /^\{"data":\{"b":\[\{"id":"1"\},\{"id":"2"\}/,
      C: /^\{"data":\{"c":\{"name":"[^"]+"\}\}\}$/,
      D: /^\{"data":\{"d":\{"name":"D"\}\}\}$/,
    };
    for (let time = 0; time < 12; time++) {
      for (const [operationName, result] of Object.entries(expected)) {
        const { text } = await ask(door.url, { query, operationName, variables: { id: '1' } });
        assert.match(text, result, `${operationName}, time ${time}`);
      }
      for (const operationName of ['E', '', null]) {
        const { text } = await ask(door.url, { query, operationName });
        assert.match(text, /^\{"errors":\[\{"message":"The operation to run cannot be determined"\}\]\}$/);
      }
    }
  });

  test('no answer tells of the inside of the program', async () => {
    const broken: readonly (readonly [sent: Sent, query?: string])[] = [
      [post('{')],
      [post('{ nothing }')],
      [post('{ user(id: {}) { id } }')],
      [{ ...post(''), body: ['{'] }],
      [{ ...post(''), body: ['{"query":1}'] }],
      [{ ...post(''), body: [Uint8Array.of(0xff, 0xfe)] }],
      [{ ...post(''), body: ['{"__proto__":{},"query":"{hello}"}'] }],
      [{ ...post(''), body: ['['.repeat(10_000)] }],
      [post('{ hello }', { 'content-type': 'nonsense' })],
      [{}, '?query={hello}&variables=nonsense'],
      [{}, '?query={hello}&query={hello}'],
      [{}, '/nowhere'],
      [{ method: 'DELETE' }],
    ];
    for (const [sent, query] of broken) {
      const { status, text } = await ourSend(sent, query);
      assert.ok(status === 200 || (status >= 400 && status < 500), `${status} ${text}`);
      assert.equal(typeof JSON.parse(text).errors[0].message, 'string');
      assert.doesNotMatch(text, /node_modules|\.[jt]s:\d|stack|\bat .+:\d+:\d+|[/\\]src[/\\]/);
    }
  });
});
