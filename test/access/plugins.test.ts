import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { tokenDigest } from '../../src/access/policy.ts';
import { graphql } from '../../src/graphql/graphql.ts';
import { usersSchema } from '../../src/graphql/users-schema.ts';
import { LocalUserFeed } from '../../src/relations/events.ts';
import { MemoryUserStore } from '../../src/relations/user-stores.ts';
import { rest } from '../../src/rest/rest.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { bearer, tokens } from './support/tokens.ts';

test('the plugins take the same options', async () => {
  await using database = openDatabase('sqlite::memory:');
  const stored = 'portico_a-token-of-the-database';
  await database.apiTokens.create({
    name: 'stored',
    digest: tokenDigest(stored),
    scopes: ['users:read'],
    createdAt: 1,
    expiresAt: null,
  });
  const feed = new LocalUserFeed();
  const api = { required: 'all', tokens, stored: database.apiTokens, rate: '1/h', burst: 4 } as const;
  const cors = { origins: ['https://app.example.com'] };
  await using app = Fastify();
  app.register(rest, { users: database.users, api, cors, prefix: '/api' });
  app.register(graphql, { schema: usersSchema(new MemoryUserStore(feed, 10), feed), api, cors });

  const headers = (authorization?: string) => ({
    origin: 'https://app.example.com',
    ...(authorization === undefined ? {} : { authorization }),
  });
  const ask = async (url: string, authorization?: string) => {
    const { statusCode, headers: got } = await app.inject({ url, headers: headers(authorization) });
    return [statusCode, got['access-control-allow-origin'], got.ratelimit !== undefined];
  };
  for (const url of ['/api/users/1', '/graphql?query=%7B__typename%7D']) {
    assert.deepEqual(await ask(url), [401, 'https://app.example.com', true], url);
    assert.deepEqual(await ask(url, bearer('reader')), [200, 'https://app.example.com', true]);
    assert.deepEqual(await ask(url, `Bearer ${stored}`), [200, 'https://app.example.com', true]);
    assert.deepEqual(await ask(url, bearer('writer')), [403, 'https://app.example.com', true]);
  }
  const wrong = Fastify();
  wrong.register(rest, {
    users: database.users,
    api: { required: 'all', tokens: { a: { secret: 'x', scopes: [] } } },
  });
  await assert.rejects(async () => wrong.ready(), /options: api\.tokens\.a\.secret must have at least 16/);
  await wrong.close();
});
