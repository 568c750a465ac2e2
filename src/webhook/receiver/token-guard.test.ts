import assert from 'node:assert/strict';
import { test } from 'node:test';
import fastify from 'fastify';
import { rawHttp } from '../../../test/support/raw-http.ts';
import { EmptySecretError } from '../../http/auth/secret-equal.ts';
import type { HttpProblem } from '../../http/problem.ts';
import { tokenGuard } from './token-guard.ts';

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

test('without secrets every request passes (contract 5)', async () => {
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
