import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  StatementBudget,
  statementBudget,
  withStatementBudget,
} from '../../../src/relations/selections/statement-budget.ts';
import { graphqlRelationDoors, library, relationsOf } from '../support/relations-door.ts';

/** Gives all operations of this process time for one statement: less than any takes, and all of it until one has ended. */
function oneStatement(): Disposable {
  const { left } = StatementBudget.prototype;
  StatementBudget.prototype.left = function (most) {
    const rest = left.call(this, most * 1e-8);
    return rest > 0 ? most : rest;
  };
  return { [Symbol.dispose]: () => Object.assign(StatementBudget.prototype, { left }) };
}

const refusal = { code: 'LIMIT_EXCEEDED', limit: 'statement' };

for (const [engine, open] of Object.entries(graphqlRelationDoors)) {
  describe(`the time of the statements of an operation on ${engine}`, () => {
    test('is that of all of its fields together, and of no other operation', async () => {
      await using door = await open(library);
      const query = '{ booksConnection(first: 3) { edges { node { title } } totalCount } }';
      const one = '{ booksConnection(first: 3) { edges { node { title } } } }';
      assert.equal((await door.data(query)).booksConnection.totalCount, 0);
      using _ = oneStatement();
      for (let i = 0; i < 3; i++) assert.deepEqual(await door.data(one), { booksConnection: { edges: [] } });
      const { path, extensions, message } = await door.error(query);
      assert.deepEqual([path, extensions], [['booksConnection', 'totalCount'], refusal]);
      assert.match(message, /have together \(statement\)/);
      // The levels of a list are statements too, and so is what a mutation returns.
      const author = { name: 'a', books: [{ title: 'b' }] };
      await door.ask({
        query: 'mutation ($author: AuthorCreate!) { createAuthor(data: $author) { __typename } }',
        variables: { author },
      });
      const nested = await door.ask(
        'mutation { updateAuthor(id: 1, data: { born: null }) { a: books { title } b: books { title author { name } } } }',
      );
      assert.deepEqual(nested.body.errors?.[0]?.extensions, refusal, nested.text);
    });

    test('ends the statement during which it ends', async () => {
      const notes = relationsOf({ notes: { columns: { text: { type: 'text', max: 40 } } } });
      await using door = await open(notes);
      const rows = Array.from({ length: 1_000 }, (_, i) => ({ text: `${'x'.repeat(30)}${i}` }));
      for (let i = 0; i < 9; i++) {
        await door.data({
          query: 'mutation ($rows: [NoteCreate!]!) { createNotes(data: $rows) { __typename } }',
          variables: { rows },
        });
      }
      const contains = Array.from({ length: 100 }, (_, i) => ({ text: { contains: `y${i}` } }));
      // SQLite does not look at the clock in aggregates of one relation, which look at a bounded number of rows.
      const fields = ['notes(where: $where) { text }', 'notesAggregate(where: $where) { count }'];
      const questions = (engine === 'sqlite' ? fields.slice(0, 1) : fields).map((field) => ({
        query: `query ($where: NoteWhere) { a: ${field} }`,
        variables: { where: { or: contains } },
      }));
      const all = async () => {
        for (const question of questions) assert.notEqual(await door.data(question), undefined);
      };
      await all();
      const { left } = StatementBudget.prototype;
      // All statements but the first ones begin with a thousandth of a millisecond.
      for (const first of [0, 1]) {
        let began = 0;
        StatementBudget.prototype.left = (most) => (began++ < first ? most : 0.001);
        try {
          for (const question of questions) {
            began = 0;
            assert.deepEqual((await door.error(question)).extensions, refusal);
          }
        } finally {
          Object.assign(StatementBudget.prototype, { left });
        }
      }
      // The connection and the thread have their own time again.
      await all();
    });
  });
}

test('statements at the same time count once, and none counts nothing', () => {
  const budget = new StatementBudget();
  assert.equal(budget.left(5), 5);
  budget.spend(0);
  assert.ok(budget.left(5) < 5);
  const ends = [budget.start(), budget.start()];
  const [left, later] = [budget.left(1_000), budget.left(1_000)];
  assert.ok(later <= left);
  for (const end of ends) end();
  const ended = budget.left(1_000);
  assert.ok(ended <= later);
  assert.equal(budget.left(1_000), ended);
  assert.equal(statementBudget(), undefined);
  withStatementBudget(() => assert.equal(statementBudget()?.left(7), 7));
});
