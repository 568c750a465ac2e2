import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { idsOf, type RestDoor, restDoors } from './support/rest-door.ts';

/** Names that a locale would sort otherwise, equal ones, and such that differ in case alone. */
const PEOPLE = [
  ['bob', 'bob@example.com'],
  ['Ada', 'ADA@Example.com'],
  ['ada', 'lovelace@example.org'],
  ['Zoë', 'zoe@example.com'],
  ['Éva', 'eva@example.org'],
  ['zed', 'z%d_@example.com'],
  ['Bob', 'robert@example.org'],
  ['éva', 'second@example.org'],
  ['bobby', 'Bob2@example.com'],
  ['ada', 'third@example.net'],
] as const;

/** A door with these people, for some tests of which the last ones change them. */
async function openWithPeople(open: () => Promise<RestDoor>): Promise<RestDoor> {
  const door = await open();
  for (const [name, email] of PEOPLE) await door.create(name, email);
  return door;
}

/** The ids of all pages, and the ids on the way back. */
async function walk(door: RestDoor, path: string): Promise<readonly (readonly number[])[]> {
  const there: (readonly number[])[] = [];
  const back: (readonly number[])[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const reply = await door.get(next);
    assert.equal(reply.status, 200, reply.text);
    there.push(idsOf(reply));
    if (reply.links.next === undefined) {
      for (let prev: string | undefined = next; prev !== undefined; ) {
        const page = await door.get(prev);
        back.push(idsOf(page));
        prev = page.links.prev;
      }
    }
    next = reply.links.next;
  }
  assert.deepEqual(back.toReversed(), there, `${path} backwards`);
  return there;
}

const folded = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
const bytes = (text: string) => Buffer.from(folded(text)).toString('hex');

/** What each filter must find, by a look at all users. */
const FILTERS: Readonly<Record<string, (name: string, email: string, id: number) => boolean>> = {
  'name=ADA': (name) => folded(name) === 'ada',
  'name=ada&name=bob': (name) => ['ada', 'bob'].includes(folded(name)),
  'email=ada@example.com': (_, email) => folded(email) === 'ada@example.com',
  'id=2&id=9&id=77': (_, _email, id) => [2, 9].includes(id),
  'name:prefix=B': (name) => folded(name).startsWith('b'),
  'email:prefix=bob': (_, email) => folded(email).startsWith('bob'),
  'email:contains=EXAMPLE.ORG': (_, email) => email.includes('example.org'),
  'name:contains=%C3%89va': (name) => name.includes('Éva'),
  'email:contains=z%25d_': (_, email) => email.includes('z%d_'),
  'q=ob': (name, email) => /ob/i.test(name + email),
  'q=bob': (name, email) => /bob/i.test(name) || /bob/i.test(email),
  'name=ada&email:prefix=third': (name, email) => name === 'ada' && email.startsWith('third'),
  'name:prefix=b&email:contains=example.com&id=1&id=7&id=9': (name, email, id) =>
    [1, 7, 9].includes(id) && email.includes('example.com') && /^b/i.test(name),
};

