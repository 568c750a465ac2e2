import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import pg from 'pg';
import { emptying } from '../../../src/sql/postgres-inbox/bodies.ts';
import { Connection } from '../../../src/sql/postgres-pool/connection.ts';
import { openSlots, wrongBodies } from '../../support/body-slots.ts';
import { postgresDatabase, withoutPostgres } from '../../support/databases.ts';
import { waitFor } from '../../support/wait-for.ts';

const SLOTS = 32;

describe('emptying of slots', { skip: withoutPostgres ?? false }, () => {
  test('removal leaves bodies; a slot that it has come past is emptied, and what is left there is kept', async () => {
    await using slots = await openSlots(await postgresDatabase());
    const [handled, dead, open, unhandled] = await slots.store({}, {}, {}, { jobs: [] });
    assert.ok(handled && dead && open && unhandled);
    const jobs = await slots.claim(2);
    await slots.rotate();
    assert.deepEqual(await slots.filled(), [4], 'removal has not come past it');
    await slots.end(jobs.slice(0, 1));
    await slots.end(jobs.slice(1), 'dead');
    assert.deepEqual(await slots.filled(), [4]);
    await slots.rotate();
    await slots.emptied([]);
    const kept = [dead, open, unhandled].map(({ id }) => id);
    assert.deepEqual(
      [...(await slots.slots()).entries()].toSorted(),
      kept.map((id) => [id, null]).toSorted(),
    );
    assert.deepEqual(await wrongBodies(slots.database, kept), []);
    const [{ size }] = (await slots.client.query(`SELECT pg_relation_size('delivery_bodies_0')::int AS size`))
      .rows;
    assert.equal(size, 0);
    await slots.end(await slots.claim(5));
    assert.equal((await slots.slots()).size, 2);
  });

  test('an append that is slower than its slot keeps its body', async () => {
    await using slots = await openSlots(await postgresDatabase());
    await slots.store({});
    const { client } = slots;
    const id = '01900000-0000-7000-8000-000000000001';
    // What an append does, in two parts.
    const deliver = () =>
      client.query(
        `INSERT INTO deliveries (id, source, event, data_pointer, received_at, slot, body_length)
        VALUES ($1, '', 'e', '/data', 0, 0, 1)`,
        [id],
      );
    const file = (body: string) =>
      client.query(
        `INSERT INTO delivery_bodies (slot, seq, body) SELECT slot, seq, $2 FROM deliveries WHERE id = $1`,
        [id, Buffer.from(body)],
      );
    const bodyOf = async () => String((await slots.database.deliveries.find(id))?.body);
    await client.query('BEGIN');
    await deliver();
    await file('one');
    await slots.end(await slots.claim(1));
    await slots.rotate();
    // It holds the slot; others do not wait for that.
    const [other] = await slots.store({});
    assert.deepEqual(
      (await slots.claim(5)).map(({ delivery }) => delivery.id),
      [other?.id],
    );
    await client.query('COMMIT');
    assert.deepEqual(await slots.filled(), [2, 1]);
    await slots.rotate();
    assert.equal(await bodyOf(), 'one');
    await slots.emptied([]);
    assert.equal(await bodyOf(), 'one', 'the one that was left was copied');

    await client.query(`SET portico.bodies = 'slots'; DELETE FROM deliveries WHERE id = '${id}'`);
    await client.query('BEGIN');
    await deliver();
    await slots.rotate();
    await file('two');
    await client.query('COMMIT');
    assert.equal(await bodyOf(), 'two', 'it came into a slot that was closed and empty');
    await slots.rotate();
    assert.equal(await bodyOf(), 'two');
  });

  test('an append that ends while the emptying waits for it keeps its body', async () => {
    const url = await postgresDatabase();
    await using slots = await openSlots(url);
    await slots.store({});
    const { client } = slots;
    await slots.end(await slots.claim(1));
    await client.query(`
      BEGIN;
      INSERT INTO deliveries (id, source, event, data_pointer, received_at, slot, body_length) VALUES ('x', '', 'e', '', 0, 0, 1);
      INSERT INTO delivery_bodies (slot, seq, body) SELECT slot, seq, 'body' FROM deliveries WHERE id = 'x'`);
    await slots.rotate();
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    try {
      const emptied = other.query(emptying(0).text);
      await waitFor('the emptying to wait', async () => {
        const { rows } = await slots.client.query('SELECT FROM pg_locks WHERE NOT granted');
        return rows.length > 0;
      });
      await client.query('COMMIT');
      await emptied;
    } finally {
      await other.end();
    }
    assert.equal(String((await slots.database.deliveries.find('x'))?.body), 'body');
  });

  test('an older snapshot still finds all bodies', async () => {
    await using slots = await openSlots(await postgresDatabase());
    await slots.store({}, {});
    const { client } = slots;
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await client.query('SELECT count(*) FROM deliveries');
    await slots.end(await slots.claim(2));
    await slots.rotate();
    assert.equal((await slots.slots()).size, 2);
    assert.deepEqual(await slots.filled(), [2]);
    await client.query('COMMIT');
    await slots.rotate();
    assert.equal((await slots.slots()).size, 0);
    await slots.emptied([]);
  });

  test('what is behind a lock is read as it is then, whatever the database has set', async () => {
    const url = await postgresDatabase();
    const set = `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_isolation = 'repeatable read'`;
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(set);
    await client.end();
    await using connection = await Connection.open(url);
    const show = { text: 'SHOW default_transaction_isolation' };
    assert.deepEqual(await connection.run(show, []), [['read committed']]);
  });

  test('a slot that somebody reads is left, and nobody waits for it for long', async () => {
    await using slots = await openSlots(await postgresDatabase());
    await slots.store({});
    await slots.end(await slots.claim(1));
    const { client } = slots;
    await client.query('BEGIN; LOCK TABLE delivery_bodies IN ACCESS SHARE MODE');
    await slots.rotate();
    await slots.store({});
    assert.equal((await slots.claim(1)).length, 1);
    await client.query('ROLLBACK');
    assert.deepEqual(await slots.filled(), [1, 1]);
    await slots.rotate();
    await slots.emptied([]);
  });

  test('while no slot is empty, the open one stays', async () => {
    await using slots = await openSlots(await postgresDatabase());
    const ids: string[] = [];
    for (let i = 0; i < SLOTS + 3; i++) {
      for (const { id } of await slots.store({})) ids.push(id);
      await slots.rotate();
    }
    assert.deepEqual(await slots.filled(), [...Array(SLOTS - 1).fill(1), 4]);
    assert.deepEqual(await wrongBodies(slots.database, ids), []);
    await slots.end(await slots.claim(SLOTS + 3));
    await slots.rotate();
    await slots.emptied([4]);
    await slots.rotate();
    await slots.emptied([]);
    await slots.store({});
    assert.deepEqual(await slots.filled(), [1]);
  });

  test('a client that knows of no slots claims nothing from them, and removes nothing', async () => {
    await using slots = await openSlots(await postgresDatabase());
    const { client } = slots;
    const inRow = '01900000-0000-7000-8000-000000000002';
    await slots.store({});
    await client.query(`
      WITH given AS (
        INSERT INTO deliveries (id, source, event, data_pointer, received_at, body)
        VALUES ('${inRow}', '', 'e', '/data', 0, 'x') RETURNING seq)
      INSERT INTO jobs (delivery, target, due_at) SELECT seq, 't', 0 FROM given`);
    const claim = `UPDATE jobs SET owner = 'older' WHERE owner IS NULL RETURNING delivery`;
    assert.equal((await client.query(claim)).rows.length, 1);
    const [job] = await slots.claim(5);
    assert.notEqual(job?.delivery.id, inRow);
    const remove = 'DELETE FROM jobs; DELETE FROM deliveries';
    await assert.rejects(
      client.query(remove),
      (error) => error instanceof pg.DatabaseError && /slot/.test(error.message),
    );
    assert.equal((await slots.slots()).size, 2);
  });
});
