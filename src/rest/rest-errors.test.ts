import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HttpProblem } from '@portico/transport';
import fc from 'fast-check';
import { allowedOf, data, done, failure, JSON_TYPE, restErrors, USER_NOT_FOUND } from './messages.ts';

describe('envelope', () => {
  test('the bytes that the contract states', () => {
    assert.equal(data('[]'), '{"status":"success","data":[]}');
    assert.equal(
      done('User created successfully'),
      '{"status":"success","message":"User created successfully"}',
    );
    assert.equal(USER_NOT_FOUND, '{"status":"error","message":"User not found"}');
    assert.equal(JSON_TYPE, 'application/json');
  });

  test('any value and any message stands whole in its envelope', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string({ unit: 'grapheme' }), (value, message) => {
        const text = JSON.stringify(value);
        assert.deepEqual(JSON.parse(data(text)), { status: 'success', data: JSON.parse(text) });
        assert.deepEqual(JSON.parse(done(message)), { status: 'success', message });
        assert.deepEqual(JSON.parse(failure(message)), { status: 'error', message });
      }),
    );
  });
});

describe('rest errors', () => {
  const bodyOf = (status: number, method: string | undefined) =>
    JSON.parse(
      restErrors.body(
        new HttpProblem(status, 'BAD_REQUEST', 'secret-12'),
        method === undefined ? undefined : { method, url: '/' },
      ),
    ) as unknown;

  test('a write that fails says what the contract says, whatever the reason was (CONTRACT.md#errors)', () => {
    for (const status of [400, 403, 413, 500, 503]) {
      assert.deepEqual(bodyOf(status, 'POST'), { status: 'error', message: 'Failed to create user' });
      assert.deepEqual(bodyOf(status, 'PUT'), { status: 'error', message: 'Failed to update user' });
      assert.deepEqual(bodyOf(status, 'DELETE'), { status: 'error', message: 'Failed to delete user' });
    }
  });

  test('any other refusal shows the reason phrase of its status, never the message of the problem', () => {
    for (const method of ['GET', 'HEAD', 'PATCH', undefined]) {
      assert.deepEqual(bodyOf(503, method), { status: 'error', message: 'Service Unavailable' });
      assert.deepEqual(bodyOf(400, method), { status: 'error', message: 'Bad Request' });
    }
  });

  test('the content type is the one of all replies (CONTRACT.md#rest-envelope)', () => {
    assert.equal(restErrors.contentType, 'application/json');
  });
});

describe('routing', () => {
  /** By first segment: the methods without and with a second one (CONTRACT.md#rest-routes). */
  const ALLOW = {
    users: ['GET, HEAD, POST, OPTIONS', 'GET, HEAD, OPTIONS'],
    update: ['OPTIONS', 'PUT, OPTIONS'],
    delete: ['OPTIONS', 'DELETE, OPTIONS'],
  } as const;
  const names = Object.keys(ALLOW) as (keyof typeof ALLOW)[];

  test('a known first segment gets the empty reply with the methods of its shape', () => {
    assert.equal(allowedOf('/users'), 'GET, HEAD, POST, OPTIONS');
    assert.equal(allowedOf('/users/1'), 'GET, HEAD, OPTIONS');
    assert.equal(allowedOf('/update'), 'OPTIONS');
    assert.equal(allowedOf('/update/'), 'OPTIONS');
    assert.equal(allowedOf('/delete/x?y=1/2/3'), 'DELETE, OPTIONS');
  });

  test('an unknown first segment is unknown', () => {
    const targets = [
      '',
      '/',
      '?',
      '*',
      'users',
      '/user',
      '/Users',
      '//users',
      '/users%2F1',
      '/users;a',
      '/ users',
      '/.',
    ];
    for (const target of [
      ...targets,
      '/constructor',
      '/__proto__/1',
      '/toString',
      '/users/1/2',
      '/users//1',
    ]) {
      assert.equal(allowedOf(target), undefined, target);
    }
  });

  test('a path that cannot be decoded is taken as it is', () => {
    assert.equal(allowedOf('/users/%zz'), 'GET, HEAD, OPTIONS');
    assert.equal(allowedOf('/users/%ff'), 'GET, HEAD, OPTIONS');
    assert.equal(allowedOf('/%'), undefined);
  });

  /** A text with some of its letters behind a percent sign. */
  const spelled = (text: string) =>
    fc.array(fc.boolean(), { minLength: text.length, maxLength: text.length }).map((hidden) =>
      text
        .split('')
        .map((letter, i) => (hidden[i] ? `%${letter.charCodeAt(0).toString(16)}` : letter))
        .join(''),
    );
  const word = fc.string({ unit: 'grapheme' });
  const query = fc.oneof(
    fc.constant(''),
    word.map((text) => `?${text}`),
  );

  test('however it is spelled, what the path names decides', () => {
    const known = fc.constantFrom(...names).chain((name) => fc.tuple(fc.constant(name), spelled(name)));
    const tail = fc.constantFrom('', '/', '//', '///');
    fc.assert(
      fc.property(known, fc.option(word), tail, query, ([name, first], second, slashes, what) => {
        const segment = encodeURIComponent(second ?? '');
        const target = `/${first}${second === null ? '' : `/${segment}`}${slashes}${what}`;
        assert.equal(allowedOf(target), ALLOW[name][segment === '' ? 0 : 1]);
      }),
    );
  });

  test('any other first segment, and any deeper path, is unknown', () => {
    const first = word.filter((text) => !names.some((name) => name === text)).map(encodeURIComponent);
    fc.assert(
      fc.property(first, fc.array(word.map(encodeURIComponent)), query, (name, rest, what) => {
        assert.equal(allowedOf(`/${[name, ...rest].join('/')}${what}`), undefined);
      }),
    );
    const deeper = fc.string({ minLength: 1, unit: 'grapheme' }).map(encodeURIComponent);
    fc.assert(
      fc.property(fc.constantFrom(...names), word.map(encodeURIComponent), deeper, (name, id, more) => {
        assert.equal(allowedOf(`/${name}/${id}/${more}`), undefined);
      }),
    );
  });

  test('any text gets an answer', () => {
    const soup = fc.string({
      unit: fc.constantFrom('/', '%', '?', '#', '2f', 'users', 'update', '\\', '..', '\ud800'),
    });
    fc.assert(
      fc.property(fc.oneof(fc.string(), soup), (target) => {
        const answer = allowedOf(target);
        assert.ok(
          answer === undefined ||
            Object.values(ALLOW)
              .flat()
              .some((allow) => allow === answer),
        );
      }),
      { numRuns: 500 },
    );
  });
});
