import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { unobserved } from '../../src/sql/batch-queue.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { Claims } from '../../src/sql/postgres-inbox/claim.ts';
import { Connection } from '../../src/sql/postgres-pool/connection.ts';
import { Server } from '../../src/sql/postgres-pool/server.ts';
import { postgresDatabase, withoutPostgres } from '../support/databases.ts';
import { newDelivery } from '../support/new-delivery.ts';

describe('plans on PostgreSQL', { skip: withoutPostgres ?? false }, () => {
  test('a claim is planned once for all values, and a read without a name for its own', async () => {
    const url = await postgresDatabase();
    await using database = await openDatabase(url);
    const count = 10;
    for (let i = 0; i < count; i++) await database.inbox.append(newDelivery());
    await using server = new Server(() => Connection.open(url), { shared: 1, alone: 1 });
    const claims = new Claims(server, unobserved);
    for (let i = 0; i < count; i++) {
      const claimed = await claims.each([{ target: 't', limit: 1 }], { owner: 'o', lease: 60_000 });
      assert.deepEqual(
        claimed.map((jobs) => !(jobs instanceof Error) && jobs.length),
        [1],
      );
    }
    const plans = `SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = 'claim-unordered'`;
    assert.deepEqual(await server.write({ text: plans }, []), [[count, 0]]);
    assert.deepEqual(await server.readAlone({ text: 'SHOW plan_cache_mode' }, []), [['auto']]);
  });
});
