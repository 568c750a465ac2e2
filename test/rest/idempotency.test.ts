import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { postgresDatabase, withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { proofCount } from '../support/proof-settings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { idsOf, open as openDoor, type RestDoor, restDoors } from './support/rest-door.ts';

const ADA = { name: 'Ada', email: 'ada@example.com' };
const KILLS = proofCount('PORTICO_PROOF_CREATE_KILLS', 3);

const post = (door: RestDoor, key: string, body: unknown = ADA, prefer = '') =>
  door.send('POST', '/users', { headers: { 'idempotency-key': key, prefer }, body });

for (const [engine, open] of Object.entries(restDoors)) {
  describe(`creates on ${engine}`, () => {
    test('a create tells the ETag of the user, and the user where it is asked for', async () => {
      await using door = await open();
      const plain = await door.send('POST', '/users', { body: ADA });
      assert.equal(plain.text, '{"status":"success","message":"User created successfully"}');
      const asked = await door.send('POST', '/users', {
        body: ADA,
        headers: { prefer: 'return=representation' },
      });
      assert.equal(
        asked.text,
        '{"status":"success","message":"User created successfully","data":{"id":2,"name":"Ada","email":"ada@example.com"}}',
      );
      assert.equal(asked.headers.get('preference-applied'), 'return=representation');
      for (const { headers } of [plain, asked]) {
        assert.equal(
          (await door.get(headers.get('location') ?? '')).headers.get('etag'),
          headers.get('etag'),
        );
      }
    });

    test('with the same key and body a create counts once and is answered alike, after a restart too', async () => {
      await using door = await open();
      const first = await post(door, '"8e03978e-40d5-43dd-bc93-6894a57f9324"', ADA, 'return=representation');
      await door.send('PUT', '/update/1', { body: { ...ADA, name: 'Changed' } });
      await door.service.restart();
      const again = await post(door, '8e03978e-40d5-43dd-bc93-6894a57f9324', ADA, 'return=representation');
      for (const field of ['location', 'etag'])
        assert.equal(again.headers.get(field), first.headers.get(field));
      assert.deepEqual([again.status, again.text], [200, first.text]);
      const other = await post(door, '8e03978e-40d5-43dd-bc93-6894a57f9324', { ...ADA, name: 'Eva' });
      assert.deepEqual([other.status, other.headers.get('x-error-code')], [422, 'IDEMPOTENCY_KEY_REUSED']);
      assert.equal(other.body.message, 'Failed to create user');
      const invalid = await post(door, 'b', { name: '' });
      assert.equal(invalid.status, 400);
      assert.equal((await post(door, 'b')).status, 200, 'a refusal is not kept');
      for (const key of ['', ' ', 'x'.repeat(256), '"a b"']) {
        assert.equal((await post(door, key)).headers.get('x-error-code'), 'INVALID_IDEMPOTENCY_KEY', key);
      }
      assert.equal((await post(door, 'x'.repeat(255))).status, 200);
      assert.equal(idsOf(await door.get('/users')).length, 3);
    });

    test('an outcome that has expired is forgotten', async () => {
      await using door = await open();
      await post(door, 'a');
      const clock = Date.now;
      try {
        Date.now = () => clock() + 25 * 3_600_000;
        assert.equal((await post(door, 'a', { ...ADA, name: 'Eva' })).status, 200);
      } finally {
        Date.now = clock;
      }
      assert.equal(idsOf(await door.get('/users')).length, 2);
    });

    test('of requests with one key at the same time one creates, the others get its answer or a 409', async () => {
      await using door = await open();
      for (let round = 0; round < 5; round++) {
        const replies = await Promise.all(Array.from({ length: 8 }, () => post(door, `key-${round}`)));
        const taken = replies.filter(({ status }) => status === 200);
        assert.ok(taken.length > 0);
        assert.equal(new Set(taken.map(({ headers }) => headers.get('location'))).size, 1);
        for (const { status, headers } of replies) {
          if (status !== 200)
            assert.deepEqual([status, headers.get('x-error-code')], [409, 'IDEMPOTENCY_KEY_IN_USE']);
        }
      }
      assert.equal(idsOf(await door.get('/users')).length, 5);
    });
  });
}

test('replicas on one database create once per key, and take the cursors and tags of each other', {
  skip: withoutPostgres ?? false,
}, async () => {
  const DATABASE_URL = await postgresDatabase();
  await using one = await openDoor({ DATABASE_URL });
  await using two = await openDoor({ DATABASE_URL });
  for (let round = 0; round < 10; round++) {
    const replies = await Promise.all([one, two, one, two].map((door) => post(door, `key-${round}`)));
    const taken = replies.filter(({ status }) => status === 200);
    assert.equal(new Set(taken.map(({ headers }) => headers.get('location'))).size, 1);
    assert.ok(replies.every(({ status }) => status === 200 || status === 409));
    assert.equal(
      (await post(two, `key-${round}`)).headers.get('location'),
      taken[0]?.headers.get('location'),
    );
  }
  const page = await one.get('/users?limit=4');
  assert.deepEqual(idsOf(await two.get(page.links.next ?? '')).length, 4);
  const known = { 'if-none-match': page.headers.get('etag') ?? '' };
  assert.equal((await two.get('/users?limit=4', known)).status, 304);
  await one.create('late', 'a@b');
  assert.equal((await two.get('/users?limit=4', known)).status, 200);
  assert.equal(idsOf(await one.get('/users')).length, 11);
});

const places = {
  sqlite: async (folder: string) => `sqlite:${join(folder, 'portico.db')}`,
  ...(withoutPostgres === undefined ? { postgres: postgresDatabase } : {}),
};

const RELATIONS = { notes: { columns: { name: { type: 'text', max: 20 } } } };
/** What a client creates with a key: users, rows, arrays of rows and batches, whose names begin with the key. */
const CREATES: readonly (readonly [
  path: string,
  count: 1 | 2,
  body: (names: readonly string[]) => unknown,
])[] = [
  ['/users', 1, ([name]) => ({ name, email: 'a@b' })],
  ['/notes', 1, ([name]) => ({ name })],
  ['/notes', 2, (names) => names.map((name) => ({ name }))],
  [
    '/_batch',
    2,
    (names) => ({ writes: names.map((name) => ({ method: 'POST', path: '/notes', body: { name } })) }),
  ],
];

for (const [engine, place] of Object.entries(places)) {
  test(`a client that repeats its creates over kills has each user, row and batch once on ${engine}`, async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify({ relations: RELATIONS }));
    const env = { DATABASE_URL: await place(folder.path), INTERFACES: 'rest' };
    const wanted = new Map<string, string | undefined>();
    let url = '';
    const createOf = (key: string) => {
      const [path, count, bodyOf] = CREATES[Number(key.split('-')[1]) % CREATES.length] ?? assert.fail();
      const names = [key, `${key}+`].slice(0, count);
      return { path, names, body: bodyOf(names) };
    };
    const create = async (key: string) => {
      const { path, body } = createOf(key);
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'idempotency-key': key },
        body: JSON.stringify(body),
      });
      const text = await response.text();
      return response.ok ? `${response.headers.get('location')} ${text}` : undefined;
    };
    for (let round = 0; round <= KILLS; round++) {
      await using portico = startPortico({ cwd: folder.path, env });
      await portico.ready();
      url = portico.urls.rest ?? '';
      // Those that got no answer are sent again; what was answered stays so.
      for (const [key, reply] of wanted) {
        const again = await waitFor('an answer', () => create(key));
        if (reply !== undefined) assert.equal(again, reply, key);
        wanted.set(key, again);
      }
      if (round === KILLS) break;
      const keys = Array.from({ length: 60 }, (_, i) => `${round}-${i}`);
      let answered = 0;
      const sent = keys.map(async (key, i) => {
        wanted.set(key, undefined);
        // More and more are in progress when the first are answered.
        if (i >= 20) await new Promise((resolve) => setImmediate(resolve));
        const reply = await create(key).catch(() => undefined);
        wanted.set(key, reply);
        if (reply !== undefined && ++answered === 10) portico.child.kill('SIGKILL');
      });
      await Promise.all(sent);
      await portico.exited();
    }
    await using portico = startPortico({ cwd: folder.path, env });
    await portico.ready();
    const read = async (path: string) => (await fetch(`${portico.urls.rest}${path}`)).json();
    const users = ((await read('/users')) as { data: { name: string }[] }).data;
    const notes = (await read('/notes?limit=1000')) as { name: string }[];
    const expected = [...wanted.keys()].flatMap((key) => createOf(key).names);
    assert.deepEqual([...users, ...notes].map(({ name }) => name).toSorted(), expected.toSorted());
  });
}
