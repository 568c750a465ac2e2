import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import pg from 'pg';
import { postgresDatabase, withoutPostgres } from '../support/databases.ts';
import { idsOf, open, type RestDoor } from './support/rest-door.ts';

const KEY = { 'idempotency-key': '8e03978e-40d5-43dd-bc93-6894a57f9324' };
const USER = { name: 'Ada', email: 'ada@example.com' };

const create = (door: RestDoor) => door.send('POST', '/users', { headers: KEY, body: USER });

/** While nobody can write, of two creates with one key one waits, and the other is told so; then the first is done. */
async function whileHeld(doors: readonly [RestDoor, RestDoor], release: () => Promise<void> | void) {
  const creates = doors.map((door) => create(door));
  const refused = await Promise.race(creates);
  assert.deepEqual(
    [refused.status, refused.headers.get('x-error-code'), refused.body.message],
    [409, 'IDEMPOTENCY_KEY_IN_USE', 'Failed to create user'],
  );
  await release();
  const done = (await Promise.all(creates)).filter((reply) => reply !== refused);
  assert.deepEqual(
    done.map(({ status }) => status),
    [200],
  );
  const again = await create(doors[0]);
  assert.deepEqual([again.status, again.headers.get('location')], [200, done[0]?.headers.get('location')]);
  assert.equal(idsOf(await doors[1].get('/users')).length, 1);
}

describe('an Idempotency-Key in use', () => {
  test('is a 409 on SQLite', async () => {
    await using door = await open({}, 'file');
    using other = new DatabaseSync(join(door.service.folder, 'portico.db'), { timeout: 5_000 });
    other.exec('BEGIN IMMEDIATE');
    await whileHeld([door, door], () => other.exec('ROLLBACK'));
  });

  for (const replicas of [1, 2]) {
    test(`is a 409 on PostgreSQL with ${replicas} processes`, {
      skip: withoutPostgres ?? false,
    }, async () => {
      const env = { DATABASE_URL: await postgresDatabase(), USERS_UNIQUE_EMAIL: 'true' };
      await using one = await open(env);
      await using two = await open(env);
      const other = new pg.Client({ connectionString: env.DATABASE_URL });
      await other.connect();
      try {
        // Whoever stores another user with this email has to wait.
        await other.query(`BEGIN; INSERT INTO users (name, email) VALUES ('x', '${USER.email}')`);
        await whileHeld([one, replicas === 1 ? one : two], async () => {
          await other.query('ROLLBACK');
        });
      } finally {
        await other.end();
      }
    });
  }
});
