import assert from 'node:assert/strict';
import { type Caller, declared, type RuledDoor, type ruledDoors } from './ruled-door.ts';

/** Notes of owners, of which some are public, in teams of which some are hidden. */
export const NOTES = declared({
  teams: {
    columns: { name: { type: 'text', max: 40 }, secret: { type: 'boolean', default: false } },
    rules: { read: [{ scope: 'staff' }, { where: { secret: false } }], create: { scope: 'staff' } },
  },
  notes: {
    columns: {
      title: { type: 'text', max: 40 },
      public: { type: 'boolean', default: false },
      owner: { type: 'text', max: 40, set: { caller: '/sub' } },
      rank: { type: 'integer', nullable: true, read: { scope: 'staff' }, write: { scope: 'staff' } },
      kind: { type: 'text', max: 10, default: 'memo', immutable: true },
      state: { type: 'text', max: 10, default: 'new', readonly: true },
      team: { type: 'reference', to: 'teams', nullable: true },
    },
    unique: [['owner', 'title']],
    indexes: [['title'], ['rank']],
    rules: {
      read: [{ scope: 'staff' }, { where: { or: [{ public: true }, { owner: { caller: '/sub' } }] } }],
      create: [{ scope: 'staff' }, { where: { owner: { caller: '/sub' } } }],
      update: [{ scope: 'staff' }, { where: { owner: { caller: '/sub' } } }],
      delete: [{ scope: 'staff' }, { where: { owner: { caller: '/sub' }, public: false } }],
    },
  },
  comments: {
    columns: {
      text: { type: 'text', max: 40 },
      note: { type: 'reference', to: 'notes' },
      author: { type: 'text', max: 40, set: { caller: '/sub' } },
    },
    rules: {
      read: { where: { note: { owner: { caller: '/sub' } } } },
      create: { where: { note: { or: [{ public: true }, { owner: { caller: '/sub' } }] } } },
      update: { where: { note: { owner: { caller: '/sub' } } } },
      delete: { where: { not: { author: { caller: '/sub' } } } },
    },
  },
  plain: { one: 'plainOne', columns: { text: { type: 'text', max: 40 } } },
});

interface NotesWorld extends RuledDoor {
  readonly ann: Caller;
  readonly bob: Caller;
  readonly staff: Caller;
  /** A caller whose token names no subject. */
  readonly nameless: Caller;
  readonly ids: Readonly<Record<'annPublic' | 'annPrivate' | 'bobPublic' | 'bobPrivate', number>>;
}

/** Opens a door with some notes of two callers. */
export async function openNotes(open: (typeof ruledDoors)[number]['open']): Promise<NotesWorld> {
  const door = await open(NOTES);
  const ann = await door.caller('ann', { sub: 'ann' });
  const bob = await door.caller('bob', { sub: 'bob' });
  const staff = await door.caller('staff', { sub: 'staff', scope: 'staff' });
  const nameless = await door.caller('nameless', { sub: undefined, client_id: 'ann' });
  const create = async (caller: Caller, path: string, body: unknown): Promise<number> => {
    const reply = await caller.send('POST', path, body);
    assert.equal(reply.status, 201, reply.text);
    return reply.text === '' ? Number(reply.headers.get('location')?.split('/').at(-1)) : reply.body.id;
  };
  await create(staff, '/teams', { name: 'open' });
  await create(staff, '/teams', { name: 'hidden', secret: true });
  const ids = {
    annPublic: await create(ann, '/notes', { title: 'a-public', public: true, team_id: 1 }),
    annPrivate: await create(ann, '/notes', { title: 'a-private' }),
    bobPublic: await create(bob, '/notes', { title: 'b-public', public: true }),
    bobPrivate: await create(bob, '/notes', { title: 'b-private' }),
  };
  await staff.send('PATCH', `/notes/${ids.bobPublic}`, { team_id: 2, rank: 5 });
  await staff.send('PATCH', `/notes/${ids.bobPrivate}`, { rank: 7 });
  await create(bob, '/comments', { text: 'on ann', note_id: ids.annPublic });
  await create(bob, '/comments', { text: 'on bob', note_id: ids.bobPrivate });
  return Object.assign(door, { ann, bob, staff, nameless, ids });
}

