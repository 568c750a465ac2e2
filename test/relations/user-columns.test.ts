import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readRelations } from '../../src/config/schema/relations.ts';
import type { Relation } from '../../src/relations/relation.ts';
import { usersApi } from '../../src/rest/api/relations-api.ts';
import { restApi } from '../../src/rest/api/rest-api.ts';
import { type RelationDoor, relationDoors } from '../support/relations/relation-door.ts';

function problemsOf(data: unknown): readonly string[] {
  const problems: string[] = [];
  readRelations({ value: data, path: 'relations' }, problems);
  return problems;
}

function declared(data: unknown): readonly Relation[] {
  assert.deepEqual(problemsOf(data), []);
  return readRelations({ value: data, path: 'relations' }, []);
}

const COLUMNS = {
  phone: { type: 'text', max: 8, nullable: true },
  level: { type: 'integer', min: 0, default: 1 },
  badge: { type: 'text', max: 4, nullable: true, unique: true },
  team: { type: 'reference', to: 'teams', nullable: true },
  manager: { type: 'reference', to: 'users', inverse: 'reports', nullable: true, onDelete: 'null' },
};
const STAFF = declared({
  users: { columns: COLUMNS, indexes: [['phone']] },
  teams: { columns: { label: { type: 'text', max: 20 } } },
  devices: {
    columns: {
      owner: { type: 'reference', to: 'users', onDelete: 'cascade' },
      label: { type: 'text', max: 9 },
    },
  },
});

const PROBLEMS = { accept: 'application/problem+json' };
const PATCH = { 'content-type': 'application/merge-patch+json' };
const CREATED = '{"status":"success","message":"User created successfully"}';
const UPDATED = '{"status":"success","message":"User updated successfully"}';

const user = (name: string, more: object = {}) => ({ name, email: `${name}@example.com`, ...more });
const row = async (door: RelationDoor, id: number) =>
  (await door.get(`/users/${id}?fields=*,phone,level,badge,team_id,manager_id`)).body.data as unknown;
