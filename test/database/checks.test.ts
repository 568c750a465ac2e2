import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { databaseCheck, writerCheck } from '../../src/sql/open.ts';
import { HealthRegistry } from '../../src/telemetry/health.ts';
import { engines } from '../support/databases.ts';

for (const [engine, open] of Object.entries(engines)) {
  describe(`health of ${engine}`, () => {
    test('an open database answers, for reads and for writes; a closed one is DOWN', async () => {
      const database = await open();
      const { current } = database;
      const registry = new HealthRegistry([databaseCheck(current), writerCheck(current)]);
      assert.deepEqual(await registry.check(), {
        status: 'UP',
        components: { db: { status: 'UP' }, writer: { status: 'UP' } },
      });
      await database[Symbol.asyncDispose]();
      const { status, components } = await registry.check();
      assert.equal(status, 'DOWN');
      for (const [name, result] of Object.entries(components)) assert.equal(result.status, 'DOWN', name);
    });

    test('a check of the writer stands in the same queue as writes, and stores nothing', async () => {
      await using database = await open();
      const { users, pingWriter } = database.current;
      const write = users.create({ name: 'a', email: 'a@b' });
      await pingWriter();
      assert.equal(await users.lastId(), 1, 'the write before it is stored');
      await write;
      await pingWriter();
      assert.equal(await users.lastId(), 1);
    });
  });
}
