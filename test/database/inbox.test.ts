import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { engines } from '../support/databases.ts';

async function append(
  inbox: Inbox,
  event: string,
  status: 'pending' | 'unhandled' = 'pending',
): Promise<string> {
  const id = randomUUIDv7();
  const body = Buffer.from(JSON.stringify({ event, data: 1 }));
  await inbox.append({ id, event, body, receivedAt: 1_700_000_000_000, status });
  return id;
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`inbox in ${engine}`, () => {
    test('pending deliveries are claimed once, oldest first, byte for byte', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const ids: string[] = [];
      for (const event of ['a', 'b', 'c']) ids.push(await append(inbox, event));
      await append(inbox, 'd', 'unhandled');
      const first = await inbox.claim(2);
      const rest = await inbox.claim(10);
      assert.deepEqual(
        [...first, ...rest].map(({ id }) => id),
        ids,
      );
      assert.equal(Buffer.from(first[0]?.body ?? []).toString(), '{"event":"a","data":1}');
      assert.equal(first[0]?.receivedAt, 1_700_000_000_000);
      assert.deepEqual(await inbox.claim(10), []);
    });

    test('a settled delivery is not claimed again, one that is given back is', async () => {
      await using database = await open();
      const { inbox } = database.current;
      const done = await append(inbox, 'a');
      const back = await append(inbox, 'b');
      await inbox.claim(10);
      await inbox.settle(done, 'done');
      await inbox.settle(back, 'pending');
      assert.deepEqual(
        (await inbox.claim(10)).map(({ id }) => id),
        [back],
      );
    });

    test('what an ended process had in hand is recovered', async () => {
      await using database = await open();
      const id = await append(database.current.inbox, 'a');
      await database.current.inbox.claim(10);
      await database.reopen?.();
      assert.deepEqual(await database.current.inbox.claim(10), []);
      assert.equal(await database.current.inbox.recover(), 1);
      assert.deepEqual(
        (await database.current.inbox.claim(10)).map((claimed) => claimed.id),
        [id],
      );
    });

    test('claims at the same time share the deliveries among them', async () => {
      await using database = await open();
      const { inbox } = database.current;
      await Promise.all(Array.from({ length: 100 }, (_, i) => append(inbox, `e${i}`)));
      const claims = await Promise.all(Array.from({ length: 10 }, () => inbox.claim(15)));
      const ids = claims.flat().map(({ id }) => id);
      assert.equal(ids.length, 100);
      assert.equal(new Set(ids).size, 100);
    });
  });
}
