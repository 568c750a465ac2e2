import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { RelationEvent } from '../../src/relations/events.ts';
import type { RowStore } from '../../src/relations/rows/rows.ts';
import { RowReaders } from '../../src/relations/rules/readers.ts';
import { seenEvents } from '../../src/relations/rules/seen-events.ts';
import { RowRules } from '../../src/relations/rules/views.ts';
import { engines } from '../support/databases.ts';
import { declared } from '../support/relations/ruled-door.ts';

const NAMES = ['a', 'A', 'b', '1', '2', '01'];
const declaredWith = (read: unknown) =>
  declared({
    teams: { columns: { id: { type: 'serial' }, org: { type: 'text', max: 9 } } },
    notes: {
      columns: {
        id: { type: 'serial' },
        org: { type: 'text', max: 9, nullable: true },
        alias: { type: 'text', max: 9, nullable: true, fold: true },
        number: { type: 'integer', nullable: true },
        cost: { type: 'decimal', precision: 6, scale: 2, nullable: true },
        flag: { type: 'boolean' },
        team: { type: 'reference', to: 'teams', nullable: true },
      },
      rules: { read },
    },
    shares: {
      columns: {
        id: { type: 'serial' },
        org: { type: 'text', max: 9 },
        note: { type: 'reference', to: 'notes' },
      },
    },
  });
const relations = declaredWith('nobody');
const TEAMS = ['a', 'b', '1'];
/** The notes with shares, by their numbers. */
const SHARES = [
  [1, 'b'],
  [1, '2'],
  [2, 'A'],
] as const;

type Tree = Readonly<Record<string, unknown>>;
const claim = fc.constantFrom({ caller: '/org' }, { caller: '/org' }, { caller: '/org' }, { caller: '/sub' });
const tests = claim.chain((value) =>
  fc.constantFrom<unknown>(value, value, { eq: value }, { in: value }, { ne: value }, { gte: value }),
);
const ofTeam: fc.Arbitrary<Tree> = fc.oneof(
  tests.map((org) => ({ org })),
  fc.constantFrom<Tree>({ org: 'a' }, {}),
);
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc
      .tuple(fc.constantFrom('org', 'org', 'alias', 'number', 'cost'), tests)
      .map(([name, value]) => ({ [name]: value })),
    fc.boolean().map((flag) => ({ flag })),
    ofTeam.map((team) => ({ team })),
    fc
      .tuple(fc.constantFrom('some', 'none', 'every'), ofTeam)
      .map(([quantifier, of]) => ({ shares: { [quantifier]: of } })),
    tie('tree').map((not) => ({ not })),
    fc
      .tuple(fc.constantFrom('and', 'or'), fc.array(tie('tree'), { maxLength: 3 }))
      .map(([is, all]) => ({ [is]: all })),
  ),
}));
const rule = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: tree.map((where) => ({ where })) },
    { weight: 1, arbitrary: fc.constantFrom<unknown>('anyone', { scope: 'staff' }) },
  ),
  { minLength: 1, maxLength: 3 },
);

const orNull = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null, freq: 4 });
const row = fc.record({
  id: fc.constantFrom(1, 2, 3),
  org: orNull(fc.constantFrom(...NAMES)),
  alias: orNull(fc.constantFrom(...NAMES)),
  number: orNull(fc.constantFrom(0, 1, 2)),
  cost: orNull(fc.constantFrom('1.00', '2.00')),
  flag: fc.boolean(),
  team_id: orNull(fc.constantFrom(1, 2, 3)),
});
const changes = fc.array(fc.tuple(row, fc.option(row, { nil: undefined })), { minLength: 1, maxLength: 4 });

const eventsOf = (all: readonly (readonly [object, object | undefined])[]) =>
  all.map(([after, before], i): RelationEvent => {
    const type = before === undefined ? 'created' : 'updated';
    const json = JSON.stringify({ position: i, relation: 'notes', type, key: `${i}`, row: after });
    const own = before && { before: JSON.stringify(before) };
    return { position: i, at: 1, relation: 'notes', type, name: `note.${type}`, key: `${i}`, json, ...own };
  });

const RUNS: Readonly<Record<string, number>> = { 'sqlite in memory': 300, postgres: 100 };

for (const [engine, open] of Object.entries(engines)) {
  describe(`readers of changes on ${engine}`, () => {
    test('many are judged as each alone is, and the names in rows are all of them', async () => {
      await using database = await open();
      const { stores } = await database.current.openRelations(relations);
      const rows = stores.get('notes') ?? assert.fail('no notes');
      await stores.get('teams')?.create(TEAMS.map((org) => [null, org]));
      await rows.create([1, 2, 3].map(() => [null, null, null, null, null, false, null]));
      await stores.get('shares')?.create(SHARES.map(([note, org]) => [null, org, note]));
      await fc.assert(
        fc.asyncProperty(rule, changes, async (read, changed) => {
          const world = new Map(declaredWith(read).map((relation) => [relation.name, relation]));
          const relation = world.get('notes') ?? assert.fail('no notes');
          const store = { relation, as: (view) => rows.as(view) } as Pick<
            RowStore,
            'relation' | 'as'
          > as RowStore;
          const rules = RowRules.of(world, () => false) ?? assert.fail('no rules');
          const readers = new RowReaders(world, rules, store, ['org']);
          const events = eventsOf(changed);
          const alone = new Map<string, readonly string[]>();
          for (const name of NAMES) {
            const caller = { kind: 'jwt', name, scopes: new Set<string>(), claims: { org: name } } as const;
            const seen = await seenEvents(rules.viewOf(caller), store, events);
            if (seen.length > 0)
              alone.set(
                name,
                seen.map(({ event }) => event.json),
              );
          }
          const together = new Map<string, readonly string[]>();
          for await (const { name, seen } of readers.seenBy(NAMES, events))
            together.set(
              name,
              seen.map(({ event }) => event.json),
            );
          assert.deepEqual(Object.fromEntries(together), Object.fromEntries(alone));
          const named = readers.namesIn(events);
          for (const name of alone.keys()) assert.ok(named?.has(name) ?? true, `rows name ${name}`);
        }),
        { numRuns: RUNS[engine] ?? 100 },
      );
    });
  });
}
