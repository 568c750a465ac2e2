import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readForwards } from './read-forwards.ts';

const resolver = {
  env: (name: string) => (name === 'SET' ? `whsec_${Buffer.alloc(24, 1).toString('base64')}` : undefined),
  file: (at: string) => ({ problem: `${at} is not there` }),
};

function read(value: unknown) {
  const problems: string[] = [];
  return { forwards: readForwards(value, 'webhook.forward', resolver, problems), problems };
}

test('a URL alone, and all there can be', () => {
  assert.deepEqual(read(undefined), { forwards: [], problems: [] });
  const { forwards, problems } = read({
    short: 'https://example.com/in',
    long: {
      url: 'http://10.0.0.7:8080/in',
      secrets: { env: 'SET' },
      events: ['paid'],
      allowPrivate: true,
      concurrency: 2,
      timeout: 5_000,
      attempts: 3,
    },
  });
  assert.deepEqual(problems, []);
  const [short, long] = forwards;
  assert.deepEqual(
    [short?.name, short?.url.href, short?.secrets, short?.events, short?.allowPrivate],
    ['short', 'https://example.com/in', [], undefined, false],
  );
  assert.deepEqual(
    [
      long?.secrets.length,
      long?.events,
      long?.allowPrivate,
      long?.concurrency,
      long?.timeout,
      long?.attempts,
    ],
    [1, ['paid'], true, 2, 5_000, 3],
  );
});

test('every fault is named by its path, and none shows a secret', () => {
  const faults: readonly (readonly [unknown, RegExp])[] = [
    [7, /webhook\.forward must be an object/],
    [{ 'A b': 'https://x.example' }, /webhook\.forward\["A b"\] must have a name/],
    [{ a: 7 }, /webhook\.forward\.a must be a URL/],
    [{ a: 'ftp://x' }, /webhook\.forward\.a\.url must be an http or https URL/],
    [{ a: 'https://user:hunter2@x.example' }, /\.a\.url must be an http or https URL without a user name/],
    [{ a: {} }, /\.a\.url must be/],
    [{ a: { url: 'https://x.example', secrets: 'hunter2' } }, /\.a\.secrets/],
    [{ a: { url: 'https://x.example', secrets: { env: 'UNSET' } } }, /UNSET, which is not set/],
    [{ a: { url: 'https://x.example', events: 'paid' } }, /\.a\.events must be an array/],
    [{ a: { url: 'https://x.example', allowPrivate: 'yes' } }, /\.a\.allowPrivate must be true or false/],
    [{ a: { url: 'https://x.example', timeout: 0 } }, /\.a\.timeout must be a whole number above 0/],
    [{ a: { url: 'https://x.example', timout: 1 } }, /\.a.*timout.*timeout/],
    [{ a: { url: 'https://x.example', when: { pointer: '/a' } } }, /\.a\.when must have one of is, /],
    [{ a: { url: 'https://x.example', when: 'hunter2' } }, /\.a\.when must be a function, or a condition/],
    [{ a: { url: 'https://x.example', order: 'id' } }, /\.a\.order must be a JSON pointer/],
    [{ a: { url: 'https://x.example', rate: '10' } }, /\.a\.rate must be like "10\/s"/],
    [
      { a: { url: 'https://x.example', transform: 'hunter2' } },
      /\.a\.transform must be a function, or an object/,
    ],
    [
      { a: { url: 'https://x.example', transform: { headers: { authorization: 'hunter2}' } } } },
      /\.a\.transform\.headers\.authorization must be a text/,
    ],
    [{ a: 'http://10.0.0.7/in' }, /\.a\.url is the private address 10\.0\.0\.7; set allowPrivate/],
    [
      { a: { url: 'http://2130706433/in' } },
      /\.a\.url is the private address 127\.0\.0\.1; set allowPrivate/,
    ],
    [{ a: 'https://[::ffff:127.0.0.1]:8443' }, /\.a\.url is the private address .*; set allowPrivate/],
  ];
  for (const [value, message] of faults) {
    const { problems } = read(value);
    assert.equal(problems.length, 1, `${problems}`);
    assert.match(problems[0] ?? '', message);
    assert.doesNotMatch(problems[0] ?? '', /hunter2/);
  }
});