const mine = { where: { owner: { caller: '/sub' } } };
const PROJECTS = declared({
  projects: {
    columns: {
      name: { type: 'text', max: 20 },
      owner: { type: 'text', max: 20 },
      budget: { type: 'integer', nullable: true, read: { scope: 'staff' } },
      lead: { type: 'reference', to: 'people', nullable: true },
    },
    many: { tags: { through: 'labels' } },
    rules: { read: [{ scope: 'staff' }, mine], create: [{ scope: 'staff' }, mine] },
  },
  tasks: {
    columns: {
      title: { type: 'text', max: 20 },
      owner: { type: 'text', max: 20 },
      hours: { type: 'integer', default: 1 },
      project: { type: 'reference', to: 'projects' },
    },
    rules: { read: [{ scope: 'staff' }, mine], create: [{ scope: 'staff' }, mine] },
  },
  people: {
    one: 'person',
    columns: { name: { type: 'text', max: 20 }, secret: { type: 'boolean', default: false } },
    rules: { read: [{ scope: 'staff' }, { where: { secret: false } }], create: { scope: 'staff' } },
  },
  tags: {
    columns: { word: { type: 'text', max: 20 } },
    rules: { read: 'anyone', create: { scope: 'staff' } },
  },
  labels: {
    key: ['project_id', 'tag_id'],
    columns: { project: { type: 'reference', to: 'projects' }, tag: { type: 'reference', to: 'tags' } },
    rules: {
      read: [{ scope: 'staff' }, { where: { project: { owner: { caller: '/sub' } } } }],
      create: { scope: 'staff' },
    },
  },
});

/** Opens a door with projects, their tasks and people, tags and what connects them. */
export async function openProjects(open: (typeof ruledDoors)[number]['open']) {
  const world = await open(PROJECTS);
  const staff = await world.caller('staff', { sub: 'staff', scope: 'staff' });
  const ann = await world.caller('ann', { sub: 'ann' });
  const bob = await world.caller('bob', { sub: 'bob' });
  const create = async (path: string, ...rows: readonly unknown[]) => {
    const reply = await staff.send('POST', path, rows);
    assert.equal(reply.status, 201, reply.text);
  };
  await create('/people', { name: 'open' }, { name: 'hidden', secret: true });
  await create(
    '/projects',
    { name: 'a1', owner: 'ann', budget: 10, lead_id: 1 },
    { name: 'a2', owner: 'ann', budget: 20, lead_id: 2 },
    { name: 'b1', owner: 'bob', budget: 30, lead_id: 1 },
  );
  await create(
    '/tasks',
    { title: 'ta', owner: 'ann', project_id: 1, hours: 1 },
    { title: 'tb', owner: 'bob', project_id: 1, hours: 2 },
    { title: 'tc', owner: 'ann', project_id: 3, hours: 4 },
    { title: 'td', owner: 'ann', project_id: 2, hours: 8 },
  );
  await create('/tags', { word: 'x' });
  await create('/labels', { project_id: 1, tag_id: 1 });
  return Object.assign(world, { staff, ann, bob });
}

/** Notes of owners and of teams, whose leads may read them too. */
export const LED = declared({
  teams: {
    columns: { lead: { type: 'text', max: 20 } },
    rules: { read: 'anyone', create: { scope: 'staff' }, update: { scope: 'staff' } },
  },
  notes: {
    columns: {
      title: { type: 'text', max: 40 },
      owner: { type: 'text', max: 40 },
      cost: { type: 'integer', nullable: true, read: { scope: 'staff' } },
      team: { type: 'reference', to: 'teams', nullable: true },
    },
    rules: {
      read: [
        { scope: 'staff' },
        { where: { or: [{ owner: { caller: '/sub' } }, { team: { lead: { caller: '/sub' } } }] } },
      ],
      create: { scope: 'staff' },
      update: { scope: 'staff' },
      delete: { scope: 'staff' },
    },
  },
  hidden: { one: 'hiddenOne', columns: { text: { type: 'text', max: 9 } }, rules: { create: 'anyone' } },
});
