import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSecretResolver } from '../config/secrets.ts';
import { readDeadAlert } from './producers.ts';

const SECRET = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;

function read(value: unknown) {
  const problems: string[] = [];
  const resolver = createSecretResolver({ KEY: SECRET }, '/');
  return { ...readDeadAlert(value, 'x: webhook.alerts', resolver, problems), problems };
}

test('an alert is a URL, or an object, whose address is read as a forward address is', () => {
  const { address, problems, ...rest } = read({ dead: 'https://a.example/' });
  assert.deepEqual(problems, []);
  assert.equal(address?.url.href, 'https://a.example/');
  assert.deepEqual(rest, { interval: 900_000, threshold: 0, down: false });
  const own = read({
    dead: { url: 'http://10.0.0.1', allowPrivate: true, secrets: { env: 'KEY' }, attempts: 3 },
  });
  assert.deepEqual(own.problems, []);
  assert.deepEqual([own.address?.secrets, own.address?.attempts], [[SECRET], 3]);
});

test('without an address there are no alerts, and the threshold holds', () => {
  for (const value of [undefined, {}, { dead: {} }]) {
    assert.deepEqual(read(value), {
      address: undefined,
      interval: 900_000,
      threshold: 0,
      down: false,
      problems: [],
    });
  }
  assert.equal(read({ dead: { threshold: 5 } }).threshold, 5);
});

test('all that is wrong is said by its path, once', () => {
  const at = 'x: webhook.alerts';
  assert.deepEqual(read({ ded: 1 }).problems, [`${at} has an unknown key "ded"; did you mean dead?`]);
  assert.deepEqual(read(7).problems, [`${at} must be an object of alerts`]);
  assert.deepEqual(read({ dead: 7 }).problems, [`${at}.dead must be a URL, or an object`]);
  assert.deepEqual(read({ dead: 'http://10.0.0.1' }).problems, [
    `${at}.dead.url is the private address 10.0.0.1; set allowPrivate if that is intended`,
  ]);
  const { problems } = read({ dead: { url: 'ftp://a', interval: 1, down: 'yes', secrets: 'short' } });
  assert.equal(problems.length, new Set(problems).size);
  assert.ok(problems.includes(`${at}.dead.url must be an http or https URL without a user name in it`));
  assert.ok(problems.includes(`${at}.dead.down must be true or false`));
});
