import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readRelations } from '../../src/config/schema/relations.ts';
import type { Relation } from '../../src/relations/relation.ts';
import { relationDoors } from '../support/relations/relation-door.ts';

function declared(data: unknown): readonly Relation[] {
  const problems: string[] = [];
  const relations = readRelations({ value: data, path: 'relations' }, problems);
  assert.deepEqual(problems, []);
  return relations;
}

/** Devices that keep their owner, notes that go with theirs, and shelves that forget theirs. */
const OWNED = declared({
  devices: { columns: { owner: { type: 'reference', to: 'users' }, label: { type: 'text', max: 20 } } },
  notes: {
    columns: {
      author: { type: 'reference', to: 'users', onDelete: 'cascade' },
      device: { type: 'reference', to: 'devices', nullable: true },
    },
  },
  shelves: {
    one: 'shelf',
    columns: { keeper: { type: 'reference', to: 'users', onDelete: 'null', nullable: true } },
  },
});

const PROBLEMS = { accept: 'application/problem+json' };

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`users as a relation on ${engine}`, () => {
    async function openWithUsers(...names: readonly string[]) {
      const door = await open(OWNED);
      for (const name of names) {
        const created = await door.send('POST', '/users', { name, email: `${name}@example.com` });
        assert.equal(created.text, '{"status":"success","message":"User created successfully"}');
      }
      return door;
    }

    test('a reference to a user needs the user', async () => {
      await using door = await openWithUsers('Ann');
      const stored = await door.send('POST', '/devices', { owner_id: 1, label: 'a' });
      assert.equal(stored.text, '{"id":1,"owner_id":1,"label":"a"}');
      const refused = await door.send('POST', '/devices', { owner_id: 2, label: 'b' });
      assert.deepEqual([refused.status, refused.body.code], [409, 'REFERENCE_MISSING']);
      assert.equal(refused.body.detail, 'users has no row with this key (owner_id)');
      const changed = await door.send('PATCH', '/devices/1', { owner_id: 3 });
      assert.equal(changed.body.code, 'REFERENCE_MISSING');
    });

    test('a user whom rows refer to is not deleted, and others of the same moment are', async () => {
      await using door = await openWithUsers('Ann', 'Bob', 'Cid', 'Dan');
      for (const owner of [2, 4]) await door.send('POST', '/devices', { owner_id: owner, label: 'x' });
      const replies = await Promise.all([1, 2, 3, 4].map((id) => door.send('DELETE', `/delete/${id}`)));
      assert.deepEqual(
        replies.map(({ status, text }) => [status, text]),
        [1, 2, 3, 4].map((id) =>
          id % 2 === 1
            ? [200, '{"status":"success","message":"User deleted successfully"}']
            : [409, '{"status":"error","message":"Failed to delete user"}'],
        ),
      );
      assert.equal(replies[1]?.headers.get('x-error-code'), 'REFERENCED');
      const explained = await door.send('DELETE', '/delete/2', undefined, PROBLEMS);
      assert.equal(explained.body.detail, 'Rows of devices refer to this user');
      const { etag = '' } = Object.fromEntries((await door.get('/users/2')).headers);
      const conditional = await door.send('DELETE', '/delete/2', undefined, { 'if-match': etag });
      assert.deepEqual([conditional.status, conditional.headers.get('x-error-code')], [409, 'REFERENCED']);
      assert.equal((await door.send('DELETE', '/devices/1')).status, 204);
      assert.equal((await door.send('DELETE', '/delete/2')).status, 200);
    });

    test('rows go with their user, or forget the user, and what they keep is kept', async () => {
      await using door = await openWithUsers('Ann', 'Bob');
      await door.send('POST', '/notes', [{ author_id: 1 }, { author_id: 2 }, { author_id: 1 }]);
      await door.send('POST', '/shelves', [{ keeper_id: 1 }, { keeper_id: 2 }]);
      assert.equal((await door.send('DELETE', '/delete/1')).status, 200);
      assert.equal((await door.get('/notes')).text, '[{"id":2,"author_id":2,"device_id":null}]');
      assert.equal((await door.get('/shelves')).text, '[{"id":1,"keeper_id":null},{"id":2,"keeper_id":2}]');
    });

    test('users have the paths and the bytes of the contract beside relations', async () => {
      await using door = await openWithUsers('Ann');
      assert.equal(
        (await door.get('/users/1')).text,
        '{"status":"success","data":{"id":1,"name":"Ann","email":"Ann@example.com"}}',
      );
      assert.equal((await door.send('PATCH', '/users/1', {})).status, 405);
      assert.equal((await door.send('OPTIONS', '/users')).headers.get('allow'), 'GET, HEAD, POST, OPTIONS');
    });

    test('filters and orders go over references to users', async () => {
      await using door = await openWithUsers('Ann', 'bob', 'Cid');
      for (const [owner, label] of [
        [2, 'a'],
        [1, 'b'],
        [3, 'c'],
        [2, 'd'],
      ] as const)
        await door.send('POST', '/devices', { owner_id: owner, label });
      const labels = async (query: string) => {
        const reply = await door.get(`/devices?${query}`);
        assert.equal(reply.status, 200, reply.text);
        return (reply.body as readonly { readonly label: string }[]).map(({ label }) => label).join('');
      };
      assert.equal(await labels('owner.name=BOB'), 'ad', 'names are compared as in lists of users');
      assert.equal(await labels('owner.email:prefix=ann'), 'b');
      assert.equal(await labels('owner.id:gt=1&label:not=a'), 'cd');
      assert.equal(await labels('sort=owner.name,-label'), 'bdac');
      assert.equal(await labels('sort=-owner.name'), 'cdab');
      assert.equal(await labels(`where=${encodeURIComponent('{"owner":{"name":{"contains":"n"}}}')}`), 'b');
      assert.equal(
        await labels(`where=${encodeURIComponent('{"owner":{"devices":{"some":{"label":"d"}}}}')}`),
        'ad',
        'over the inverse of users',
      );
      const page = await door.get('/devices?sort=owner.name&limit=2');
      assert.equal(page.body.map(({ label }: { readonly label: string }) => label).join(''), 'ba');
      const next = await door.get(page.links.next ?? '');
      assert.equal(next.body.map(({ label }: { readonly label: string }) => label).join(''), 'dc');
      const unknown = await door.get('/devices?owner.nam=x');
      assert.deepEqual([unknown.status, unknown.body.code], [400, 'INVALID_PARAMETER']);
      assert.match(unknown.body.detail, /names "nam", which users does not have; did you mean name\?/);
    });
  });
}

test('the tables of a declaration refer to the table of users, which they leave as it is', () => {
  const users = OWNED.find(({ name }) => name === 'users');
  assert.deepEqual(
    users?.inverses.map(({ name }) => name),
    ['devices', 'notes', 'shelves'],
  );
  assert.equal(users?.columns.map(({ name }) => name).join(), 'id,name,email');
  const alone = declared({ devices: { columns: { label: { type: 'text' } } } });
  assert.deepEqual(
    alone.map(({ name }) => name),
    ['devices'],
    'no reference, no relation of users',
  );
});