const names = async (door: RelationDoor, query: string) => {
  const reply = await door.get(`/users?${query}`);
  assert.equal(reply.status, 200, reply.text);
  return (reply.body.data as readonly { readonly name: string }[]).map(({ name }) => name).join();
};

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`columns of users on ${engine}`, () => {
    test('they are written and read when named, and the bytes of the contract stay', async () => {
      await using door = await open(STAFF, { isMigrated: true });
      await door.send('POST', '/teams', { label: 'blue' });
      const created = await door.send('POST', '/users', user('Ann', { phone: '123', team_id: 1, other: 1 }));
      assert.deepEqual([created.status, created.text], [200, CREATED]);
      assert.equal(created.headers.get('location'), '/users/1');
      assert.equal((await door.send('POST', '/users', user('Bob'))).text, CREATED);
      assert.deepEqual(await row(door, 1), {
        ...user('Ann'),
        id: 1,
        phone: '123',
        level: 1,
        badge: null,
        team_id: 1,
        manager_id: null,
      });
      assert.deepEqual(await row(door, 2), {
        ...user('Bob'),
        id: 2,
        phone: null,
        level: 1,
        badge: null,
        team_id: null,
        manager_id: null,
      });
      assert.equal(
        (await door.get('/users/1?fields=phone,id')).text,
        '{"status":"success","data":{"id":1,"phone":"123"}}',
      );
      assert.equal(
        (await door.get('/users/1')).text,
        '{"status":"success","data":{"id":1,"name":"Ann","email":"Ann@example.com"}}',
      );
      assert.equal(
        (await door.get('/users')).text,
        '{"status":"success","data":[{"id":1,"name":"Ann","email":"Ann@example.com"},{"id":2,"name":"Bob","email":"Bob@example.com"}]}',
      );
      const etag = created.headers.get('etag');
      const read = await door.get('/users/1?fields=*,phone');
      assert.equal(read.headers.get('etag'), etag);
      assert.equal((await door.get('/users/1?fields=*,phone', { 'if-none-match': etag ?? '' })).status, 304);
      const gone = await door.get('/users/9?fields=*,phone');
      assert.deepEqual([gone.status, gone.text], [200, '{"status":"error","message":"User not found"}']);
      assert.equal(
        (await door.get('/users/1?fields=*,fax')).headers.get('x-error-code'),
        'INVALID_PARAMETER',
      );
      const shown = await door.send('POST', '/users', user('Cid', { phone: '1' }), {
        prefer: 'return=representation, handling=strict',
      });
      assert.deepEqual([shown.status, shown.body.data], [201, { id: 3, ...user('Cid') }]);
    });

    test('a change leaves out what it does not name', async () => {
      await using door = await open(STAFF, { isMigrated: true });
      await door.send('POST', '/users', user('Ann', { phone: '123', level: 5 }));
      assert.equal((await door.send('PUT', '/update/1', user('Anna'))).text, UPDATED);
      const base = { id: 1, badge: null, team_id: null };
      assert.deepEqual(await row(door, 1), {
        ...base,
        ...user('Anna'),
        phone: '123',
        level: 5,
        manager_id: null,
      });
      const put = await door.send('PUT', '/update/1', user('Ann', { level: 7 }));
      assert.deepEqual([put.status, put.text], [200, UPDATED]);
      const patched = await door.send('PUT', '/update/1', { phone: null, manager_id: 1 }, PATCH);
      assert.deepEqual([patched.status, patched.text], [200, UPDATED]);
      assert.deepEqual(await row(door, 1), { ...base, ...user('Ann'), phone: null, level: 7, manager_id: 1 });
      const etag = patched.headers.get('etag') ?? '';
      assert.equal((await door.get('/users/1')).headers.get('etag'), etag);
      const ok = await door.send('PUT', '/update/1', { level: 8 }, { ...PATCH, 'if-match': etag });
      assert.equal(ok.text, UPDATED);
      const late = await door.send('PUT', '/update/1', { level: 9 }, { ...PATCH, 'if-match': etag });
      assert.equal(late.status, 412);
      assert.equal((await door.send('PUT', '/update/8', { level: 9 }, PATCH)).status, 404);
    });

    test('all faults of a body come at once, and conflicts say which columns', async () => {
      await using door = await open(STAFF, {
        isMigrated: true,
        userIndexes: { search: 'keys', uniqueEmail: true },
      });
      const wrong = await door.send(
        'POST',
        '/users',
        { name: '', email: 'x', phone: '123456789', level: null },
        PROBLEMS,
      );
      assert.deepEqual([wrong.status, wrong.body.code], [400, 'INVALID_USER']);
      assert.deepEqual(wrong.body.errors, [
        { detail: '"name" is empty', pointer: '#/name' },
        { detail: '"email" needs an @ between other characters', pointer: '#/email' },
        { detail: '"phone" must have at most 8 characters', pointer: '#/phone' },
        { detail: '"level" must not be null', pointer: '#/level' },
      ]);
      const plain = await door.send('POST', '/users', user('Ann', { level: -1 }));
      assert.deepEqual(
        [plain.status, plain.text],
        [400, '{"status":"error","message":"Failed to create user"}'],
      );
      assert.equal((await door.send('POST', '/users', user('Ann', { badge: 'a' }))).status, 200);
      const codes = async (body: object) => {
        const reply = await door.send('POST', '/users', body, PROBLEMS);
        return [
          reply.status,
          reply.body.code,
          (reply.body.errors ?? []).map((each: { pointer: string }) => each.pointer),
        ];
      };
      assert.deepEqual(await codes(user('ann', { level: 2 })), [409, 'EMAIL_TAKEN', ['#/email']]);
      assert.deepEqual(await codes(user('Bob', { badge: 'a' })), [409, 'TAKEN', ['#/badge']]);
      assert.deepEqual(await codes(user('Bob', { team_id: 4 })), [409, 'REFERENCE_MISSING', ['#/team_id']]);
      const changed = await door.send('PUT', '/update/1', { manager_id: 5 }, { ...PATCH, ...PROBLEMS });
      assert.deepEqual([changed.status, changed.body.code], [409, 'REFERENCE_MISSING']);
      assert.equal((await door.get('/users')).body.data.length, 1);
    });

    test('a create with a key is made once', async () => {
      await using door = await open(STAFF, { isMigrated: true });
      const key = { 'idempotency-key': 'k' };
      const first = await door.send('POST', '/users', user('Ann', { phone: '1' }), key);
      const again = await door.send('POST', '/users', user('Ann', { phone: '1' }), key);
      assert.deepEqual([again.text, again.headers.get('location')], [first.text, '/users/1']);
      assert.equal(again.headers.get('etag'), first.headers.get('etag'));
      for (const body of [user('Ann'), user('Ann', { phone: '2' })])
        assert.equal(
          (await door.send('POST', '/users', body, key)).headers.get('x-error-code'),
          'IDEMPOTENCY_KEY_REUSED',
        );
      assert.equal((await door.get('/users')).body.data.length, 1);
    });

    test('lists filter and sort by them, by references and by inverses, with links and counts', async () => {
      await using door = await open(STAFF, { isMigrated: true });
      await door.send('POST', '/teams', [{ label: 'blue' }, { label: 'red' }]);
      for (const [i, name] of ['Ann', 'Bob', 'Cid', 'Dan'].entries())
        await door.send(
          'POST',
          '/users',
          user(name, {
            phone: `p${i}`,
            level: 9 - i,
            team_id: (i % 2) + 1,
            ...(i > 1 ? { manager_id: 1 } : {}),
          }),
        );
      await door.send('POST', '/devices', [
        { owner_id: 1, label: 'x' },
        { owner_id: 3, label: 'y' },
      ]);
      assert.equal(await names(door, 'phone=p1'), 'Bob');
      assert.equal(await names(door, 'phone:gte=p1&name:prefix=b'), 'Bob');
      assert.equal(await names(door, 'sort=-phone'), 'Dan,Cid,Bob,Ann');
      assert.equal(await names(door, 'sort=level&limit=2'), 'Dan,Cid');
      assert.equal(await names(door, 'team.label=blue'), 'Ann,Cid');
      assert.equal(await names(door, 'devices.label=x'), 'Ann');
      assert.equal(await names(door, 'manager.name=ann&sort=-name'), 'Dan,Cid');
      assert.equal(await names(door, 'reports.name=Dan'), 'Ann');
      assert.equal(await names(door, `where=${encodeURIComponent('{"devices":{"none":{}}}')}`), 'Bob,Dan');
      const page = await door.get('/users?fields=*,phone&sort=-level&limit=3', { prefer: 'count=exact' });
      assert.equal(page.headers.get('x-total-count'), '4');
      assert.deepEqual(page.body.data[0], { id: 1, ...user('Ann'), phone: 'p0' });
      assert.equal(page.body.status, 'success');
      assert.match(page.links.next ?? '', /^\/users\?fields=/);
      assert.deepEqual((await door.get(page.links.next ?? '')).body.data, [
        { id: 4, ...user('Dan'), phone: 'p3' },
      ]);
      const wrong = await door.get('/users?phone:lessthan=1');
      assert.deepEqual([wrong.status, wrong.headers.get('x-error-code')], [400, 'INVALID_PARAMETER']);
      assert.match(wrong.body.message, /^"phone:lessthan" has no test "lessthan"/);
      assert.equal((await door.get('/users?fone=1')).headers.get('x-error-code'), 'UNKNOWN_PARAMETER');
      assert.equal((await door.get('/devices?owner.phone=p2')).text, '[{"id":2,"owner_id":3,"label":"y"}]');
    });

    test('imports take them, and exports have them when named', async () => {
      await using door = await open(STAFF, {
        isMigrated: true,
        userIndexes: { search: 'keys', uniqueEmail: true },
      });
      const lines = [
        user('Ann', { phone: '1', level: 3, other: 1 }),
        user('Bob'),
        user('ann', { phone: '2' }),
        { name: ' ', email: 'x', phone: 7 },
        user('Cid', { team_id: 9 }),
        7,
      ];
      const ndjson = { 'content-type': 'application/x-ndjson', 'idempotency-key': 'k' };
      const body = lines.map((line) => JSON.stringify(line)).join('\n');
      const report = await door.send('POST', '/users', body, ndjson);
      const told = report.text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { readonly id?: number; readonly code?: string });
      assert.deepEqual(
        told.map(({ id, code }) => id ?? code),
        [1, 2, 'EMAIL_TAKEN', 'INVALID_USER', 'REFERENCE_MISSING', 'INVALID_USER', undefined],
        report.text,
      );
      assert.match(report.text, /"name\\" is blank; \\"email\\" needs an @/);
      assert.deepEqual(told.at(-1), { created: 2, refused: 4 });
      const csv = 'Email,name,level,phone\r\nDan@x,Dan,4,"4"\r\nEve,Eve,5,\r\n';
      const second = await door.send('POST', '/users', csv, { 'content-type': 'text/csv' });
      assert.match(second.text, /^\{"line":2,"id":\d+\}\n\{"line":3,"code":"INVALID_USER"/);
      const wrong = await door.send('POST', '/users', 'name,email,fax\n', { 'content-type': 'text/csv' });
      assert.equal(wrong.headers.get('x-error-code'), 'INVALID_IMPORT');
      const whole = await door.send('POST', '/users', [user('Fay', { level: 1 }), user('Bob')], {
        prefer: 'transaction=all',
        'content-type': 'application/json',
      });
      assert.equal(whole.headers.get('x-error-code'), 'EMAIL_TAKEN');
      const exported = await door.get('/users?fields=name,phone,level&level:gt=1', { accept: 'text/csv' });
      assert.equal(exported.text, 'name,phone,level\r\n"Ann","1",3\r\n"Dan","4",4\r\n');
      const plain = await door.get('/users', { accept: 'text/csv' });
      assert.match(plain.text, /^id,name,email\r\n1,"Ann","Ann@example.com"\r\n/);
    });

    test('a user who goes takes rows along, and is forgotten by others', async () => {
      await using door = await open(STAFF, { isMigrated: true });
      await door.send('POST', '/users', user('Ann'));
      await door.send('POST', '/users', user('Bob', { manager_id: 1 }));
      await door.send('POST', '/devices', { owner_id: 1, label: 'x' });
      assert.equal((await door.send('DELETE', '/delete/1')).status, 200);
      assert.equal(
        (await door.get('/users/2?fields=manager_id')).text,
        '{"status":"success","data":{"manager_id":null}}',
      );
      assert.equal((await door.get('/devices')).text, '[]');
    });
  });
}

