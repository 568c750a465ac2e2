import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type RelationDoor, relationDoors } from '../support/relations/relation-door.ts';
import { column, LIBRARY, relation, text } from '../support/relations/relations.ts';

const AMOUNTS = relation('amounts', {
  columns: [
    column('id', { kind: 'serial', open: false }),
    column('whole', { kind: 'integer' }, { nullable: true }),
    column('big', { kind: 'bigint' }, { nullable: true }),
    column('exact', { kind: 'decimal', precision: 18, scale: 3 }, { nullable: true }),
    column('double', { kind: 'number' }, { nullable: true }),
    column('kind', text(10, true), { nullable: true }),
    column('flag', { kind: 'boolean' }, { nullable: true }),
    column('day', { kind: 'date' }, { nullable: true }),
    column('at', { kind: 'timestamp' }, { nullable: true }),
    column('token', { kind: 'uuid' }, { nullable: true }),
    column('raw', { kind: 'bytes', max: 9 }, { nullable: true }),
    column('data', { kind: 'json', maxBytes: 99 }, { nullable: true }),
  ],
});

const ROWS = [
  {
    whole: 9_007_199_254_740_991,
    big: '9223372036854775807',
    exact: '999999999999999.999',
    double: 0.5,
    kind: 'a',
  },
  {
    whole: -7,
    big: '9223372036854775807',
    exact: '999999999999999.999',
    double: 1.25,
    kind: 'A',
    flag: true,
  },
  {
    whole: 0,
    big: '-1',
    exact: '-0.001',
    double: -2,
    kind: 'b',
    day: '2024-02-29',
    at: '2024-02-29T12:30:00.125Z',
  },
  {
    kind: null,
    day: '0001-01-01',
    at: '1969-12-31T23:59:59.999Z',
    token: 'FFffffff-ffff-4fff-8fff-ffffffffffff',
    raw: 'AQ==',
    flag: false,
  },
  {
    whole: 1,
    exact: '0.001',
    kind: 'b',
    token: '00000000-0000-4000-8000-000000000000',
    raw: 'AQ==',
    data: [1],
  },
];

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`aggregates, on ${engine}`, () => {
    const get = async (door: RelationDoor, query: Readonly<Record<string, string>>, path = '/amounts') => {
      const reply = await door.get(`${path}?${new URLSearchParams(query)}`);
      assert.equal(reply.status, 200, reply.text);
      return reply.body;
    };

    test('are exact, whatever the engine', async () => {
      await using door = await open([AMOUNTS]);
      assert.deepEqual(
        await get(door, { aggregate: 'count,sum(whole,exact),avg(big),min(day),countDistinct(kind)' }),
        [
          {
            count: 0,
            sum: { whole: null, exact: null },
            avg: { big: null },
            min: { day: null },
            countDistinct: { kind: 0 },
          },
        ],
      );
      assert.equal((await door.send('POST', '/amounts', ROWS)).status, 201);
      assert.deepEqual(await get(door, { aggregate: 'sum(whole,big,exact,double)', 'id:gt': '1' }), [
        { sum: { whole: -6, big: '9223372036854775806', exact: '999999999999999.999', double: -0.75 } },
      ]);
      assert.deepEqual(await get(door, { aggregate: 'sum(big,exact)' }), [
        { sum: { big: '18446744073709551613', exact: '1999999999999999.998' } },
      ]);
      assert.deepEqual(await get(door, { aggregate: 'avg(whole,big,exact,double)', 'id:gt': '1' }), [
        {
          avg: {
            whole: '-2.000000',
            big: '4611686018427387903.000000',
            exact: '333333333333333.333000000',
            double: -0.375,
          },
        },
      ]);
      assert.deepEqual(await get(door, { aggregate: 'avg(whole)', 'whole:lte': '1' }), [
        { avg: { whole: '-2.000000' } },
      ]);
      assert.deepEqual(await get(door, { aggregate: 'avg(exact)', 'exact:lt': '1' }), [
        { avg: { exact: '0.000000000' } },
      ]);
      assert.deepEqual(await get(door, { aggregate: 'avg(id)', id: '1' }), [{ avg: { id: '1.000000' } }]);
      assert.deepEqual(
        await get(door, {
          aggregate:
            'min(whole,big,exact,double,day,at,token,kind),max(whole,big,exact,double,day,at,token,kind)',
        }),
        [
          {
            min: {
              whole: -7,
              big: '-1',
              exact: '-0.001',
              double: -2,
              day: '0001-01-01',
              at: '1969-12-31T23:59:59.999Z',
              token: '00000000-0000-4000-8000-000000000000',
              kind: 'A',
            },
            max: {
              whole: 9_007_199_254_740_991,
              big: '9223372036854775807',
              exact: '999999999999999.999',
              double: 1.25,
              day: '2024-02-29',
              at: '2024-02-29T12:30:00.125Z',
              token: 'ffffffff-ffff-4fff-8fff-ffffffffffff',
              kind: 'b',
            },
          },
        ],
      );
      assert.deepEqual(await get(door, { aggregate: 'countDistinct(kind,raw,flag,whole)' }), [
        { countDistinct: { kind: 2, raw: 1, flag: 2, whole: 4 } },
      ]);
    });

    test('averages are rounded to the nearest, halves away from zero', async () => {
      await using door = await open([AMOUNTS]);
      const rows = Array.from({ length: 1_000 }, (_, i) => ({
        whole: i === 0 ? 1 : 0,
        exact: i === 0 ? '-0.001' : '0',
      }));
      assert.equal((await door.send('POST', '/amounts', rows)).status, 201);
      assert.deepEqual(await get(door, { aggregate: 'avg(whole,exact)' }), [
        { avg: { whole: '0.001000', exact: '-0.000001000' } },
      ]);
      await door.send('DELETE', '/amounts?id:gt=3', undefined, { prefer: 'max-affected=1000' });
      assert.deepEqual(await get(door, { aggregate: 'avg(whole,exact)' }), [
        { avg: { whole: '0.333333', exact: '-0.000333333' } },
      ]);
      await door.send('PATCH', '/amounts/2', { whole: 1 });
      assert.deepEqual(await get(door, { aggregate: 'avg(whole)' }), [{ avg: { whole: '0.666667' } }]);
      await door.send('PATCH', '/amounts/1', { whole: -3 });
      assert.deepEqual(await get(door, { aggregate: 'avg(whole)', id: '1' }), [
        { avg: { whole: '-3.000000' } },
      ]);
    });

    test('groups are sorted by their values, and null is one of them', async () => {
      await using door = await open([AMOUNTS]);
      assert.equal((await door.send('POST', '/amounts', ROWS)).status, 201);
      assert.deepEqual(await get(door, { aggregate: 'count', group: 'kind' }), [
        { kind: 'A', count: 2 },
        { kind: 'b', count: 2 },
        { kind: null, count: 1 },
      ]);
      assert.deepEqual(await get(door, { aggregate: 'count,max(id)', group: 'flag,kind' }), [
        { flag: false, kind: null, count: 1, max: { id: 4 } },
        { flag: true, kind: 'A', count: 1, max: { id: 2 } },
        { flag: null, kind: 'a', count: 1, max: { id: 1 } },
        { flag: null, kind: 'b', count: 2, max: { id: 5 } },
      ]);
      assert.deepEqual(await get(door, { aggregate: 'count', group: 'exact', 'kind:null': 'true' }), [
        { exact: null, count: 1 },
      ]);
      assert.deepEqual(await get(door, { aggregate: 'count', group: 'kind', where: '{"id":99}' }), []);
      assert.deepEqual(await get(door, { group: 'kind', 'kind:null': 'false' }), [
        { kind: 'A' },
        { kind: 'b' },
      ]);
      const reply = await door.get('/amounts?aggregate=count');
      const again = await door.get('/amounts?aggregate=count', {
        'if-none-match': reply.headers.get('etag') ?? '',
      });
      assert.equal(again.status, 304);
    });

    test('filters go over other relations', async () => {
      await using door = await open(LIBRARY);
      await door.send('POST', '/authors', [{ name: 'Jane' }, { name: 'Ben' }]);
      await door.send('POST', '/books', [
        { title: 'a', author_id: 1, price: '1.10' },
        { title: 'b', author_id: 1, price: '2.20' },
        { title: 'c', author_id: 2 },
      ]);
      await door.send('POST', '/loans', [
        { book_id: 1, reader: 'ann' },
        { book_id: 3, reader: 'ann' },
      ]);
      assert.deepEqual(await get(door, { aggregate: 'count,sum(price)', group: 'author_id' }, '/books'), [
        { author_id: 1, count: 2, sum: { price: '3.30' } },
        { author_id: 2, count: 1, sum: { price: '9.90' } },
      ]);
      assert.deepEqual(await get(door, { aggregate: 'sum(price)', 'author.name': 'Jane' }, '/books'), [
        { sum: { price: '3.30' } },
      ]);
      assert.deepEqual(await get(door, { aggregate: 'count', 'loans.reader': 'ann' }, '/books'), [
        { count: 2 },
      ]);
    });

    test('refusals name what to change', async () => {
      await using door = await open([AMOUNTS]);
      const refused = async (query: Readonly<Record<string, string>>) => {
        const { body } = await door.get(`/amounts?${new URLSearchParams(query)}`);
        return [body.code, body.detail];
      };
      const invalid = async (query: Readonly<Record<string, string>>, detail: string) =>
        assert.deepEqual(await refused(query), ['INVALID_PARAMETER', detail]);
      await invalid(
        { aggregate: 'total(whole)' },
        '"aggregate" takes count, countDistinct(column), sum(column), avg(column), min(column), max(column) with commas between, not "total(whole)"',
      );
      await invalid({ aggregate: 'sum' }, '"aggregate" needs a column for sum, such as sum(id)');
      await invalid({ aggregate: 'count(id)' }, '"aggregate" takes count without a column; it counts rows');
      await invalid(
        { aggregate: 'sum(kind)' },
        '"aggregate" takes no column of text for sum, such as "kind"',
      );
      await invalid(
        { aggregate: 'sum(wole)' },
        '"aggregate" names "wole", which amounts does not have; did you mean whole?',
      );
      await invalid(
        { aggregate: 'sum(id),sum(id)' },
        '"aggregate" takes each function of a column at most once',
      );
      await invalid(
        { aggregate: 'count', group: 'data' },
        '"group" takes no column of json for group, such as "data"',
      );
      await invalid({ aggregate: 'count', group: 'id,id' }, '"group" takes each column at most once');
      await invalid({ aggregate: 'count', limit: '5' }, '"limit" does not go with "aggregate"');
      assert.equal((await refused({ aggregate: 'count', group: 'id,whole,big,kind' }))[0], 'LIMIT_EXCEEDED');
      const rows = Array.from({ length: 1_000 }, (_, whole) => ({ whole }));
      await door.send('POST', '/amounts', rows);
      assert.equal((await get(door, { aggregate: 'count', group: 'whole' })).length, 1_000);
      await door.send('POST', '/amounts', { whole: 1_000 });
      assert.deepEqual(await refused({ aggregate: 'count', group: 'whole' }), [
        'LIMIT_EXCEEDED',
        'There are more than 1,000 groups (groups); group by a column with fewer values, or add a filter',
      ]);
      const most = { whole: Number.MAX_SAFE_INTEGER, double: 1e308 };
      await door.send('POST', '/amounts', [most, most]);
      for (const column of ['whole', 'double']) {
        assert.deepEqual(await refused({ aggregate: `sum(${column})` }), [
          'LIMIT_EXCEEDED',
          'A sum is beyond the numbers that JSON writes with all digits (sum); add a narrower filter',
        ]);
      }
    });
  });
}