for (const [engine, open] of Object.entries(restDoors)) {
  for (const search of ['none', 'keys', 'text'] as const) {
    describe(`lists on ${engine}, indexed for ${search}`, () => {
      let door: RestDoor;
      before(async () => {
        door = await openWithPeople(() => open({ REST_SEARCH: search }));
      });
      after(() => door[Symbol.asyncDispose]());

      test('pages follow each other in every order, there and back', async () => {
        const all = PEOPLE.map(([name, email], i) => ({ id: i + 1, name, email }));
        for (const sort of [
          'id',
          '-id',
          'name',
          '-name',
          'name,-id',
          'email',
          '-name,email',
          '-email,id',
          'id,name',
        ]) {
          const fields = sort
            .split(',')
            .map((field) => ({ field: field.replace('-', ''), sign: field.startsWith('-') ? -1 : 1 }));
          const last = fields.at(-1)?.sign ?? 1;
          const expected = all
            .toSorted((a, b) => {
              for (const { field, sign } of [...fields, { field: 'id', sign: last }]) {
                const key = (user: (typeof all)[number]) =>
                  field === 'id'
                    ? String(user.id).padStart(3, '0')
                    : bytes(field === 'name' ? user.name : user.email);
                if (key(a) !== key(b)) return (key(a) < key(b) ? -1 : 1) * sign;
              }
              return 0;
            })
            .map(({ id }) => id);
          for (const limit of [3, 100]) {
            const pages = await walk(door, `/users?limit=${limit}&sort=${sort}`);
            assert.deepEqual(pages.flat(), expected, `${sort} by ${limit}`);
            assert.ok(pages.slice(0, -1).every((page) => page.length === limit));
          }
        }
      });

      test('each filter finds what a look at all users finds, page by page and counted', async () => {
        for (const [filter, matches] of Object.entries(FILTERS)) {
          const expected = PEOPLE.flatMap(([name, email], i) => (matches(name, email, i + 1) ? [i + 1] : []));
          assert.ok(expected.length > 0, filter);
          for (const rest of ['', '&limit=1', '&limit=2&sort=-email']) {
            const pages = await walk(door, `/users?${filter}${rest}`);
            assert.deepEqual(
              pages.flat().toSorted((a, b) => a - b),
              expected,
              filter + rest,
            );
          }
          const counted = await door.get(`/users?limit=1&${filter}`, { prefer: 'count=exact' });
          assert.equal(counted.headers.get('x-total-count'), String(expected.length), filter);
        }
      });

      test('users that are changed or removed are found as they are', async () => {
        await door.send('PUT', '/update/1', { body: { name: 'Carol', email: 'carol@example.com' } });
        await door.send('DELETE', '/delete/7');
        const found = async (filter: string) => idsOf(await door.get(`/users?${filter}`));
        assert.deepEqual(await found('name=bob'), []);
        assert.deepEqual(await found('q=carol'), [1]);
        assert.deepEqual(await found('q=robert'), []);
        assert.deepEqual(await found('name:contains=bob'), [9]);
      });

      test('a long text is found as a whole, whatever it begins with', async () => {
        const start = 'Ab\u{1f98a}"'.repeat(20);
        const ids: number[] = [];
        for (const end of ['one', 'two']) {
          ids.push(await door.create(`${start}${end}`, `${'x'.repeat(60)}${end}@example.com`));
        }
        const found = async (filter: string) => idsOf(await door.get(`/users?${filter}`));
        const long = encodeURIComponent(start.toUpperCase());
        assert.deepEqual(await found(`name:contains=${long}`), ids);
        assert.deepEqual(await found(`name:contains=${long}two&sort=-name`), ids.slice(1));
        assert.deepEqual(await found(`name:contains=${long}three`), []);
        assert.deepEqual(await found(`q=${'X'.repeat(40)}ONE`), ids.slice(0, 1));
        assert.deepEqual(await found(`q=${long}one&limit=1`), ids.slice(0, 1));
      });
    });
  }

  describe(`parameters of lists on ${engine}`, () => {
    let door: RestDoor;
    before(async () => {
      door = await openWithPeople(open);
    });
    after(() => door[Symbol.asyncDispose]());

    test('what is unknown or wrong is refused by name, or ignored where the client is lenient', async () => {
      const whole = (await door.get('/users')).text;
      for (const [query, code, message] of [
        ['limits=1', 'UNKNOWN_PARAMETER', 'There is no parameter "limits"; did you mean limit?'],
        [
          'name:prefx=a',
          'UNKNOWN_PARAMETER',
          'There is no parameter "name:prefx"; did you mean name:prefix?',
        ],
        ['limit=0', 'INVALID_PARAMETER', '"limit" takes a whole number from 1 to 1000'],
        ['limit=1001', 'INVALID_PARAMETER', '"limit" takes a whole number from 1 to 1000'],
        ['limit=1&limit=2', 'INVALID_PARAMETER', '"limit" takes one value'],
        ['sort=age', 'INVALID_PARAMETER', /^"sort" takes each of id, name, email at most once/],
        ['sort=id,-id', 'INVALID_PARAMETER', /^"sort" takes/],
        ['fields=name,age', 'INVALID_PARAMETER', /^"fields" takes fields of a user \(id, name, email\)/],
        ['id=x', 'INVALID_PARAMETER', /^"id" takes an id/],
        ['name=', 'INVALID_PARAMETER', /^"name" takes a text/],
        ['q=a&q=b', 'INVALID_PARAMETER', '"q" takes one value'],
        [`${'name=a&'.repeat(101)}`, 'INVALID_PARAMETER', '"name" takes at most 100 values'],
      ] as const) {
        const reply = await door.get(`/users?${query}`);
        assert.equal(reply.status, 400, query);
        assert.equal(reply.headers.get('x-error-code'), code, query);
        if (typeof message === 'string') assert.equal(reply.body.message, message);
        else assert.match(reply.body.message ?? '', message);
        const lenient = await door.get(`/users?${query}`, { prefer: 'return=minimal, handling=lenient' });
        assert.equal(lenient.text, whole, query);
      }
      assert.equal(
        (await door.get('/users/3?fields=email,id')).text,
        '{"status":"success","data":{"id":3,"email":"lovelace@example.org"}}',
      );
      assert.equal((await door.get('/users/3?fields=age')).status, 400);
      assert.equal(
        (await door.get('/users/99?fields=id')).text,
        '{"status":"error","message":"User not found"}',
      );
      const counted = await door.get('/users', { prefer: 'count=exact' });
      assert.deepEqual([counted.text, counted.headers.get('x-total-count')], [whole, '10']);
    });

    test('a cursor outlives a restart, and fits its list only, unchanged', async () => {
      const { links } = await door.get('/users?limit=2&name=ada');
      const next = new URL(links.next ?? '', door.url);
      await door.service.restart();
      assert.deepEqual(idsOf(await door.get(next.pathname + next.search)), [10]);
      const cursor = next.searchParams.get('cursor') ?? '';
      const flipped = `${cursor.slice(0, -1)}${cursor.endsWith('A') ? 'B' : 'A'}`;
      for (const query of [
        `name=bob&cursor=${cursor}`,
        `name=ada&sort=-id&cursor=${cursor}`,
        `cursor=${cursor}`,
        `name=ada&cursor=${flipped}`,
        `name=ada&cursor=${cursor}=`,
        `name=ada&cursor=`,
        `name=ada&cursor=${Buffer.from('[0,1]').toString('base64url')}`,
      ]) {
        const refused = await door.get(`/users?${query}`, { prefer: 'handling=lenient' });
        assert.equal(refused.status, 400, query);
        assert.equal(refused.headers.get('x-error-code'), 'INVALID_CURSOR');
        assert.match(refused.body.message ?? '', /"cursor"/);
      }
    });

    test('the links lead to the pages around, with the same filters', async () => {
      const first = await door.get('/users?limit=4&fields=name');
      assert.deepEqual(Object.keys(first.links), ['next']);
      const second = await door.get(first.links.next ?? '');
      assert.deepEqual(Object.keys(second.links), ['next', 'prev', 'first']);
      assert.equal(
        second.text,
        '{"status":"success","data":[{"name":"Éva"},{"name":"zed"},{"name":"Bob"},{"name":"éva"}]}',
      );
      const last = await door.get(second.links.next ?? '');
      assert.deepEqual(Object.keys(last.links), ['prev', 'first']);
      assert.equal((await door.get(last.links.first ?? '')).text, first.text);
      const head = await door.send('HEAD', '/users?limit=4');
      assert.match(head.headers.get('link') ?? '', /rel="next"/);
      // A page that was emptied meanwhile.
      for (const id of [9, 10]) await door.send('DELETE', `/delete/${id}`);
      assert.deepEqual(idsOf(await door.get(second.links.next ?? '')), []);
    });
  });
}
