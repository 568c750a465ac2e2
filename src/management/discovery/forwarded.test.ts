import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { test } from 'node:test';
import fc from 'fast-check';
import { forwardedOrigin } from './forwarded.ts';

const DIRECT = 'http://10.0.0.1:8080';
const x = (proto?: string, host?: string, port?: string, prefix?: string) =>
  Object.fromEntries(
    Object.entries({ proto, host, port, prefix })
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [`x-forwarded-${name}`, value]),
  );

const cases: readonly (readonly [headers: IncomingHttpHeaders, expected: string])[] = [
  [{}, DIRECT],
  [x('https', 'ops.example'), 'https://ops.example'],
  [x('HTTPS', 'ops.example:8443'), 'https://ops.example:8443'],
  [x('https', 'ops.example', '9443'), 'https://ops.example:9443'],
  [x('https', 'ops.example', '443'), 'https://ops.example'],
  [x('http', 'ops.example', '80'), 'http://ops.example'],
  [x('http', 'ops.example', '443'), 'http://ops.example:443'],
  // Our own port is not the one of the other scheme.
  [x('https'), 'https://10.0.0.1'],
  [x(undefined, 'ops.example'), 'http://ops.example'],
  [x('https', '[2001:db8::1]:8443'), 'https://[2001:db8::1]:8443'],
  // The first proxy is the one that the client asked.
  [x('https, http', 'ops.example, inner:8080', '8443, 8080'), 'https://ops.example:8443'],
  [x('https', 'ops.example', undefined, '/portico'), 'https://ops.example/portico'],
  [x('https', 'ops.example', undefined, '/a/, /b'), 'https://ops.example/a/b'],
  [x(undefined, undefined, undefined, '/a'), `${DIRECT}/a`],
  [x(undefined, undefined, undefined, '/'), DIRECT],
  [{ forwarded: 'for=1.2.3.4;proto=https;host=ops.example' }, 'https://ops.example'],
  [{ forwarded: 'Host="ops.example:8443" ; PROTO=HTTPS, for=1;host=x' }, 'https://ops.example:8443'],
  [{ forwarded: 'host="[2001:db8::1]:81"' }, 'http://[2001:db8::1]:81'],
  [{ forwarded: 'for="a;host=evil", host=evil' }, DIRECT],
  [{ forwarded: String.raw`host="ops.\example"` }, 'http://ops.example'],
  // The standard header wins.
  [{ forwarded: 'host=ops.example', ...x('https', 'other') }, 'http://ops.example'],
];

for (const [headers, expected] of cases) {
  test(JSON.stringify(headers), () => assert.equal(forwardedOrigin(headers, DIRECT), expected));
}

test('what is malformed is as good as not there', () => {
  for (const headers of [
    x('javascript'),
    x('https:'),
    x(undefined, 'a"b'),
    x(undefined, 'a/b'),
    x(undefined, 'u@h'),
    x(undefined, 'h:99999'),
    x(undefined, 'h:0'),
    x(undefined, undefined, '0'),
    x(undefined, undefined, '65536'),
    x(undefined, undefined, '80a'),
    x(undefined, undefined, undefined, 'evil.example'),
    x(undefined, undefined, undefined, '//evil.example'),
    x(undefined, undefined, undefined, '/a/../b'),
    x(undefined, undefined, undefined, '/a"'),
    x(undefined, undefined, undefined, '/a, b'),
    x('', '', '', ''),
    { forwarded: '' },
    { forwarded: 'nonsense' },
    { forwarded: 'host="unterminated' },
    { forwarded: 'host=a b;proto=https' },
  ]) {
    assert.equal(forwardedOrigin(headers, DIRECT), DIRECT, JSON.stringify(headers));
  }
});

test('whatever a proxy says, the result is an origin with a plain path', () => {
  const soup = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom(...'/.:,;="\\ @[]a1', 'host=', 'proto=', 'https') }),
  );
  const headers = fc.record(
    {
      forwarded: soup,
      'x-forwarded-proto': soup,
      'x-forwarded-host': soup,
      'x-forwarded-port': soup,
      'x-forwarded-prefix': soup,
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(headers, (given) => {
      assert.match(
        forwardedOrigin(given, DIRECT),
        /^https?:\/\/(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d+)?(?:\/[\w.~-]+)*$/,
      );
    }),
    { numRuns: 1_000 },
  );
});
