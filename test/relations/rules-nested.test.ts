import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Caller, ruledDoors } from '../support/relations/ruled-door.ts';
import { openProjects } from '../support/relations/ruled-worlds.ts';

for (const { engine, open } of ruledDoors) {
  describe(`rules of nested rows on ${engine}`, () => {
    test('embedded rows and columns are those that the caller may read', async () => {
      await using world = await openProjects(open);
      const { staff, ann, bob, anonymous } = world;
      const get = async (caller: Caller, path: string) => {
        const reply = await caller.get(path);
        assert.equal(reply.status, 200, reply.text);
        return reply.body;
      };
      assert.deepEqual(await get(ann, '/projects?fields=name,lead(name),tasks(title)'), [
        { name: 'a1', lead: { name: 'open' }, tasks: [{ title: 'ta' }] },
        { name: 'a2', lead: null, tasks: [{ title: 'td' }] },
      ]);
      assert.deepEqual(await get(staff, '/projects?fields=name,lead(name),tasks(title)&limit=2'), [
        { name: 'a1', lead: { name: 'open' }, tasks: [{ title: 'ta' }, { title: 'tb' }] },
        { name: 'a2', lead: { name: 'hidden' }, tasks: [{ title: 'td' }] },
      ]);
      // Over a hidden project there is nothing to see.
      assert.deepEqual(await get(ann, '/tasks?fields=title,project(name,tasks(title))'), [
        { title: 'ta', project: { name: 'a1', tasks: [{ title: 'ta' }] } },
        { title: 'tc', project: null },
        { title: 'td', project: { name: 'a2', tasks: [{ title: 'td' }] } },
      ]);
      assert.deepEqual(await get(bob, '/projects/3?fields=name,tasks(title)'), { name: 'b1', tasks: [] });
      assert.equal((await ann.get('/projects/3?fields=name,tasks(title)')).status, 404);
      for (const path of [
        '/projects?fields=*,tasks(*)',
        '/tasks?fields=title,project(*)',
        '/projects/1?fields=*,tasks(title)',
      ])
        assert.doesNotMatch(JSON.stringify(await get(ann, path)), /budget/);
      // Filters, orders and limits of embedded rows are guarded, too.
      const people = '/people?fields=name,projects(name)';
      assert.deepEqual(await get(bob, people), [{ name: 'open', projects: [{ name: 'b1' }] }]);
      assert.deepEqual(await get(ann, `${people}&embed.projects.tasks.title=tb`), [
        { name: 'open', projects: [] },
      ]);
      const sorted =
        '/people?fields=projects(name,owner)&embed.projects.sort=-lead.name,name&embed.projects.limit=1';
      assert.deepEqual(await get(ann, sorted), [{ projects: [{ name: 'a1', owner: 'ann' }] }]);
      const nested = await get(
        ann,
        '/projects?fields=name,tasks(title,project(lead(name)))&embed.tasks.sort=-project.lead.name&embed.tasks.limit=5&sort=-lead.name',
      );
      assert.deepEqual(nested, [
        { name: 'a1', tasks: [{ title: 'ta', project: { lead: { name: 'open' } } }] },
        { name: 'a2', tasks: [{ title: 'td', project: { lead: null } }] },
      ]);
      for (const query of [
        'fields=project(budget)',
        'fields=project(name)&embed.project.budget=1',
        'fields=project(name)&embed.project.where={"budget":1}',
      ]) {
        const reply = await ann.get(`/tasks?${query}`);
        assert.deepEqual([reply.status, reply.body.code], [403, 'NOT_ALLOWED'], query);
      }
      const list = await ann.get('/people?fields=projects(name)&embed.projects.sort=budget');
      assert.equal(list.status, 403);
      assert.deepEqual(await get(staff, '/projects/1?fields=name,tags(word)'), {
        name: 'a1',
        tags: [{ word: 'x' }],
      });
      assert.equal((await ann.get('/projects/1?fields=name,tags(word)')).status, 403);
      assert.equal((await anonymous.get('/people?fields=name,projects(name)')).status, 401);
    });

    test('aggregates are of rows and columns that the caller may read', async () => {
      await using world = await openProjects(open);
      const { staff, ann, bob, anonymous } = world;
      const sums = async (caller: Caller) =>
        (await caller.get('/tasks?aggregate=count,sum(hours)&group=project_id')).body;
      assert.deepEqual(await sums(ann), [
        { project_id: 1, count: 1, sum: { hours: 1 } },
        { project_id: 2, count: 1, sum: { hours: 8 } },
        { project_id: 3, count: 1, sum: { hours: 4 } },
      ]);
      assert.deepEqual(await sums(bob), [{ project_id: 1, count: 1, sum: { hours: 2 } }]);
      assert.deepEqual((await ann.get('/tasks?aggregate=count&project.name:prefix=b')).body, [{ count: 0 }]);
      assert.deepEqual((await staff.get('/projects?aggregate=sum(budget)')).body, [{ sum: { budget: 60 } }]);
      for (const query of [
        'aggregate=sum(budget)',
        'aggregate=count&group=budget',
        'aggregate=count&budget:gt=1',
        'aggregate=min(budget),max(budget)',
      ]) {
        const reply = await ann.get(`/projects?${query}`);
        assert.deepEqual([reply.status, reply.body.code], [403, 'NOT_ALLOWED'], query);
      }
      assert.equal((await anonymous.get('/tasks?aggregate=count')).status, 401);
    });

    test('nested creates are judged row by row, and show what may be read', async () => {
      await using world = await openProjects(open);
      const { staff, ann } = world;
      const both = await ann.send('POST', '/projects', {
        name: 'n',
        owner: 'ann',
        tasks: [
          { title: 'x', owner: 'ann' },
          { title: 'y', owner: 'ann' },
        ],
      });
      assert.equal(both.status, 201, both.text);
      assert.doesNotMatch(both.text, /budget/);
      assert.equal(both.body.tasks.length, 2);
      const foreign = await ann.send('POST', '/projects', {
        name: 'm',
        owner: 'ann',
        tasks: [
          { title: 'x', owner: 'ann' },
          { title: 'y', owner: 'bob' },
        ],
      });
      assert.deepEqual([foreign.status, foreign.body.errors[0].pointer], [403, '#/tasks/1'], foreign.text);
      assert.equal((await staff.get('/projects?name=m')).body.length, 0);
      const person = await ann.send('POST', '/projects', { name: 'm', owner: 'ann', lead: { name: 'new' } });
      assert.equal(person.status, 403, person.text);
      const hidden = await staff.send('POST', '/projects', {
        name: 's',
        owner: 'ann',
        lead: { name: 'q', secret: true },
        tasks: [{ title: 'z', owner: 'bob' }],
      });
      assert.equal(hidden.status, 201);
      assert.equal(hidden.body.lead.name, 'q');
    });
  });
}
