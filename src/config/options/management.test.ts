import assert from 'node:assert/strict';
import { test } from 'node:test';
import { optionOf } from './options.ts';

test('addresses are plain web URLs; only that of the server may hold credentials', () => {
  const server = optionOf('management.springBootAdmin.url').kind;
  const own = optionOf('management.springBootAdmin.managementUrl').kind;
  for (const url of ['http://sba', 'https://sba:8443/admin/', 'HTTP://[::1]:1', 'http://10.0.0.1/a/b']) {
    assert.equal(server.fromText(url), url);
    assert.equal(own.fromValue(url), url);
  }
  for (const url of ['http://me:pw@sba', 'https://me@sba/x']) {
    assert.equal(server.fromText(url), url);
    assert.equal(own.fromText(url), undefined, url);
  }
  for (const url of [
    '',
    'sba:8080',
    'ftp://sba',
    'http:sba',
    'http:///sba',
    'http://sba:99999',
    'http://sba/?x=1',
    'http://sba#x',
    'http://s ba',
    'http:\\\\sba',
    ' http://sba',
    'http://sba\n',
  ]) {
    assert.equal(server.fromText(url), undefined, url);
    assert.equal(own.fromText(url), undefined, url);
  }
  assert.equal(server.fromValue(new URL('http://sba')), undefined);
});
