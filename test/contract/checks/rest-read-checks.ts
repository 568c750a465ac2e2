import assert from 'node:assert/strict';
import type { Check } from '../check.ts';
import {
  assertMessage,
  created,
  list,
  mediaType,
  person,
  post,
  read,
  remove,
  unknownId,
} from '../clients/rest.ts';

/** Reading users: GET /users and GET /users/<id>. */
export const restReadChecks: readonly Check[] = [
  {
    id: 'REST-01',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'GET /users lists all users in the success envelope',
    async run(subject) {
      const one = await created(subject);
      const two = await created(subject);
      const users = await list(subject);
      assert.ok(Array.isArray(users));
      assert.deepEqual(
        users.filter(({ id }) => id === one.id || id === two.id),
        [one, two],
      );
    },
  },
  {
    id: 'REST-02',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'GET /users/<id> reads one user in the success envelope',
    async run(subject) {
      const user = await created(subject);
      const reply = await subject.rest.send('GET', `/users/${user.id}`);
      assert.deepEqual(reply.json(), { status: 'success', data: user });
    },
  },
  {
    id: 'REST-03',
    heading: 'rest-user',
    level: 'MUST',
    title: 'a user record has an integer id, a name and an email, and no other field',
    async run(subject) {
      const { id, name } = await created(subject);
      const user = await read(subject, id);
      assert.deepEqual(Object.keys(user).sort(), ['email', 'id', 'name']);
      assert.ok(Number.isSafeInteger(user.id), `the id ${JSON.stringify(user.id)} is an integer`);
      assert.equal(typeof user.name, 'string');
      assert.equal(typeof user.email, 'string');
      assert.ok((await subject.rest.send('GET', '/users')).text.includes(name));
      for (const other of await list(subject)) assert.ok(Number.isSafeInteger(other.id));
    },
  },
  {
    id: 'REST-04',
    heading: 'errors',
    level: 'MUST',
    title: 'GET of an id that no user has answers "User not found" with the status of a success',
    async run(subject) {
      const reply = await subject.rest.send('GET', `/users/${await unknownId(subject)}`);
      assertMessage(reply, 'error', 'User not found');
      assert.equal(reply.status, 200);
    },
  },
  {
    id: 'REST-05',
    heading: 'rest-envelope',
    level: 'MUST',
    title: 'every reply with a body is application/json',
    async run(subject) {
      const { id } = await created(subject);
      for (const [method, path] of [
        ['GET', '/users'],
        ['GET', `/users/${id}`],
        ['GET', `/users/${await unknownId(subject)}`],
        ['GET', '/nothing-here'],
        ['POST', '/users'],
        ['PUT', `/update/${id}`],
        ['DELETE', `/delete/${await unknownId(subject)}`],
        ['DELETE', `/delete/${id}`],
      ] as const) {
        const reply = await subject.rest.send(method, path);
        assert.equal(mediaType(reply), 'application/json', `${method} ${path}`);
        assert.doesNotThrow(() => reply.json(), `${method} ${path}`);
      }
    },
  },
  {
    id: 'REST-06',
    heading: 'rest-envelope',
    level: 'MUST',
    title: 'a client that accepts only something else still gets application/json',
    async run(subject) {
      await created(subject);
      for (const accept of [
        'text/html',
        'application/xml',
        'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8',
      ]) {
        const found = await subject.rest.send('GET', '/users', { headers: { accept } });
        assert.equal(mediaType(found), 'application/json', accept);
        const missing = await subject.rest.send('GET', '/nothing', { headers: { accept } });
        assert.equal(mediaType(missing), 'application/json', accept);
      }
    },
  },
  {
    id: 'REST-07',
    heading: 'rest-routes',
    level: 'SHOULD',
    title: 'users are listed in the order of their creation',
    async run(subject) {
      for (let count = 0; count < 5; count += 1) await created(subject);
      const ids = (await list(subject)).map(({ id }) => id);
      assert.deepEqual(
        ids,
        ids.toSorted((a, b) => a - b),
      );
    },
  },
  {
    id: 'REST-08',
    heading: 'rest-routes',
    level: 'SHOULD',
    title: 'HEAD answers like GET, without a body',
    async run(subject) {
      const { id } = await created(subject);
      for (const path of ['/users', `/users/${id}`, '/nothing']) {
        const get = await subject.rest.send('GET', path);
        const head = await subject.rest.send('HEAD', path);
        assert.equal(head.status, get.status, path);
        assert.equal(head.text, '', path);
        assert.equal(head.headers['content-type'], get.headers['content-type'], path);
      }
    },
  },
  {
    id: 'REST-09',
    heading: 'rest-routes',
    level: 'SHOULD',
    title: 'without users the list is an empty array',
    needs: { place: 'apart' },
    async run(subject) {
      await created(subject);
      await created(subject);
      for (const { id } of await list(subject)) await remove(subject, id);
      const reply = await subject.rest.send('GET', '/users');
      assert.deepEqual(reply.json(), { status: 'success', data: [] });
    },
  },
  {
    id: 'REST-10',
    heading: 'rest-routes',
    level: 'MUST',
    needs: { place: 'apart' },
    title: 'the list holds every one of 1,200 users, of which 100 at a time were created at the same time',
    async run(subject) {
      const people = Array.from({ length: 1_200 }, person);
      for (let first = 0; first < people.length; first += 100) {
        const replies = await Promise.all(
          people.slice(first, first + 100).map((user) => post(subject, user)),
        );
        for (const reply of replies) assertMessage(reply, 'success', 'User created successfully');
      }
      const users = await list(subject);
      const names = new Map(users.map(({ name, email }) => [name, email]));
      for (const { name, email } of people) assert.equal(names.get(name), email);
      assert.equal(new Set(users.map(({ id }) => id)).size, users.length, 'every id is there once');
    },
  },
  {
    id: 'REST-11',
    heading: 'rest-routes',
    level: 'SHOULD',
    title: 'a query string does not change which resource is meant',
    async run(subject) {
      const user = await created(subject);
      assert.deepEqual(await read(subject, `${user.id}?trace=1`), user);
      assert.equal(
        (await subject.rest.send('GET', '/users?')).text,
        (await subject.rest.send('GET', '/users')).text,
      );
      assertMessage(await subject.rest.send('GET', '/nothing?x=/users'), 'error', 'Endpoint not found');
    },
  },
  {
    id: 'REST-12',
    heading: 'rest-envelope',
    level: 'SHOULD',
    title: 'the content type is exactly application/json, which has no parameters',
    async run(subject) {
      await created(subject);
      for (const path of ['/users', '/nothing']) {
        const reply = await subject.rest.send('GET', path);
        assert.equal(reply.headers['content-type'], 'application/json', path);
      }
    },
  },
];
