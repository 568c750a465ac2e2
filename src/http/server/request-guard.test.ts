import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { LIMITS } from '../limits.ts';
import { originForm, refusedFraming } from './request-guard.ts';

test('the origin form of every form of a request target', () => {
  const forms = {
    '/users': '/users',
    '/users?a=http://x/y': '/users?a=http://x/y',
    'http://host/users': '/users',
    'http://host:8000/users?a=1': '/users?a=1',
    'HTTPS://user@[::1]:1/users/1': '/users/1',
    'http://host//users': '//users',
    'http://host': '/',
    'http://host?a=1': '/?a=1',
    'http://': '/',
    'http:///users': '/users',
    // Not for us to read: other schemes, the asterisk form, the authority form, nothing.
    'ftp://host/users': 'ftp://host/users',
    '*': '*',
    'host:443': 'host:443',
    '': '',
    // A path that only looks absolute.
    '/http://host/users': '/http://host/users',
    '//host/users': '//host/users',
  };
  for (const [target, origin] of Object.entries(forms)) assert.equal(originForm(target), origin, target);
});

const authority = fc.constantFrom('h', 'example.com:80', '[::1]:8000', 'user@h', '', '%2f');
const path = fc.string({ unit: fc.constantFrom('/', 'a', '.', '%2f', ':', '@') }).map((rest) => `/${rest}`);
const query = fc.string({ unit: fc.constantFrom('/', '?', 'a', '=', ':', '&') }).map((rest) => `?${rest}`);
const scheme = fc.constantFrom('http://', 'https://', 'HTTP://', 'hTTpS://');

test('an absolute target with a path is cut behind its authority', () => {
  fc.assert(
    fc.property(scheme, authority, path, fc.oneof(query, fc.constant('')), (http, host, where, what) => {
      assert.equal(originForm(http + host + where + what), where + what);
    }),
  );
});

test('an absolute target without a path gets the root, its query untouched', () => {
  fc.assert(
    fc.property(scheme, authority, query, (http, host, what) => {
      assert.equal(originForm(http + host + what), `/${what}`);
    }),
  );
});

test('a slash in the query of an absolute target without a path does not become its path', {}, () => {
  assert.equal(originForm('http://host?next=/users/1'), '/?next=/users/1');
  assert.equal(originForm('http://host?/actuator/env'), '/?/actuator/env');
});

test('any text gives an origin form or stays as it is', () => {
  const target = fc.oneof(
    fc.string(),
    fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units)),
    fc.tuple(scheme, fc.string()).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(target, (text) => {
      const origin = originForm(text);
      assert.ok(origin.startsWith('/') || origin === text);
      assert.equal(originForm(origin), origin, 'twice is like once');
      if (!/^https?:\/\//i.test(text)) assert.equal(origin, text);
    }),
    { numRuns: 500 },
  );
});

/** A request as the parser hands it over, with header fields as they came. */
function request(fields: readonly (readonly [string, string])[], httpVersionMinor = 1): IncomingMessage {
  const message = new IncomingMessage(new Socket());
  message.httpVersionMinor = httpVersionMinor;
  message.rawHeaders = fields.flat();
  message.headers = Object.fromEntries(fields.map(([name, value]) => [name.toLowerCase(), value]));
  return message;
}

test('one Host passes; none is a 400 except in HTTP/1.0', () => {
  assert.equal(refusedFraming(request([['Host', 'a']])), undefined);
  assert.equal(refusedFraming(request([]))?.code, 'MISSING_HOST');
  assert.equal(refusedFraming(request([], 0)), undefined);
});

test('no Host and more than one are a 400, in any case, anywhere, with the same value or not', () => {
  const host = fc.tuple(fc.mixedCase(fc.constant('host')), fc.constantFrom('a', 'b', ''));
  const other = fc.tuple(fc.constantFrom('Accept', 'X-Host', 'hosts', 'hos', 'ho st'), fc.constant('host'));
  fc.assert(
    fc.property(
      fc.array(host, { maxLength: 4 }),
      fc.array(other, { maxLength: 20 }),
      fc.nat(),
      (hosts, others, at) => {
        const place = at % (others.length + 1);
        const fields = [...others.slice(0, place), ...hosts, ...others.slice(place)];
        const refused = refusedFraming(request(fields));
        const code = hosts.length > 1 ? 'DUPLICATE_HOST' : 'MISSING_HOST';
        assert.equal(refused?.code, hosts.length === 1 ? undefined : code);
        assert.equal(refused?.status, hosts.length === 1 ? undefined : 400);
      },
    ),
  );
});

test('a value that reads Host is no Host', () => {
  assert.equal(
    refusedFraming(
      request([
        ['Host', 'a'],
        ['X', 'Host'],
        ['Y', 'host'],
      ]),
    ),
    undefined,
  );
});

test(`${LIMITS.maxHeaders} header fields are too many, as some could have been dropped`, () => {
  const fields = (count: number) =>
    Array.from({ length: count }, (_, i) => [i === 0 ? 'host' : `x-${i}`, '1'] as const);
  assert.equal(refusedFraming(request(fields(LIMITS.maxHeaders - 1))), undefined);
  assert.equal(refusedFraming(request(fields(LIMITS.maxHeaders)))?.status, 431);
  assert.equal(refusedFraming(request(fields(LIMITS.maxHeaders)))?.code, 'TOO_MANY_HEADERS');
});

test('HTTP/1.0 with Transfer-Encoding is a 400, HTTP/1.1 with it and HTTP/1.0 without it are not', () => {
  const fields = [
    ['Host', 'a'],
    ['tRANSFER-encoding', 'chunked'],
  ] as const;
  assert.equal(refusedFraming(request(fields, 0))?.code, 'TRANSFER_ENCODING_1_0');
  assert.equal(refusedFraming(request(fields, 0))?.status, 400);
  assert.equal(refusedFraming(request(fields, 1)), undefined);
  assert.equal(refusedFraming(request([['Host', 'a']], 0)), undefined);
  assert.ok(refusedFraming(request([['Transfer-Encoding', '']], 0)), 'an empty one is one');
});

test('an expectation that nobody knows is a 417', () => {
  const expecting = (value: string) =>
    request([
      ['Host', 'a'],
      ['Expect', value],
    ]);
  assert.equal(refusedFraming(expecting('100-Continue')), undefined);
  assert.equal(refusedFraming(expecting('more'))?.status, 417);
  assert.equal(refusedFraming(expecting('more'))?.code, 'UNKNOWN_EXPECTATION');
});
