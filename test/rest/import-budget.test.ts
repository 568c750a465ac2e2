import assert from 'node:assert/strict';
import { test } from 'node:test';
import fastify from 'fastify';
import { BodyBudget } from '../../packages/transport/body/body-budget.ts';
import { rest } from '../../src/rest/rest.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { waitFor } from '../support/wait-for.ts';

test('an import in one transaction counts with the lines that it holds, another one does not', async () => {
  await using database = openDatabase('sqlite::memory:');
  const app = fastify();
  const budget = new BodyBudget({ max: 100_000 });
  budget.attach(app);
  app.register(rest, { users: database.users });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const lines = Array.from({ length: 2_000 }, (_, i) => `{"name":"user ${i}","email":"u${i}@example.com"}\n`);
  const post = async (body: string, transaction: 'all' | 'line') => {
    const headers = {
      'content-type': 'application/x-ndjson',
      prefer: `transaction=${transaction}`,
      connection: 'close',
    };
    const reply = await fetch(`${url}/users`, { method: 'POST', headers, body });
    return { status: reply.status, text: await reply.text() };
  };
  try {
    const refused = await post(lines.join(''), 'all');
    assert.equal(refused.status, 503);
    await waitFor('nothing to be held', () => budget.held === 0);
    const whole = await post(lines.slice(0, 500).join(''), 'all');
    assert.match(whole.text, /\{"created":500,"refused":0\}\n$/);
    const lineByLine = await post(lines.join(''), 'line');
    assert.match(lineByLine.text, /\{"created":2000,"refused":0\}\n$/);
    await waitFor('nothing to be held', () => budget.held === 0);
  } finally {
    await app.close();
  }
});
