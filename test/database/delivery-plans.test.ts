import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { DeliveryFilter } from '../../src/inbox/operations.ts';
import { sqliteSql } from '../../src/sql/sqlite/sql.ts';
import type { WriteQueue } from '../../src/sql/sqlite-writer/write-queue.ts';
import { deliveryLog } from '../../src/sql/stores/delivery-log.ts';
import type { Sql } from '../../src/sql/stores/sql.ts';
import { fillSqlite } from '../support/fill-sqlite.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const DELIVERIES = 12_000;
const FILTERS: readonly DeliveryFilter[] = [
  {},
  { status: 'dead' },
  { status: 'unhandled' },
  { target: 'handler:filled' },
  { event: 'filled', source: '' },
  { since: 1_700_000_000_000, until: 1_700_000_500_000 },
  { text: '"number":7}' },
];

test('a page of deliveries is found by keys and indexes, whatever is filtered and wherever it is', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'portico.db');
  await fillSqlite(file, { users: 1, deliveries: DELIVERIES, search: 'none' });
  using db = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
  const noted: (readonly [text: string, values: readonly (string | number | null | Uint8Array)[]])[] = [];
  // It writes nothing.
  const sql = sqliteSql({ reads: db, writes: undefined as unknown as WriteQueue });
  const noting: Sql = {
    ...sql,
    read(query, ...values) {
      noted.push([query.sqlite, values as (string | number | null)[]]);
      return sql.read(query, ...values);
    },
  };
  const log = deliveryLog(noting, { maxChanges: 1 });
  for (const filter of FILTERS) {
    for (const before of [Number.MAX_SAFE_INTEGER, DELIVERIES / 2]) {
      const { items } = await log.list(filter, 50, { before });
      assert.ok(items.every(({ seq }) => seq < before));
      await log.find(items[0]?.id ?? 'none');
      await log.count(filter, before);
    }
  }
  await log.failing();
  assert.ok(noted.length > 2 * FILTERS.length);
  for (const [text, values] of noted) {
    const explained = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...values);
    const plan = explained.map(({ detail }) => String(detail));
    for (const line of plan) {
      // The index of the dead jobs alone is read from its beginning, up to a limit.
      assert.doesNotMatch(
        line,
        /^SCAN (?:d|deliveries|jobs|attempts)\b(?! USING INDEX jobs_dead$)/,
        plan.join('\n'),
      );
    }
  }
});
