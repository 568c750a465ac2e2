import assert from 'node:assert/strict';
import type { Check } from '../check.ts';
import {
  ask,
  assertRefused,
  changesNothing,
  create,
  createMutation,
  data,
  type GraphUser,
  users,
} from '../clients/graphql.ts';
import { list } from '../clients/rest.ts';
import { texts } from '../clients/texts.ts';
import { unique } from '../clients/unique.ts';

const byId = 'query ($id: ID!) { user(id: $id) { id name email } }';

/** The collection of users in memory. */
export const graphqlUserChecks: readonly Check[] = [
  {
    id: 'GQL-20',
    heading: 'graphql-user',
    level: 'MUST',
    title: 'at the start there are exactly two users, "1" and "2"',
    needs: { place: 'first' },
    async run(subject) {
      const found = await users(subject);
      assert.deepEqual(
        found.map(({ id }) => id),
        ['1', '2'],
      );
      for (const { name, email } of found) {
        assert.equal(typeof name, 'string');
        assert.equal(typeof email, 'string');
      }
    },
  },
  {
    id: 'GQL-21',
    heading: 'graphql-user',
    level: 'MUST',
    title: 'the first created user is "3", the second "4"',
    needs: { place: 'first' },
    async run(subject) {
      assert.equal((await create(subject, 'Ada', 'ada@example.org')).id, '3');
      assert.equal((await create(subject, 'Ada', 'ada@example.org')).id, '4');
    },
  },
  {
    id: 'GQL-22',
    heading: 'graphql-user',
    level: 'MUST',
    title: 'a new id is the decimal string of the number of users + 1, whatever that number is',
    async run(subject) {
      for (let round = 0; round < 12; round += 1) {
        const count = (await users(subject)).length;
        assert.strictEqual((await create(subject, 'Ada', 'ada@example.org')).id, String(count + 1));
      }
    },
  },
  {
    id: 'GQL-23',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'createUser appends: the user is the last of users, and user finds it',
    async run(subject) {
      const before = await users(subject);
      const [name, email] = [unique('Ada'), 'ada@example.org'];
      const made = await create(subject, name, email);
      assert.deepEqual(made, { id: made.id, name, email });
      assert.deepEqual(await users(subject), [...before, made]);
      assert.deepEqual(await data(subject, byId, { id: made.id }), { user: made });
    },
  },
  {
    id: 'GQL-24',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'user is null, without an error, when no user has that id',
    async run(subject) {
      for (const id of ['0', '-1', '999999999', 'x', '', 'null', '__proto__', 'constructor', 'length']) {
        assert.deepEqual(await data(subject, byId, { id }), { user: null }, id);
      }
    },
  },
  {
    id: 'GQL-25',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'user compares ids as strings: what merely means the same number is another id',
    async run(subject) {
      for (const id of ['01', ' 1', '1 ', '1.0', '+1', '1e0', '0x1', '１', '\u00001', '1\n', '1,2']) {
        assert.deepEqual(await data(subject, byId, { id }), { user: null }, JSON.stringify(id));
      }
    },
  },
  {
    id: 'GQL-26',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'an integer is coerced to an ID, as a literal and as a variable',
    async run(subject) {
      assert.deepEqual(await data(subject, '{ user(id: 1) { id } }'), { user: { id: '1' } });
      const { user } = await data(subject, byId, { id: 2 });
      assert.equal((user as GraphUser).id, '2');
    },
  },
  {
    id: 'GQL-27',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'two creations in one document happen in its order',
    async run(subject) {
      const count = (await users(subject)).length;
      const answer = await data(
        subject,
        `mutation { one: createUser(name: "One", email: "1@example.org") { id name }
                    two: createUser(name: "Two", email: "2@example.org") { id name } }`,
      );
      assert.deepEqual(answer, {
        one: { id: String(count + 1), name: 'One' },
        two: { id: String(count + 2), name: 'Two' },
      });
    },
  },
  {
    id: 'GQL-28',
    heading: 'graphql-user',
    level: 'MUST',
    title: 'users that are created at the same time have consecutive ids',
    async run(subject) {
      const count = (await users(subject)).length;
      const made = await Promise.all(
        Array.from({ length: 40 }, () => create(subject, 'Ada', 'ada@example.org')),
      );
      const ids = made.map(({ id }) => Number(id)).toSorted((a, b) => a - b);
      assert.deepEqual(
        ids,
        Array.from({ length: 40 }, (_, index) => count + 1 + index),
      );
    },
  },
  {
    id: 'GQL-29',
    heading: 'graphql-user',
    level: 'MUST',
    title: 'any text comes back exactly as it was sent, as a variable and as a literal',
    async run(subject) {
      for (const text of texts) {
        const made = await create(subject, text, `${text}@example.org`);
        assert.deepEqual(await data(subject, byId, { id: made.id }), {
          user: { id: made.id, name: text, email: `${text}@example.org` },
        });
      }
      const quoted = 'say \\"hi\\" \\\\ \\u00e9\\n😀 漢';
      const { createUser } = await data(
        subject,
        `mutation { createUser(name: "${quoted}", email: "q@example.org") { name } }`,
      );
      assert.deepEqual(createUser, { name: 'say "hi" \\ é\n😀 漢' });
    },
  },
  {
    id: 'GQL-30',
    heading: 'interfaces',
    level: 'MUST',
    title: 'users are in memory: after a restart there are the two of the start again',
    needs: { place: 'apart', restart: true },
    async run(subject) {
      const before = await users(subject);
      await create(subject, 'Ada', 'ada@example.org');
      await subject.restart?.();
      assert.deepEqual(await users(subject), before.slice(0, 2));
      assert.equal((await create(subject, 'Ada', 'ada@example.org')).id, '3');
    },
  },
  {
    id: 'GQL-31',
    heading: 'interfaces',
    level: 'MUST',
    title: 'the interfaces are independent: a GraphQL user is no REST user and the other way round',
    async run(subject) {
      const [name, email] = [unique('Ada'), 'ada@example.org'];
      const before = await list(subject);
      await create(subject, name, email);
      assert.deepEqual(await list(subject), before);
      const other = unique('Grace');
      await changesNothing(subject, () =>
        subject.rest.send('POST', '/users', { body: JSON.stringify({ name: other, email }) }),
      );
      assert.ok((await list(subject)).some((user) => user.name === other));
    },
  },
  {
    id: 'GQL-32',
    heading: 'errors',
    level: 'SHOULD',
    title: 'createUser without a name or an email, or with a wrong type, creates nobody',
    async run(subject) {
      await changesNothing(subject, async () => {
        for (const variables of [
          {},
          { name: 'Ada' },
          { name: 'Ada', email: null },
          { name: 1, email: 'ada@example.org' },
          { name: ['Ada'], email: 'ada@example.org' },
          { name: { first: 'Ada' }, email: 'ada@example.org' },
        ]) {
          assertRefused(await ask(subject, { query: createMutation, variables }));
        }
        for (const args of ['(name: "Ada")', '(name: "Ada", email: null)', '(name: 1, email: "a@b")', '']) {
          assertRefused(await ask(subject, { query: `mutation { createUser${args} { id } }` }));
        }
        const extra = '(name: "Ada", email: "a@b", id: "9")';
        assertRefused(await ask(subject, { query: `mutation { createUser${extra} { id } }` }));
      });
    },
  },
];
