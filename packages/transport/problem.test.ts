import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { test } from 'node:test';
import fc from 'fast-check';
import fastify from 'fastify';
import { StoreUnavailableError } from '../../src/core/errors.ts';
import type { ErrorFormat } from './error-format.ts';
import { sendProblem } from './fastify.ts';
import { bodyTooLarge, HttpProblem, reasonPhrase, toProblem } from './problem.ts';

const SECRET = 'secret-7f3a';

test('our own refusal stays as it is', () => {
  const problem = new HttpProblem(405, 'MUTATION_BY_GET', 'A mutation needs POST', {
    headers: { allow: 'POST' },
  });
  assert.equal(toProblem(problem), problem);
  assert.deepEqual(problem.headers, { allow: 'POST' });
  assert.deepEqual(new HttpProblem(400, 'BAD_REQUEST', 'x').headers, {});
});

test('a store that cannot answer is a 503 that asks to come back, without its message', () => {
  const cause = new StoreUnavailableError(SECRET);
  const { status, code, message, headers, cause: kept } = toProblem(cause);
  assert.deepEqual(
    { status, code, message, headers },
    {
      status: 503,
      code: 'STORE_UNAVAILABLE',
      message: 'Service Unavailable',
      headers: { 'retry-after': '1' },
    },
  );
  assert.equal(kept, cause, 'the log needs it');
});

test('a refusal of the framework keeps its status and code, and shows the reason phrase only', () => {
  const error = Object.assign(new Error(SECRET), { statusCode: 415, code: 'FST_ERR_CTP_INVALID_MEDIA_TYPE' });
  const problem = toProblem(error);
  assert.equal(problem.status, 415);
  assert.equal(problem.code, 'FST_ERR_CTP_INVALID_MEDIA_TYPE');
  assert.equal(problem.message, 'Unsupported Media Type');
});

test('a body that Fastify finds too large is the refusal that an endpoint gives', () => {
  const error = Object.assign(new Error(SECRET), { statusCode: 413, code: 'FST_ERR_CTP_BODY_TOO_LARGE' });
  assert.deepEqual(toProblem(error), bodyTooLarge());
});

test('a code of neither Portico nor its framework is not passed on', () => {
  assert.equal(toProblem({ statusCode: 404, code: 'ENOENT' }).code, 'BAD_REQUEST');
  assert.equal(toProblem({ statusCode: 431, code: 'HPE_HEADER_OVERFLOW' }).code, 'HPE_HEADER_OVERFLOW');
  assert.equal(toProblem({ statusCode: 500, code: 'FST_ERR_REP_INVALID_PAYLOAD_TYPE' }).code, 'INTERNAL');
});

test('whatever is thrown becomes a problem that shows nothing of the inside', () => {
  const status = fc.oneof(
    fc.integer({ min: -1, max: 700 }),
    fc.constantFrom('404', undefined, null, Number.NaN),
  );
  const shaped = fc.record(
    {
      statusCode: status,
      status,
      code: fc.oneof(fc.constant(SECRET), fc.integer()),
      message: fc.constant(SECRET),
      headers: fc.constant({ 'x-secret': SECRET }),
    },
    { requiredKeys: [] },
  );
  const error = shaped.map((members) => Object.assign(new Error(SECRET), members));
  fc.assert(
    fc.property(fc.oneof(shaped, error, fc.anything(), fc.constant(SECRET)), (thrown) => {
      const problem = toProblem(thrown);
      assert.ok(problem.status >= 400 && problem.status <= 599);
      assert.equal(problem.message, STATUS_CODES[problem.status] ?? 'Error');
      assert.deepEqual(problem.headers, {});
      if (problem.status >= 500) assert.equal(problem.code, 'INTERNAL');
      assert.equal(problem.cause, thrown);
    }),
    { numRuns: 500 },
  );
});

test('a status that is no error is a 500', () => {
  for (const statusCode of [200, 302, 399, 600, '404', null])
    assert.equal(toProblem({ statusCode }).status, 500);
  assert.equal(toProblem({ statusCode: 400 }).status, 400);
  assert.equal(toProblem({ statusCode: 599 }).status, 599);
});

test('a handler that took too long keeps its code, which programs look for', () => {
  assert.equal(
    toProblem({ statusCode: 503, code: 'FST_ERR_HANDLER_TIMEOUT' }).code,
    'FST_ERR_HANDLER_TIMEOUT',
  );
});

test('an unknown status has a phrase too', () => {
  assert.equal(reasonPhrase(404), 'Not Found');
  assert.equal(reasonPhrase(499), 'Error');
});

test('a reply of 500 or above carries nothing of the error, neither in its body nor in its headers', async () => {
  const format: ErrorFormat = {
    contentType: 'text/x-test',
    body: ({ code, message }) => `${code}: ${message}`,
  };
  await using app = fastify();
  app.setErrorHandler((error, request, reply) => sendProblem(format, error, request, reply));
  const thrown: readonly Error[] = [
    new Error(SECRET),
    Object.assign(new Error(SECRET), { statusCode: 502, code: SECRET, headers: { 'x-secret': SECRET } }),
    new StoreUnavailableError(SECRET, { cause: new Error(SECRET) }),
  ];
  for (const [i, error] of thrown.entries()) {
    app.get(`/${i}`, () => {
      throw error;
    });
  }
  for (const i of thrown.keys()) {
    const reply = await app.inject(`/${i}`);
    assert.ok(reply.statusCode >= 500);
    assert.equal(reply.headers['content-type'], 'text/x-test', 'exactly as the door writes it');
    assert.ok(!`${JSON.stringify(reply.headers)}${reply.body}`.includes(SECRET), reply.body);
  }
  assert.equal((await app.inject('/2')).headers['retry-after'], '1');
});
