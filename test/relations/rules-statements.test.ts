import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { rowsFor } from '../../src/graphql/callers/caller-rows.ts';
import { Connection } from '../../src/sql/postgres-pool/connection.ts';
import { ask } from '../graphql/support/door.ts';
import { relationDoors } from '../support/relations/relation-door.ts';
import { declared } from '../support/relations/ruled-door.ts';

const anyone = { rules: { read: 'anyone', create: 'anyone', update: 'anyone', delete: 'anyone' } };
const relationsWith = (rules: object) =>
  declared({
    teams: { columns: { name: { type: 'text', max: 40 } }, ...rules },
    notes: {
      columns: {
        title: { type: 'text', max: 40 },
        owner: { type: 'text', max: 40 },
        team: { type: 'reference', to: 'teams', nullable: true },
      },
      indexes: [['owner']],
      ...rules,
    },
  });

const PATHS = [
  '/notes',
  '/notes?owner=ann&sort=-title&limit=5',
  '/notes?team.name:prefix=x&sort=team.name',
  '/notes?fields=title,team(name)&limit=5',
  '/teams?fields=name,notes(title)&notes.owner=ann',
  '/notes/1',
  '/notes?aggregate=count,max(title)&group=owner',
];
const DOCUMENTS = [
  '{ notes(where: { owner: { eq: "ann" } }, orderBy: { title: DESC }, limit: 5) { title team { name } } }',
  '{ teams(where: { notes: { some: { owner: { eq: "ann" } } } }) { name notes { title } } }',
  'mutation { createNote(data: { title: "z", owner: "ann", team_id: 1 }) { title team { name } } updateNote(id: 1, data: { title: "y" }) { title } }',
  '{ note(id: 1) { title owner } notesConnection(first: 2) { totalCount edges { cursor node { title } } } }',
];

/** The statements on rows that a door runs in this process. */
async function statementsOf(engine: string, relations: ReturnType<typeof declared>) {
  const open = relationDoors[engine];
  assert.ok(open !== undefined);
  const found = new Set<string>();
  const [{ prepare }, { run }] = [DatabaseSync.prototype, Connection.prototype];
  await using door = await open(relations, { graphql: true });
  using _ = {
    [Symbol.dispose]() {
      Object.assign(DatabaseSync.prototype, { prepare });
      Object.assign(Connection.prototype, { run });
    },
  };
  DatabaseSync.prototype.prepare = function (sql, ...others) {
    found.add(sql);
    return prepare.call(this, sql, ...others);
  };
  Connection.prototype.run = function (statement, values) {
    found.add(statement.text);
    return run.call(this, statement, values);
  };
  const writes = [
    ['POST', '/teams', { name: 'x' }],
    ['POST', '/notes', { title: 'a', owner: 'ann', team_id: 1 }],
    ['PATCH', '/notes/1', { title: 'b' }],
    ['PUT', '/notes/1', { title: 'c', owner: 'ann' }],
    ['POST', '/notes?on=id', { title: 'a', owner: 'ann' }],
    ['DELETE', '/notes/9', undefined],
  ] as const;
  for (const [method, path, body] of writes) await door.send(method, path, body);
  for (const path of PATHS) {
    const { status, text } = await door.get(path, { prefer: 'count=exact' });
    assert.equal(status, 200, `${path} ${text}`);
  }
  for (const query of DOCUMENTS) {
    const { text } = await ask(door.graphql, query);
    assert.doesNotMatch(text, /"errors"/);
  }
  return [...found].filter((text) => /"(?:notes|teams)"/.test(text)).toSorted();
}

for (const engine of Object.keys(relationDoors)) {
  test(`rules that let anyone read and write add nothing to a statement on ${engine}`, async () => {
    const without = await statementsOf(engine, relationsWith({}));
    const ruled = await statementsOf(engine, relationsWith(anyone));
    // The threads of SQLite do not show theirs.
    assert.ok(without.length >= (engine === 'sqlite' ? 5 : 15), without.join('\n'));
    assert.deepEqual(ruled, without);
  });
}

test('without rules the rows of GraphQL are the stores themselves', () => {
  const store = { as: (view: unknown) => (view === undefined ? store : undefined) };
  const rows = rowsFor({ storeOf: () => store as never, rules: undefined })({ caller: undefined });
  assert.equal(rows.of({ name: 'notes' }), store);
  assert.equal(rows.view, undefined);
});
