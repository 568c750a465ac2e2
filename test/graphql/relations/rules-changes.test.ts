import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Client, createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { type Caller, type RuledDoor, ruledDoors } from '../../support/relations/ruled-door.ts';
import { LED } from '../../support/relations/ruled-worlds.ts';
import { waitFor } from '../../support/wait-for.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look at members of all shapes
type Results = AsyncIterableIterator<any>;

/** The subscriptions of a caller, each of which is open when it is returned. */
function subscriber({ door }: RuledDoor, { headers }: Caller) {
  const client: Client = createClient({
    url: door.graphql.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { ...headers },
    retryAttempts: 0,
  });
  const iterate = (query: string): Results => client.iterate({ query });
  return {
    iterate,
    async follow(query: string, field: string) {
      const before = door.followers;
      const results = iterate(query);
      const found: Promise<unknown>[] = [results.next()];
      await waitFor('a subscription', () => door.followers > before);
      return async (count: number) => {
        const all: unknown[] = [];
        while (all.length < count) {
          const { value } = (await (found.shift() ?? results.next())) as {
            value: { data: Record<string, unknown> };
          };
          assert.ok(value.data != null, JSON.stringify(value));
          all.push(value.data[field]);
        }
        return all;
      };
    },
    [Symbol.dispose]: () => void client.dispose(),
  };
}

for (const { engine, open } of ruledDoors) {
  describe(`subscriptions under rules on ${engine}`, () => {
    test('have the changes of rows that their caller may read; a row that leaves is deleted, with its key', async () => {
      await using world = await open(LED);
      const staff = await world.caller('staff', { sub: 'staff', scope: 'staff' });
      const [ann, bob] = [
        await world.caller('ann', { sub: 'ann' }),
        await world.caller('bob', { sub: 'bob' }),
      ];
      await staff.data('mutation { createTeam(data: { lead: "bob" }) { id } }');
      using byAnn = subscriber(world, ann);
      using byBob = subscriber(world, bob);
      using byStaff = subscriber(world, staff);
      const changes = 'subscription { notesChanged { type key { id } row { title team { lead } } } }';
      const ofStaff = await byStaff.follow(changes, 'notesChanged');
      const ofAnn = await byAnn.follow(changes, 'notesChanged');
      const ofBob = await byBob.follow(changes, 'notesChanged');
      const gone = await byAnn.follow('subscription { noteDeleted { id } }', 'noteDeleted');
      const titled = await byAnn.follow(
        'subscription { noteUpdated(where: { title: { prefix: "b" } }) { title owner } }',
        'noteUpdated',
      );
      const note = await staff.data(
        'mutation { createNote(data: { title: "one", owner: "ann", cost: 1 }) { id } }',
      );
      const { id } = note.createNote;
      const patch = (data: string) => staff.data(`mutation { updateNote(id: ${id}, data: ${data}) { id } }`);
      await patch('{ title: "two" }');
      await patch('{ owner: "carl" }');
      await patch('{ title: "unseen" }');
      await patch('{ team_id: 1 }');
      await patch('{ team_id: null, title: "gone" }');
      await patch('{ owner: "ann", title: "back" }');
      await staff.data(`mutation { deleteNote(id: ${id}) }`);
      const row = (title: string, lead?: string) => ({ title, team: lead === undefined ? null : { lead } });
      assert.deepEqual(await ofAnn(5), [
        { type: 'created', key: { id }, row: row('one') },
        { type: 'updated', key: { id }, row: row('two') },
        { type: 'deleted', key: { id }, row: null },
        { type: 'updated', key: { id }, row: row('back') },
        { type: 'deleted', key: { id }, row: row('back') },
      ]);
      assert.deepEqual(await ofBob(2), [
        { type: 'updated', key: { id }, row: row('unseen', 'bob') },
        { type: 'deleted', key: { id }, row: null },
      ]);
      assert.equal((await ofStaff(8)).length, 8);
      assert.deepEqual(await gone(2), [{ id }, { id }]);
      assert.deepEqual(await titled(1), [{ title: 'back', owner: 'ann' }]);
    });

    test('neither name hidden columns nor relations of which nothing may be read', async () => {
      await using world = await open(LED, 'all');
      const staff = await world.caller('staff', { sub: 'staff', scope: 'staff' });
      const ann = await world.caller('ann', { sub: 'ann' });
      using byAnn = subscriber(world, ann);
      using byStranger = subscriber(world, world.anonymous);
      const code = async (client: ReturnType<typeof subscriber>, query: string) => {
        try {
          const { value } = await client.iterate(query).next();
          return value.errors[0].extensions.code;
        } catch (errors) {
          return (errors as readonly { extensions: { code: string } }[])[0]?.extensions.code;
        }
      };
      assert.equal(
        await code(byAnn, 'subscription { noteCreated(where: { cost: { gt: 1 } }) { id } }'),
        'NOT_ALLOWED',
      );
      assert.equal(await code(byAnn, 'subscription { hiddenOneCreated { text } }'), 'NOT_ALLOWED');
      assert.equal(await code(byStranger, 'subscription { hiddenOneCreated { text } }'), 'UNAUTHORIZED');
      assert.equal(await code(byStranger, 'subscription { noteCreated { titel } }'), 'UNAUTHORIZED');
      for (const query of [
        'subscription { noteCreated { cost } }',
        'subscription { notesChanged { row { title cost } } }',
        'subscription { teamCreated { notes { c: cost } } }',
      ])
        assert.equal(await code(byAnn, query), 'NOT_ALLOWED', query);
      const teams = await byStranger.follow('subscription { teamCreated { lead } }', 'teamCreated');
      await staff.data('mutation { createTeam(data: { lead: "x" }) { id } }');
      assert.deepEqual(await teams(1), [{ lead: 'x' }]);
    });
  });
}
