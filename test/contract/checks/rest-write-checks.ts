import assert from 'node:assert/strict';
import type { Check } from '../check.ts';
import {
  assertMessage,
  changesNothing,
  created,
  list,
  person,
  post,
  put,
  read,
  remove,
  unknownId,
} from '../clients/rest.ts';

/** Content types under which a body must be read as JSON all the same. */
const contentTypes = [
  'application/json; charset=utf-8',
  'text/plain',
  'text/plain;charset=UTF-8',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'application/octet-stream',
  'application/xml',
  'nonsense',
];

/** Creating, updating and deleting users. */
export const restWriteChecks: readonly Check[] = [
  {
    id: 'REST-20',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'POST /users answers "User created successfully" and nothing else',
    async run(subject) {
      assertMessage(await post(subject, person()), 'success', 'User created successfully');
    },
  },
  {
    id: 'REST-21',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'a created user can be read with the name and email it was sent with',
    async run(subject) {
      const sent = person();
      const { id } = await created(subject, sent);
      assert.deepEqual(await read(subject, id), { id, ...sent });
    },
  },
  {
    id: 'REST-22',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'PUT /update/<id> answers "User updated successfully" and replaces name and email',
    async run(subject) {
      const { id } = await created(subject);
      const next = person();
      assertMessage(await put(subject, id, next), 'success', 'User updated successfully');
      assert.deepEqual(await read(subject, id), { id, ...next });
    },
  },
  {
    id: 'REST-23',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'an update changes no other user',
    async run(subject) {
      const { id } = await created(subject);
      await created(subject);
      const others = (await list(subject)).filter((user) => user.id !== id);
      await put(subject, id, person());
      assert.deepEqual(
        (await list(subject)).filter((user) => user.id !== id),
        others,
      );
    },
  },
  {
    id: 'REST-24',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'DELETE /delete/<id> answers "User deleted successfully" and the user is gone',
    async run(subject) {
      const { id } = await created(subject);
      assertMessage(await remove(subject, id), 'success', 'User deleted successfully');
      assertMessage(await subject.rest.send('GET', `/users/${id}`), 'error', 'User not found');
      assert.ok(!(await list(subject)).some((user) => user.id === id));
    },
  },
  {
    id: 'REST-25',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'a deletion removes no other user',
    async run(subject) {
      const { id } = await created(subject);
      await created(subject);
      const others = (await list(subject)).filter((user) => user.id !== id);
      await remove(subject, id);
      assert.deepEqual(await list(subject), others);
    },
  },
  {
    id: 'REST-26',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'a body is read as JSON whatever its content type says',
    async run(subject) {
      const { id } = await created(subject);
      for (const type of contentTypes) {
        const [first, second] = [person(), person()];
        const sent = await subject.rest.send('POST', '/users', {
          headers: { 'content-type': type },
          body: JSON.stringify(first),
        });
        assert.equal(sent.text, '{"status":"success","message":"User created successfully"}', type);
        const changed = await subject.rest.send('PUT', `/update/${id}`, {
          headers: { 'content-type': type },
          body: JSON.stringify(second),
        });
        assertMessage(changed, 'success', 'User updated successfully');
        assert.deepEqual(await read(subject, id), { id, ...second }, type);
      }
    },
  },
  {
    id: 'REST-27',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'a body without any content type is read as JSON',
    async run(subject) {
      const [first, second] = [person(), person()];
      const sent = await subject.rest.send('POST', '/users', { body: JSON.stringify(first) });
      assertMessage(sent, 'success', 'User created successfully');
      const user = (await list(subject)).find(({ name }) => name === first.name);
      assert.ok(user !== undefined);
      const changed = await subject.rest.send('PUT', `/update/${user.id}`, { body: JSON.stringify(second) });
      assertMessage(changed, 'success', 'User updated successfully');
    },
  },
  {
    id: 'REST-28',
    heading: 'rest-routes',
    level: 'SHOULD',
    title: 'every success has status 200',
    async run(subject) {
      assert.equal((await post(subject, person())).status, 200);
      const { id } = await created(subject);
      assert.equal((await subject.rest.send('GET', '/users')).status, 200);
      assert.equal((await subject.rest.send('GET', `/users/${id}`)).status, 200);
      assert.equal((await put(subject, id, person())).status, 200);
      assert.equal((await remove(subject, id)).status, 200);
    },
  },
  {
    id: 'REST-29',
    heading: 'rest-routes',
    level: 'SHOULD',
    title: 'the Location of a created user leads to it',
    async run(subject) {
      const sent = person();
      const { location } = (await post(subject, sent)).headers;
      assert.equal(typeof location, 'string');
      const path = new URL(String(location), 'http://localhost').pathname;
      assert.match(path, /^\/users\/[1-9]\d*$/);
      const { name, email } = await read(subject, path.slice('/users/'.length));
      assert.deepEqual({ name, email }, sent);
    },
  },
  {
    id: 'REST-30',
    heading: 'errors',
    level: 'SHOULD',
    title: 'update and delete of an id that no user has are 404 "User not found"',
    async run(subject) {
      await created(subject);
      const id = await unknownId(subject);
      await changesNothing(subject, async () => {
        for (const reply of [await put(subject, id, person()), await remove(subject, id)]) {
          assertMessage(reply, 'error', 'User not found');
          assert.equal(reply.status, 404);
        }
      });
    },
  },
  {
    id: 'REST-31',
    heading: 'errors',
    level: 'SHOULD',
    title: 'a deleted user can be neither deleted again nor updated',
    async run(subject) {
      const { id } = await created(subject);
      await remove(subject, id);
      for (const reply of [await remove(subject, id), await put(subject, id, person())]) {
        assertMessage(reply, 'error', 'User not found');
        assert.equal(reply.status, 404);
      }
      assert.ok(!(await list(subject)).some((user) => user.id === id));
    },
  },
  {
    id: 'REST-32',
    heading: 'rest-user',
    level: 'SHOULD',
    title: 'an id in a body is not taken over, and fields nobody knows are not kept',
    async run(subject) {
      const sent = person();
      const foreign = await unknownId(subject);
      await post(subject, { id: foreign, role: 'admin', ...sent });
      const found = (await list(subject)).find(({ name }) => name === sent.name);
      if (found !== undefined) assert.deepEqual(found, { id: found.id, ...sent });
      assertMessage(await subject.rest.send('GET', `/users/${foreign}`), 'error', 'User not found');
      const user = await created(subject);
      await put(subject, user.id, { id: foreign, ...person() });
      assert.equal((await read(subject, user.id)).id, user.id);
      assertMessage(await subject.rest.send('GET', `/users/${foreign}`), 'error', 'User not found');
    },
  },
  {
    id: 'REST-33',
    heading: 'rest-user',
    level: 'SHOULD',
    title: 'an update to the values that are there already succeeds',
    async run(subject) {
      const { id, name, email } = await created(subject);
      assertMessage(await put(subject, id, { name, email }), 'success', 'User updated successfully');
      assert.deepEqual(await read(subject, id), { id, name, email });
    },
  },
];
