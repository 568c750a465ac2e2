import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { addEndpoint, createListener, type Endpoint, HttpProblem, readRawBodies } from '@portico/transport';
import { openLog } from '../../src/telemetry/log.ts';
import { keepConnection } from '../support/connections.ts';
import { captureLog } from '../support/log-capture.ts';

/** Counts the bytes of streamed bodies, and answers others with their length. */
const counting: Endpoint = {
  bodyLimit: 10,
  body: ({ contentType }) => (contentType === 'text/whole' ? 'buffer' : 'stream'),
  handle(ctx) {
    const { contentType } = ctx;
    if (contentType === 'text/refused') throw new HttpProblem(409, 'BAD_REQUEST', 'no');
    if (contentType === 'text/whole') {
      return { status: 200, type: 'text/plain', body: `whole ${ctx.body.length}` };
    }
    async function* count() {
      let bytes = 0;
      for await (const chunk of ctx.stream) {
        bytes += chunk.length;
        yield '.';
      }
      yield ` ${bytes}`;
    }
    return { status: 200, type: 'text/plain', body: count() };
  },
};

async function open() {
  const errors = { contentType: 'text/plain', body: ({ code }: HttpProblem) => code };
  const log = await openLog({ level: 'info', stream: captureLog().stream });
  const listener = createListener({ door: 'test', host: '127.0.0.1', port: 0, portHint: '', errors, log });
  listener.app.register(async (app) => {
    readRawBodies(app);
    addEndpoint(app, 'POST', '/count', counting);
  });
  const url = await listener.listen();
  return { listener, url, [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose]() };
}

test('the head of a request decides whether its body is a stream, on both transports', async () => {
  await using door = await open();
  // The first request of a connection goes to Node's parser, the others to the fast path.
  using connection = await keepConnection(door.url);
  const post = async (type: string, body: string) => {
    const reply = await connection.ask('/count', { method: 'POST', headers: { 'content-type': type }, body });
    return `${reply.status} ${reply.body}`;
  };
  assert.equal(await post('text/whole', 'abc'), '200 whole 3');
  assert.match(await post('text/stream', 'x'.repeat(100)), /^200 \.+ 100$/);
  assert.equal(await post('text/whole', 'abcde'), '200 whole 5');
  assert.equal(await post('text/refused', 'x'.repeat(100)), '409 BAD_REQUEST');
  assert.equal(await post('text/whole', 'x'.repeat(11)), '413 BODY_TOO_LARGE');
});

test('a streamed body may take longer than other requests may', async () => {
  await using door = await open();
  Object.assign(door.listener.app.server, { headersTimeout: 400, requestTimeout: 500 });
  const send = (type: string) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const sent = request(`${door.url}/count`, { method: 'POST', headers: { 'content-type': type } });
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)));
    sent.on('response', (reply) => {
      let text = '';
      reply.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      reply.on('end', () => resolve(`${reply.statusCode} ${text}`)).on('error', () => resolve('cut'));
    });
    return { sent, promise };
  };
  const slow = send('text/stream');
  slow.sent.write('a');
  const whole = send('text/whole');
  whole.sent.write('a');
  // Node looks every two seconds: once it has refused the other one, it has looked at this one too.
  assert.match(await whole.promise, /^408 /);
  slow.sent.end('b');
  assert.match(await slow.promise, /^200 \.+ 2$/);
});
