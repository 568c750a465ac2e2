import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declared, ruledDoors } from '../support/relations/ruled-door.ts';

/** More than a statement may take, in microseconds of processor time. */
const LATER = 60_000_000;

const root = [{ scope: 'root' }];
const relations = declared({
  teams: {
    columns: { name: { type: 'text', max: 40 } },
    rules: {
      read: [...root, { where: { notes: { none: { title: 'hidden' } } } }],
      create: root,
      update: [...root, { where: { notes: { none: { title: 'fixed' } } } }],
      delete: [...root, { where: { notes: { none: { title: 'fixed' } } } }],
    },
  },
  notes: {
    columns: {
      title: { type: 'text', max: 40 },
      team: { type: 'reference', to: 'teams', onDelete: 'cascade' },
    },
    rules: { read: 'anyone', create: root, update: root, delete: root },
  },
});

for (const { engine, open } of ruledDoors) {
  test(`a statement has its own time, however long the process has worked before, on ${engine}`, async (t) => {
    await using door = await open(relations);
    const owner = await door.caller('root', { scope: 'root' });
    const ann = await door.caller('ann', {});
    assert.equal((await owner.send('POST', '/teams', { name: 'a' })).status, 201);
    // Enough rows that a statement looks at the clock.
    for (let nth = 0; nth < 6; nth++) {
      const writes = Array.from({ length: 100 }, () => ({
        method: 'POST',
        path: '/notes',
        body: { title: 'x', team_id: 1 },
      }));
      const reply = await owner.send('POST', '/_batch', { writes });
      assert.equal(reply.status, 200, reply.text);
    }

    let later = 0;
    const { threadCpuUsage } = process;
    t.mock.method(process, 'threadCpuUsage', () => {
      const { user, system } = threadCpuUsage.call(process);
      return { user: user + later, system };
    });
    const requests = [
      ['GET', '/teams/1', undefined, 200],
      ['PATCH', '/teams/1', { name: 'b' }, 200],
      ['GET', '/teams', undefined, 200],
      ['GET', '/teams/1?fields=name,notes(title)', undefined, 200],
      ['DELETE', '/teams/1', undefined, 204],
    ] as const;
    for (const [method, path, body, status] of requests) {
      later += LATER;
      const reply = await ann.send(method, path, body);
      assert.equal(reply.status, status, `${method} ${path} ${reply.text}`);
    }
  });
}
