import assert from 'node:assert/strict';
import type { Check } from '../check.ts';
import { ask, assertRefused, changesNothing, create, data, path } from '../clients/graphql.ts';
import { created, read } from '../clients/rest.ts';
import { unique } from '../clients/unique.ts';
import { settings } from '../modules.ts';

const repeat = (count: number, part: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => part(i));

const fragments = repeat(500, (i) => `fragment F${i} on Query { hello ...F${i + 1} ...F${i + 1} }`);

/** Documents that cost the server far more than the client. */
const greedy: readonly (readonly [id: string, what: string, documents: readonly string[]])[] = [
  [
    'GQL-60',
    'thousands of aliases',
    [
      `{ ${repeat(5_000, (i) => `a${i}: __typename`).join(' ')} }`,
      `{ ${repeat(2_000, (i) => `a${i}: users { id }`).join(' ')} }`,
    ],
  ],
  ['GQL-65', 'ten thousand tokens', [`{ ${'hello '.repeat(10_000)}}`]],
  ['GQL-66', 'thousands of directives', [`{ ${'hello @include(if: true) '.repeat(2_000)}}`]],
  [
    'GQL-67',
    'more levels than any sane query',
    [`{ __schema ${'{ types { fields { type { ofType '.repeat(40)}{ name }${' } } } }'.repeat(40)} }`],
  ],
  [
    'GQL-68',
    'fragments that double at each step, or go round in a circle',
    [
      `{ ...F0 } ${fragments.join(' ')} fragment F500 on Query { hello }`,
      '{ users { ...A } } fragment A on User { ...B } fragment B on User { ...A }',
    ],
  ],
];

/** What one request may cost. */
export const graphqlLimitChecks: readonly Check[] = [
  ...greedy.map(
    ([id, what, documents]): Check => ({
      id,
      heading: 'limits',
      level: 'SHOULD',
      title: `a document with ${what} is refused`,
      async run(subject) {
        for (const query of documents) {
          const reply = await ask(subject, { query });
          if (reply.status === 200) assertRefused(reply);
          else assert.ok(reply.status >= 400 && reply.status < 500, String(reply.status));
        }
        assert.equal(typeof (await data(subject, '{ hello }')).hello, 'string');
      },
    }),
  ),
  {
    id: 'GQL-61',
    heading: 'limits',
    level: 'SHOULD',
    title: 'a list of operations in one request is refused as a whole',
    async run(subject) {
      const one = { query: 'mutation { createUser(name: "Batch", email: "b@example.org") { id } }' };
      const reply = await changesNothing(subject, () =>
        subject.graphql.send('POST', path, {
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify([one, one]),
        }),
      );
      assert.equal(reply.status, 400);
    },
  },
  {
    id: 'GQL-62',
    heading: 'graphql-operations',
    level: 'SHOULD',
    title: 'the path is a setting',
    needs: { env: settings.shownValues },
    async run(subject) {
      const options = { headers: { 'content-type': 'application/json' }, body: '{"query":"{ hello }"}' };
      const reply = await subject.graphql.send('POST', '/api/v2/graph', options);
      assert.equal(reply.status, 200);
      assert.match(reply.text, /^\{"data":\{"hello":"/);
      assert.equal((await subject.graphql.send('POST', path, options)).status, 404);
    },
  },
  {
    id: 'GQL-64',
    heading: 'graphql-operations',
    level: 'SHOULD',
    title: 'with users from the database GraphQL and REST serve the same users',
    needs: { env: settings.twoSecrets },
    async run(subject) {
      const { id, name, email } = await created(subject);
      const found = await data(subject, `{ user(id: "${id}") { id name email } }`);
      assert.deepEqual(found, { user: { id: String(id), name, email } });
      const made = await create(subject, unique('Grace'), 'grace@example.org');
      assert.deepEqual(await read(subject, made.id), { ...made, id: Number(made.id) });
      assert.deepEqual(await data(subject, `{ user(id: "0${id}") { id } }`), { user: null });
    },
  },
  {
    id: 'GQL-63',
    heading: 'errors',
    level: 'SHOULD',
    title: 'errors tell nothing about the insides of the program',
    async run(subject) {
      for (const query of ['{', '{ nothing }', '{ user(id: {}) { id } }']) {
        const reply = await ask(subject, { query });
        assertRefused(reply);
        assert.doesNotMatch(reply.text, /node_modules|\.[jt]s:\d+|"stack"|\bat .+:\d+:\d+/);
      }
    },
  },
];
