import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { graphqlRelationDoors, library, relationsOf } from '../support/relations-door.ts';

const amounts = relationsOf({
  amounts: {
    columns: {
      whole: { type: 'integer', nullable: true },
      small: { type: 'integer', min: 0, max: 9, nullable: true },
      big: { type: 'bigint', nullable: true },
      exact: { type: 'decimal', precision: 18, scale: 3, nullable: true },
      double: { type: 'number', nullable: true },
      kind: { type: 'text', max: 10, fold: true, nullable: true },
      mood: { type: 'enum', values: ['glad', 'sad'], default: 'glad' },
      flag: { type: 'boolean', nullable: true },
      at: { type: 'timestamp', nullable: true },
      raw: { type: 'bytes', max: 9, nullable: true },
      data: { type: 'json', nullable: true },
      // Names that functions and parts of an aggregate have.
      count: { type: 'integer', min: 0, max: 9, nullable: true },
      sum: { type: 'enum', values: ['x'], nullable: true },
    },
  },
  marks: { columns: {} },
});

const MANY = 'mutation ($data: [AmountCreate!]!) { createAmounts(data: $data) { id } }';

for (const [engine, open] of Object.entries(graphqlRelationDoors)) {
  describe(`aggregates in GraphQL on ${engine}`, () => {
    test('are exact, and those that are selected', async () => {
      await using door = await open(amounts);
      const query = `{ amountsAggregate {
        count countDistinct { kind mood } sum { whole big exact double } avg { whole big exact double }
        min { at mood kind } max { whole exact at }
      } }`;
      assert.deepEqual((await door.data(query)).amountsAggregate, [
        {
          count: 0,
          countDistinct: { kind: 0, mood: 0 },
          sum: { whole: null, big: null, exact: null, double: null },
          avg: { whole: null, big: null, exact: null, double: null },
          min: { at: null, mood: null, kind: null },
          max: { whole: null, exact: null, at: null },
        },
      ]);
      const most = { big: '9223372036854775807', exact: '999999999999999.999' };
      await door.data({
        query: MANY,
        variables: {
          data: [
            { ...most, whole: 5, double: 0.5, kind: 'a', at: '2024-02-29T12:30:00+01:00' },
            { ...most, whole: -7, double: 1.25, kind: 'A', mood: 'sad' },
            { kind: 'b', exact: '0.002' },
          ],
        },
      });
      assert.deepEqual((await door.data(query)).amountsAggregate, [
        {
          count: 3,
          countDistinct: { kind: 2, mood: 2 },
          sum: { whole: -2, big: '18446744073709551614', exact: '2000000000000000.000', double: 1.75 },
          avg: {
            whole: '-1.000000',
            big: '9223372036854775807.000000',
            exact: '666666666666666.666666667',
            double: 0.875,
          },
          min: { at: '2024-02-29T11:30:00.000Z', mood: 'glad', kind: 'A' },
          max: { whole: 5, exact: '999999999999999.999', at: '2024-02-29T11:30:00.000Z' },
        },
      ]);
    });

    test('groups are sorted by their values, and null is one of them', async () => {
      await using door = await open(amounts);
      const rows = [
        { kind: 'a', flag: true, count: 1 },
        { kind: 'A', count: 2, sum: 'x' },
        { kind: 'b', count: 3 },
        {},
      ];
      await door.data({ query: MANY, variables: { data: rows } });
      const { body } = await door.ask({
        query: `query ($by: [AmountGroupBy!], $where: AmountWhere) {
          kinds: amountsAggregate(groupBy: kind) { n: count group { kind __typename } max { top: count } }
          amountsAggregate(groupBy: $by, where: $where) { group { ...G } __typename sum { __typename } }
          marksAggregate { count }
        }
        fragment G on AmountGroup { flag sum count }`,
        variables: { by: ['flag', 'count', 'sum'], where: { kind: { isNull: false } } },
      });
      const group = (kind: string | null) => ({ kind, __typename: 'AmountGroup' });
      const other = (flag: boolean | null, found: string | null, count: number) => ({
        group: { flag, sum: found, count },
        __typename: 'AmountAggregate',
        sum: { __typename: 'AmountSum' },
      });
      // The order of the members counts too.
      assert.equal(
        JSON.stringify(body),
        JSON.stringify({
          data: {
            kinds: [
              { n: 2, group: group('A'), max: { top: 2 } },
              { n: 1, group: group('b'), max: { top: 3 } },
              { n: 1, group: group(null), max: { top: null } },
            ],
            amountsAggregate: [other(true, null, 1), other(null, 'x', 2), other(null, null, 3)],
            marksAggregate: [{ count: 0 }],
          },
        }),
      );
    });

    test('conditions go over other relations', async () => {
      await using door = await open(library);
      await door.data(`mutation {
        createAuthors(data: [{ name: "Jane" }, { name: "Ben" }]) { id }
        createBooks(data: [
          { title: "a", author_id: 1, price: "1.10" }, { title: "b", author_id: 1, price: "2.20" }, { title: "c", author_id: 2 }
        ]) { id }
        createLoans(data: [{ book_id: 1, reader: "ann" }, { book_id: 3, reader: "ann" }]) { reader }
      }`);
      assert.deepEqual(
        await door.data(`{
          all: booksAggregate(groupBy: author_id) { group { author_id } sum { price } }
          some: booksAggregate(where: { author: { id: { eq: "1" } }, loans: { none: { reader: { eq: "ann" } } } }) { sum { price } }
        }`),
        {
          all: [
            { group: { author_id: 1 }, sum: { price: '3.30' } },
            { group: { author_id: 2 }, sum: { price: '9.90' } },
          ],
          some: [{ sum: { price: '2.20' } }],
        },
      );
    });

    test('refusals name what to change', async () => {
      await using door = await open(amounts);
      const refused = async (query: string) => {
        const { message, extensions: { code, limit } = {} } = await door.error(query);
        return limit === undefined ? [code, message] : [code, message, limit];
      };
      assert.deepEqual(await refused('{ amountsAggregate(groupBy: flag) { group { kind } } }'), [
        'INVALID_PARAMETER',
        '"group" selects "kind"; add it to "groupBy"',
      ]);
      assert.deepEqual(await refused('{ amountsAggregate(groupBy: [flag, flag]) { count } }'), [
        'INVALID_PARAMETER',
        '"groupBy" takes each column at most once',
      ]);
      assert.deepEqual(await refused('{ amountsAggregate(groupBy: [flag, kind, mood, at]) { count } }'), [
        'LIMIT_EXCEEDED',
        '"groupBy" takes at most 3 columns (columns)',
      ]);
      const columns = 'whole small big exact double kind mood flag at raw count sum';
      const numbers = 'whole small big exact double count';
      assert.deepEqual(
        await refused(
          `{ amountsAggregate { countDistinct { ${columns} } sum { ${numbers} } avg { ${numbers} } } }`,
        ),
        ['LIMIT_EXCEEDED', '"aggregate" takes at most 20 functions (aggregates)'],
      );
      const field = await refused('{ amountsAggregate { sum { kind } } }');
      assert.match(String(field[1]), /Cannot query field "kind" on type "AmountSum"/);
      const own = await refused('{ amountsAggregate { max { id } } }');
      assert.match(String(own[1]), /Cannot query field "id" on type "AmountMax"/);
      const data = Array.from({ length: 1_000 }, (_, whole) => ({ whole }));
      await door.data({ query: MANY, variables: { data } });
      const groups = '{ amountsAggregate(groupBy: whole) { group { whole } count } }';
      assert.equal((await door.data(groups)).amountsAggregate.length, 1_000);
      await door.data({ query: MANY, variables: { data: [{ whole: 1_000 }] } });
      assert.deepEqual(await refused(groups), [
        'LIMIT_EXCEEDED',
        'There are more than 1,000 groups (groups); group by a column with fewer values, or add a filter',
        'groups',
      ]);
      const most = { whole: Number.MAX_SAFE_INTEGER };
      await door.data({ query: MANY, variables: { data: [most, most] } });
      assert.deepEqual(await refused('{ amountsAggregate { sum { whole } } }'), [
        'LIMIT_EXCEEDED',
        'A sum is beyond the numbers that JSON writes with all digits (sum); add a narrower filter',
        'sum',
      ]);
    });
  });
}
