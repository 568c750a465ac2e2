import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { follow } from '../rest/support/rest-door.ts';
import { type Caller, type RuledDoor, ruledDoors } from '../support/relations/ruled-door.ts';
import { LED } from '../support/relations/ruled-worlds.ts';

async function followed({ door }: RuledDoor, { headers }: Caller, path: string) {
  const stream = await follow(door.url, headers, '', path);
  return {
    async next(count: number) {
      const found: { readonly name: string; readonly data: Record<string, unknown> }[] = [];
      while (found.length < count) {
        const sent = await stream.next();
        if (sent === undefined) throw new Error('the stream has ended');
        if (sent.data !== '') found.push({ name: sent.event, data: JSON.parse(sent.data) });
      }
      return found;
    },
    [Symbol.asyncDispose]: () => stream[Symbol.asyncDispose](),
  };
}

for (const { engine, open } of ruledDoors) {
  describe(`changes under rules on ${engine}`, () => {
    test('a stream has the events of rows that its caller may read, with the columns that it may read', async () => {
      await using world = await open(LED);
      const staff = await world.caller('staff', { sub: 'staff', scope: 'staff' });
      const ann = await world.caller('ann', { sub: 'ann' });
      const bob = await world.caller('bob', { sub: 'bob' });
      await staff.send('POST', '/teams', { lead: 'bob' });
      await using ofAnn = await followed(world, ann, '/notes');
      await using ofBob = await followed(world, bob, '/_changes?relation=notes,teams');
      await using ofStaff = await followed(world, staff, '/notes');
      const note = await staff.send('POST', '/notes', { title: 'one', owner: 'ann', cost: 1 });
      const { id } = note.body;
      const patch = async (body: unknown) =>
        assert.equal((await staff.send('PATCH', `/notes/${id}`, body)).status, 200);
      await patch({ title: 'two' });
      await patch({ owner: 'carl' });
      await patch({ title: 'unseen' });
      await patch({ team_id: 1 });
      await patch({ team_id: null, title: 'gone' });
      await patch({ owner: 'ann', title: 'back' });
      await staff.send('DELETE', `/notes/${id}`);
      const seen = async (stream: typeof ofAnn, count: number) =>
        (await stream.next(count)).map(({ name, data }) => [
          name,
          data.type,
          data.key,
          (data.row as { title?: string } | undefined)?.title,
        ]);
      assert.deepEqual(await seen(ofAnn, 5), [
        ['note.created', 'created', String(id), 'one'],
        ['note.updated', 'updated', String(id), 'two'],
        ['note.deleted', 'deleted', String(id), undefined],
        ['note.updated', 'updated', String(id), 'back'],
        ['note.deleted', 'deleted', String(id), 'back'],
      ]);
      assert.deepEqual(await seen(ofBob, 2), [
        ['note.updated', 'updated', String(id), 'unseen'],
        ['note.deleted', 'deleted', String(id), undefined],
      ]);
      const all = await ofStaff.next(8);
      assert.deepEqual(
        all.map(({ data }) => (data.row as { cost: number }).cost),
        Array(8).fill(1),
      );
    });

    test('no column that a caller may not read is in its events, and a row that has left has its key alone', async () => {
      await using world = await open(LED);
      const staff = await world.caller('staff', { sub: 'staff', scope: 'staff' });
      const ann = await world.caller('ann', { sub: 'ann' });
      await using stream = await followed(world, ann, '/notes?title:prefix=t');
      await staff.send('POST', '/notes', { title: 'other', owner: 'ann', cost: 1 });
      await staff.send('POST', '/notes', { title: 'two', owner: 'ann', cost: 1 });
      await staff.send('PATCH', '/notes/1', { owner: 'carl' });
      await staff.send('PATCH', '/notes/2', { owner: 'carl', title: 'x', cost: 7 });
      const [created, left] = await stream.next(2);
      assert.deepEqual(created?.data.row, { id: 2, title: 'two', owner: 'ann', team_id: null });
      const { position: _, ...rest } = left?.data ?? {};
      assert.deepEqual(rest, { relation: 'notes', type: 'deleted', key: '2' });
    });

    test('a relation that a caller may not read at all is not followed', async () => {
      await using world = await open(LED);
      const ann = await world.caller('ann', { sub: 'ann' });
      const accept = { accept: 'text/event-stream' };
      assert.equal((await ann.get('/hidden', accept)).status, 403);
      assert.equal((await world.anonymous.get('/hidden', accept)).status, 401);
      for (const names of ['hidden', 'notes,hidden'])
        assert.equal((await ann.get(`/_changes?relation=${names}`, accept)).status, 403);
    });
  });
}
