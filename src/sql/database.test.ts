import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverUrls } from './database.ts';

test('a URL names as many servers as it has hosts', () => {
  assert.deepEqual(serverUrls('postgres://u:p,w@one:5432,two:5433,[::1]/db?sslmode=disable'), [
    'postgres://u:p,w@one:5432/db?sslmode=disable',
    'postgres://u:p,w@two:5433/db?sslmode=disable',
    'postgres://u:p,w@[::1]/db?sslmode=disable',
  ]);
  assert.deepEqual(serverUrls('postgresql://one,two'), ['postgresql://one', 'postgresql://two']);
});

test('any other URL names one and stays as it is', () => {
  for (const url of [
    'postgres://u:p@one:5432/db,x?options=-c%20a=b,c',
    'postgres:///db?host=/run/postgresql',
    'postgres://u:a@b@one/db',
    'sqlite:a,b.db',
    'sqlite:postgres://a,b',
    '',
  ]) {
    assert.deepEqual(serverUrls(url), [url]);
  }
});
