import assert from 'node:assert/strict';
import type { Check } from '../check.ts';
import { ask, assertRefused, changesNothing, dataOf, path } from '../clients/graphql.ts';
import { mediaType } from '../clients/rest.ts';

const browserAccept = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const responseType = 'application/graphql-response+json';
const mutation = 'mutation { createUser(name: "By GET", email: "get@example.org") { id } }';
const get = (query: string) => `${path}?query=${encodeURIComponent(query)}`;

/** Texts that are no GraphQL at all, and texts that this schema does not know. */
const malformed = [
  '{',
  '',
  '}',
  'hello',
  '{ hello',
  '{ user(id: ) { id } }',
  'query { hello } }',
  '{ "hello" }',
];
const invalid = [
  '{ nothing }',
  '{ users }',
  '{ users { password } }',
  '{ user { id } }',
  '{ user(id: "1", name: "x") { id } }',
  '{ user(id: true) { id } }',
  '{ hello { length } }',
  'query ($id: ID!) { user(id: $other) { id } }',
  'subscription { users { id } }',
  'mutation { deleteUser(id: "1") { id } }',
  '{ users { ...Missing } }',
];

/** GraphQL over HTTP. */
export const graphqlHttpChecks: readonly Check[] = [
  {
    id: 'GQL-40',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'the reply is a JSON object with a data member',
    async run(subject) {
      const reply = await ask(subject, { query: '{ hello }' });
      assert.equal(mediaType(reply), 'application/json');
      assert.equal(typeof dataOf(reply).hello, 'string');
    },
  },
  {
    id: 'GQL-41',
    heading: 'graphql-operations',
    level: 'SHOULD',
    title: 'the media type follows Accept; without one it is application/json',
    async run(subject) {
      const operation = { query: '{ hello }' };
      assert.equal(mediaType(await ask(subject, operation, responseType)), responseType);
      assert.equal(mediaType(await ask(subject, operation, '*/*')), 'application/json');
      const headers = { 'content-type': 'application/json' };
      const silent = await subject.graphql.send('POST', path, { headers, body: JSON.stringify(operation) });
      assert.equal(mediaType(silent), 'application/json');
      dataOf(silent);
    },
  },
  {
    id: 'GQL-42',
    heading: 'graphql-operations',
    level: 'SHOULD',
    title: 'a query may come by GET',
    async run(subject) {
      const reply = await subject.graphql.send('GET', get('{ hello }'), {
        headers: { accept: 'application/json' },
      });
      assert.equal(typeof dataOf(reply).hello, 'string');
      const variables = `&variables=${encodeURIComponent('{"id":"1"}')}`;
      const found = await subject.graphql.send(
        'GET',
        get('query ($id: ID!) { user(id: $id) { id } }') + variables,
      );
      assert.deepEqual(dataOf(found), { user: { id: '1' } });
    },
  },
  {
    id: 'GQL-43',
    heading: 'graphql-operations',
    level: 'SHOULD',
    title: 'a mutation by GET or HEAD is refused with 405 and creates nobody',
    async run(subject) {
      await changesNothing(subject, async () => {
        for (const accept of ['application/json', responseType, '*/*']) {
          const reply = await subject.graphql.send('GET', get(mutation), { headers: { accept } });
          assert.equal(reply.status, 405, accept);
          assert.match(String(reply.headers.allow), /\bPOST\b/);
        }
        await subject.graphql.send('HEAD', get(mutation), { headers: { accept: 'application/json' } });
        const named = `${get(`query A { hello } ${mutation.replace('mutation', 'mutation B')}`)}&operationName=B`;
        const reply = await subject.graphql.send('GET', named, { headers: { accept: 'application/json' } });
        assert.equal(reply.status, 405);
      });
    },
  },
  {
    id: 'GQL-44',
    heading: 'errors',
    level: 'SHOULD',
    title: 'malformed GraphQL is answered with errors and no data: 200 as application/json, else 400',
    async run(subject) {
      for (const query of malformed) {
        const reply = await ask(subject, { query });
        assertRefused(reply);
        if (query !== '') assert.equal(reply.status, 200, query);
        const strict = await ask(subject, { query }, responseType);
        assertRefused(strict);
        assert.equal(strict.status, 400, query);
      }
    },
  },
  {
    id: 'GQL-45',
    heading: 'errors',
    level: 'SHOULD',
    title: 'GraphQL that does not fit the schema is answered with errors and no data',
    async run(subject) {
      for (const query of invalid) {
        const reply = await ask(subject, { query });
        assertRefused(reply);
        assert.equal(reply.status, 200, query);
        const strict = await ask(subject, { query }, responseType);
        assertRefused(strict);
        assert.equal(strict.status, 400, query);
      }
    },
  },
  {
    id: 'GQL-46',
    heading: 'errors',
    level: 'SHOULD',
    title: 'a body that is no GraphQL request is 400',
    async run(subject) {
      const headers = { 'content-type': 'application/json' };
      for (const body of ['', '{', '[]', '[{"query":"{ hello }"}]', 'null', '1', '"{ hello }"', '{}']) {
        const reply = await subject.graphql.send('POST', path, { headers, body });
        assert.equal(reply.status, 400, body);
      }
      for (const wrong of [
        { query: 1 },
        { query: null },
        { query: ['{ hello }'] },
        { query: '{ hello }', variables: '{}' },
      ]) {
        const reply = await subject.graphql.send('POST', path, { headers, body: JSON.stringify(wrong) });
        assert.equal(reply.status, 400, JSON.stringify(wrong));
      }
    },
  },
  {
    id: 'GQL-47',
    heading: 'graphql-operations',
    level: 'SHOULD',
    title: 'null for variables, operationName and extensions is as if they were not there',
    async run(subject) {
      const reply = await subject.graphql.send('POST', path, {
        headers: { 'content-type': 'application/json' },
        body: '{"query":"{ hello }","variables":null,"operationName":null,"extensions":null}',
      });
      assert.equal(typeof dataOf(reply).hello, 'string');
    },
  },
  {
    id: 'GQL-48',
    heading: 'graphql-operations',
    level: 'SHOULD',
    title: 'a POST that a foreign page could send without asking is not executed',
    async run(subject) {
      await changesNothing(subject, async () => {
        for (const type of [
          'text/plain',
          'application/x-www-form-urlencoded',
          'multipart/form-data; boundary=x',
        ]) {
          const reply = await subject.graphql.send('POST', path, {
            headers: { 'content-type': type },
            body: JSON.stringify({ query: mutation }),
          });
          assert.ok(reply.status >= 400 && reply.status < 500, `${type}: ${reply.status}`);
        }
      });
    },
  },
  {
    id: 'GQL-49',
    heading: 'graphql-operations',
    level: 'SHOULD',
    title: 'other methods on the path are 405 with Allow',
    async run(subject) {
      dataOf(await ask(subject, { query: '{ hello }' }));
      for (const method of ['PUT', 'DELETE', 'PATCH']) {
        const reply = await subject.graphql.send(method, path);
        assert.equal(reply.status, 405, method);
        assert.match(String(reply.headers.allow), /\bGET\b.*\bPOST\b|\bPOST\b.*\bGET\b/);
      }
    },
  },
  {
    id: 'GQL-50',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'the path /graphql is the only endpoint',
    async run(subject) {
      dataOf(await ask(subject, { query: '{ hello }' }));
      const options = { headers: { 'content-type': 'application/json' }, body: '{"query":"{ hello }"}' };
      for (const other of ['/', '/graphql/x', '/graphqlx', '/GraphQL', '/api/graphql', '/users']) {
        const reply = await subject.graphql.send('POST', other, options);
        assert.equal(reply.status, 404, other);
        assert.ok(!reply.text.includes('"data"'), other);
      }
    },
  },
  {
    id: 'GQL-51',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'a browser that opens the path gets an interactive page',
    async run(subject) {
      const page = await subject.graphql.send('GET', path, { headers: { accept: browserAccept } });
      assert.equal(page.status, 200);
      assert.equal(mediaType(page), 'text/html');
      assert.match(page.text, /<html[\s>]/i);
      assert.match(page.text, /<script[\s>]/i);
    },
  },
  {
    id: 'GQL-52',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'a client that wants JSON never gets the page',
    async run(subject) {
      for (const accept of ['application/json', responseType, '*/*', undefined]) {
        const headers = accept === undefined ? {} : { accept };
        const bare = await subject.graphql.send('GET', path, { headers });
        assert.notEqual(mediaType(bare), 'text/html', String(accept));
        const query = await subject.graphql.send('GET', get('{ hello }'), { headers });
        assert.notEqual(mediaType(query), 'text/html', String(accept));
        dataOf(query);
      }
    },
  },
  {
    id: 'GQL-53',
    heading: 'graphql-operations',
    level: 'SHOULD',
    title: 'all that the page asks for comes from this door, and is there',
    async run(subject) {
      const page = await subject.graphql.send('GET', path, { headers: { accept: browserAccept } });
      const links = [
        ...page.text.matchAll(/<(?:script|link|img)\b[^>]*?\b(?:src|href)\s*=\s*["']?([^"'\s>]+)/gi),
      ];
      assert.ok(links.length > 0, 'the page has scripts or styles');
      for (const [, link = ''] of links) {
        if (link.startsWith('data:')) continue;
        const url = new URL(link, 'http://portico.invalid/graphql');
        assert.equal(url.origin, 'http://portico.invalid', link);
        const asset = await subject.graphql.send('GET', url.pathname + url.search);
        assert.equal(asset.status, 200, link);
        assert.ok(asset.text.length > 0, link);
        assert.match(mediaType(asset), /javascript|css|image|font|manifest/, link);
      }
    },
  },
];