test('users take columns and indexes that old users can have', () => {
  const users = (columns: object, more: object = {}) => problemsOf({ users: { columns, ...more } });
  const phone = { type: 'text', max: 30, nullable: true };
  assert.deepEqual(
    users(
      { phone },
      {
        indexes: [
          ['phone', 'id'],
          ['name', 'phone'],
        ],
      },
    ),
    [],
  );
  assert.deepEqual(users({ phone }, { key: ['phone'], unique: [['phone']], table: 'people' }), [
    'relations.users.key is not possible for users, which take columns and indexes',
    'relations.users.unique is not possible for users, which take columns and indexes',
    'relations.users.table is not possible for users, which take columns and indexes',
  ]);
  assert.deepEqual(
    users({
      email: phone,
      version: phone,
      age: { type: 'integer' },
      made: { type: 'timestamp', default: 'now' },
      code: { type: 'text', max: 3, default: 'x', unique: true },
      boss: { type: 'reference', to: 'users' },
    }),
    [
      'relations.users.columns.email is a column of users already; rename it',
      'relations.users.columns.version is a column of users already; rename it',
      'relations.users.columns.age must be nullable or have a default, because users exist without it',
      'relations.users.columns.code.unique goes with nullable, not with a default, which several users would have',
      'relations.users.columns.boss must be nullable or have a default, because users exist without it',
      'relations.users.columns.made.default must be a value, because users are also created without the column',
    ],
  );
  assert.deepEqual(users({ phone: { ...phone, nulable: true } }), [
    'relations.users.columns.phone has an unknown key "nulable"; did you mean nullable?',
  ]);
});

test('the description of users has their columns only if a declaration adds some', () => {
  const users = STAFF.find(({ name }) => name === 'users');
  const described = (api: object) =>
    JSON.parse(JSON.stringify(restApi('', undefined, api))) as {
      readonly schemas: {
        readonly NewUser: { readonly properties: object; readonly required: readonly string[] };
      };
      readonly paths: { readonly '/update/{id}': { readonly put: { readonly refusals: readonly string[] } } };
    };
  const { schemas, paths } = described(usersApi(users));
  assert.deepEqual(Object.keys(schemas.NewUser.properties), [
    'name',
    'email',
    'phone',
    'level',
    'badge',
    'team_id',
    'manager_id',
  ]);
  assert.deepEqual(schemas.NewUser.required, ['name', 'email']);
  assert.ok(paths['/update/{id}'].put.refusals.includes('REFERENCE_MISSING'));
  assert.deepEqual(described(usersApi(undefined)), described({}));
});
