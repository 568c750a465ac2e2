import assert from 'node:assert/strict';
import type { Check } from '../check.ts';
import { assertMessage, changesNothing, created, list, person, put, remove } from '../clients/rest.ts';

/** Spellings that a careless reader would take for the user `id`. */
function lookalikes(id: number): readonly string[] {
  return [
    `0${id}`,
    `+${id}`,
    `-${id}`,
    `${id}.0`,
    `${id}e0`,
    `${id}abc`,
    `${id}n`,
    `0x${id.toString(16)}`,
    `%20${id}`,
    `${id}%20`,
    `${id}%0A`,
    `${id}%00`,
    `${id},${id}`,
    `${id};`,
    `${id}%27--`,
    `${id}%20OR%201=1`,
  ];
}

const strangers = [
  '0',
  '-1',
  '01',
  '1.5',
  'abc',
  '1e3',
  '%201',
  '%EF%BC%91',
  '%D9%A1',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '99999999999999999999999999',
  'NaN',
  'Infinity',
  'null',
  'undefined',
  'true',
  '[]',
  '*',
  'export',
  '__proto__',
  'constructor',
];

/** Which ids are ids, and that an id never comes back. */
export const restIdChecks: readonly Check[] = [
  {
    id: 'REST-60',
    heading: 'rest-user',
    level: 'SHOULD',
    title: 'GET with anything but the canonical id of a user finds no user',
    async run(subject) {
      const { id } = await created(subject);
      for (const text of [...lookalikes(id), ...strangers]) {
        const reply = await subject.rest.send('GET', `/users/${text}`);
        assert.equal(reply.text, '{"status":"error","message":"User not found"}', text);
        assert.equal(reply.status, 200, text);
      }
    },
  },
  {
    id: 'REST-61',
    heading: 'rest-user',
    level: 'SHOULD',
    title: 'update and delete with anything but a canonical id are 404 and change nothing',
    async run(subject) {
      const { id } = await created(subject);
      await changesNothing(subject, async () => {
        for (const text of [...lookalikes(id), ...strangers]) {
          for (const reply of [await put(subject, text, person()), await remove(subject, text)]) {
            assertMessage(reply, 'error', 'User not found');
            assert.equal(reply.status, 404, text);
          }
        }
      });
    },
  },
  {
    id: 'REST-62',
    heading: 'rest-user',
    level: 'SHOULD',
    title: 'ids are positive and a later user has a higher one',
    async run(subject) {
      const one = await created(subject);
      const two = await created(subject);
      assert.ok(one.id > 0);
      assert.ok(two.id > one.id);
    },
  },
  {
    id: 'REST-63',
    heading: 'rest-user',
    level: 'SHOULD',
    title: 'the id of a deleted user is not given again, the highest one neither',
    async run(subject) {
      const one = await created(subject);
      const two = await created(subject);
      await remove(subject, two.id);
      const three = await created(subject);
      assert.ok(three.id > two.id, `${three.id} comes after ${two.id}`);
      await remove(subject, three.id);
      await remove(subject, one.id);
      assert.ok((await created(subject)).id > three.id);
    },
  },
  {
    id: 'REST-64',
    heading: 'rest-user',
    level: 'SHOULD',
    title: 'the id of a deleted user is not given again after a restart, even when the store is empty',
    needs: { place: 'apart', restart: true },
    async run(subject) {
      await created(subject);
      const last = await created(subject);
      for (const { id } of await list(subject)) await remove(subject, id);
      await subject.restart?.();
      assert.deepEqual(await list(subject), []);
      assert.ok((await created(subject)).id > last.id);
    },
  },
  {
    id: 'REST-65',
    heading: 'interfaces',
    level: 'MUST',
    title: 'users are kept in a store: they outlive a restart, as updated and deleted',
    needs: { place: 'apart', restart: true },
    async run(subject) {
      const users = [await created(subject), await created(subject), await created(subject)] as const;
      const next = person();
      await put(subject, users[1].id, next);
      await remove(subject, users[2].id);
      const before = await list(subject);
      await subject.restart?.();
      assert.deepEqual(await list(subject), before);
      assert.deepEqual(before.slice(-2), [users[0], { id: users[1].id, ...next }]);
    },
  },
];
