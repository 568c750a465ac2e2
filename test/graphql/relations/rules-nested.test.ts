import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Caller, ruledDoors } from '../../support/relations/ruled-door.ts';
import { openProjects } from '../../support/relations/ruled-worlds.ts';

for (const { engine, open } of ruledDoors) {
  describe(`rules of aggregates, nested rows and many-to-manies in GraphQL on ${engine}`, () => {
    test('aggregates are of rows and columns that the caller may read', async () => {
      await using world = await openProjects(open);
      const { staff, ann, bob } = world;
      const sums = async (caller: Caller) => {
        const query = '{ tasksAggregate(groupBy: project_id) { group { project_id } count sum { hours } } }';
        return (await caller.data(query)).tasksAggregate;
      };
      const group = (project_id: number, hours: number) => ({
        group: { project_id },
        count: 1,
        sum: { hours },
      });
      assert.deepEqual(await sums(ann), [group(1, 1), group(2, 8), group(3, 4)]);
      assert.deepEqual(await sums(bob), [group(1, 2)]);
      const over = '{ tasksAggregate(where: { project: { name: { prefix: "b" } } }) { count } }';
      assert.deepEqual(await ann.data(over), { tasksAggregate: [{ count: 0 }] });
      const budget = '{ projectsAggregate { sum { budget } } }';
      assert.deepEqual(await staff.data(budget), { projectsAggregate: [{ sum: { budget: 60 } }] });
      for (const query of [
        budget,
        '{ projectsAggregate(groupBy: budget) { count } }',
        '{ projectsAggregate(where: { budget: { gt: 1 } }) { count } }',
        '{ projectsAggregate { min { budget } max { name } } }',
      ]) {
        assert.equal(await ann.code(query), 'NOT_ALLOWED', query);
      }
    });

    test('nested creates are judged row by row, and show what may be read', async () => {
      await using world = await openProjects(open);
      const { staff, ann } = world;
      const create =
        'mutation ($data: ProjectCreate!) { createProject(data: $data) { name tasks { title } } }';
      const tasks = (...owners: readonly string[]) => owners.map((owner, i) => ({ title: `t${i}`, owner }));
      const both = await ann.data(create, { data: { name: 'n', owner: 'ann', tasks: tasks('ann', 'ann') } });
      assert.deepEqual(both.createProject, { name: 'n', tasks: [{ title: 't0' }, { title: 't1' }] });
      const foreign = await ann.ask(create, {
        data: { name: 'm', owner: 'ann', tasks: tasks('ann', 'bob') },
      });
      const { code, errors } = (foreign.body.errors?.[0]?.extensions ?? {}) as {
        readonly code?: string;
        readonly errors?: readonly { readonly pointer: string }[];
      };
      assert.deepEqual([code, errors?.map(({ pointer }) => pointer)], ['NOT_ALLOWED', ['#/tasks/1']]);
      const lead = { name: 'm', owner: 'ann', lead: { name: 'new' } };
      assert.equal(await ann.code(create, { data: lead }), 'NOT_ALLOWED');
      assert.deepEqual(await staff.data('{ projects(where: { name: { eq: "m" } }) { name } }'), {
        projects: [],
      });
      const hidden = { name: 's', owner: 'ann', tasks: tasks('bob') };
      assert.deepEqual(await staff.data(create, { data: hidden }), {
        createProject: { name: 's', tasks: [{ title: 't0' }] },
      });
    });

    test('conditions over many-to-manies see the rows that the caller may read', async () => {
      await using world = await openProjects(open);
      const { staff, ann, bob } = world;
      const query = '{ projects(where: { tags: { some: { word: { eq: "x" } } } }) { name } }';
      assert.deepEqual(await staff.data(query), { projects: [{ name: 'a1' }] });
      assert.deepEqual(await ann.data(query), { projects: [{ name: 'a1' }] });
      assert.deepEqual(await bob.data(query), { projects: [] });
      // As at REST, rows are not shown over rows of which the caller may not read all.
      assert.equal(await ann.code('{ projects { tags { word } } }'), 'NOT_ALLOWED');
    });
  });
}
