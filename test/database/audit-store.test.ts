import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AuditEvent } from '../../src/access/audit.ts';
import { engines } from '../support/databases.ts';

const event = (at: number, changes: Partial<AuditEvent> = {}): AuditEvent => ({
  at,
  principal: 'ada',
  type: 'HEAP_DUMPED',
  data: { door: 'rest', code: 'X', n: 1, text: 'a"\\\u00e9\ufffd' },
  isAction: true,
  ...changes,
});

for (const [engine, open] of Object.entries(engines)) {
  describe(`audit events on ${engine}`, () => {
    test('are found by who, what and when, the latest, oldest first', async () => {
      await using database = await open();
      const { audit } = database.current;
      const events = [event(1), event(2, { principal: 'bob' }), event(3, { type: 'OTHER', isAction: false })];
      await audit.append(events);
      assert.deepEqual(await audit.find({ limit: 10 }), events);
      assert.deepEqual(await audit.find({ limit: 2 }), events.slice(1));
      assert.deepEqual(await audit.find({ limit: 9, principal: 'bob' }), [events[1]]);
      assert.deepEqual(await audit.find({ limit: 9, type: 'OTHER' }), [events[2]]);
      assert.deepEqual(await audit.find({ limit: 9, after: 2 }), [events[2]]);
      assert.deepEqual(await audit.find({ limit: 9, after: 2, principal: 'bob' }), []);
      if (database.reopen === undefined) return;
      await database.reopen();
      assert.deepEqual(await database.current.audit.find({ limit: 10 }), events);
    });

    test('are removed by their age, and beyond a number of each kind', async () => {
      await using database = await open();
      const { audit } = database.current;
      const of = (isAction: boolean) => Array.from({ length: 5 }, (_, i) => event(i, { isAction }));
      await audit.append([...of(true), ...of(false)]);
      assert.equal(await audit.prune(2, 100), 4);
      assert.equal(await audit.prune(0, 2), 2);
      assert.equal(await audit.prune(0, 2), 0);
      const left = await audit.find({ limit: 100 });
      assert.deepEqual(
        left.map(({ at, isAction }) => [at, isAction]),
        [
          [3, true],
          [4, true],
          [3, false],
          [4, false],
        ],
      );
    });
  });
}
