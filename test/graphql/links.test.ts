import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { readLink } from '../../src/graphql/graphiql/page/link.ts';
import { readExamples, startWith } from '../../src/graphql/graphiql/page/start.ts';
import { ask, type GraphqlDoor, openDoor, send } from './support/door.ts';

const BROWSERS = [
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8',
  'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'text/html',
];
const PROGRAMS = [
  undefined,
  '*/*',
  'application/json',
  'application/graphql-response+json',
  'application/json, text/html;q=0.9',
  'text/html, application/json',
];
const mutation = 'mutation { createUser(name: "Link", email: "link@example.org") { id } }';

describe('a link with an operation', () => {
  let door: GraphqlDoor;
  before(async () => {
    door = await openDoor();
  });
  after(() => door[Symbol.asyncDispose]());

  const follow = (parameters: Record<string, string>, accept: string | undefined, method = 'GET') =>
    send(`${door.url}?${new URLSearchParams(parameters)}`, {
      method,
      headers: accept === undefined ? {} : { accept },
    });

  for (const accept of BROWSERS) {
    test(`is the page to ${accept}, whatever it holds, and runs nothing`, async () => {
      const page = await send(door.url, { headers: { accept } });
      assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
      for (const parameters of [
        { query: '{ hello }' },
        { query: mutation },
        { query: 'subscription { userCreated { id } }' },
        { query: '' },
        { query: '{ users', variables: '{"id": oops', operationName: 'None' },
        { query: '"><script>alert(1)</script>' },
      ]) {
        const { status, headers, text } = await follow(parameters, accept);
        assert.equal(status, 200, parameters.query);
        // The page does not hold what the link says: its own script reads the link.
        assert.equal(text, page.text);
        for (const name of ['content-type', 'content-security-policy', 'cache-control', 'vary']) {
          assert.equal(headers[name], page.headers[name]);
        }
      }
      assert.equal((await follow({ query: mutation }, accept, 'HEAD')).status, 200);
      assert.equal((await ask(door.url, '{ users { id } }')).text.match(/"id"/g)?.length, 2);
    });
  }

  for (const accept of PROGRAMS) {
    test(`is its result to Accept: ${accept ?? '(absent)'}`, async () => {
      const query = 'query A { hello } query B($id: ID!) { user(id: $id) { id } }';
      const { status, text } = await follow({ query, operationName: 'B', variables: '{"id":"2"}' }, accept);
      assert.deepEqual([status, text], [200, '{"data":{"user":{"id":"2"}}}']);
      assert.equal((await follow({ query: mutation }, accept)).status, 405);
    });
  }
});

describe('what the page takes from a link', () => {
  test('the query, the variables as they stand, and the name of the operation', () => {
    const search = `?${new URLSearchParams({ query: '{ a }\n', variables: '{"x": oops', operationName: 'A' })}`;
    assert.deepEqual(readLink(search), { query: '{ a }\n', variables: '{"x": oops', operationName: 'A' });
    assert.deepEqual(readLink('?query=%7B+a%20%7D'), {
      query: '{ a }',
      variables: '',
      operationName: undefined,
    });
  });

  test('nothing without a query', () => {
    for (const search of ['', '?', '?query=', '?query=%20', '?variables={}&operationName=A', '?Query={a}']) {
      assert.equal(readLink(search), undefined, search);
    }
  });

  test('a link has a tab of its own, before the first ones, without headers', () => {
    const link = readLink('?query={a}&headers={"x":"y"}&initialHeaders={"x":"y"}&extensions={"x":1}');
    const examples = readExamples(undefined);
    const tabs = { defaultQuery: examples.newTab };
    assert.deepEqual(startWith(link, examples), {
      ...tabs,
      defaultTabs: [{ query: '{a}', variables: '' }, ...examples.tabs],
      initialQuery: '{a}',
      initialVariables: '',
      initialHeaders: '',
    });
    assert.deepEqual(startWith(undefined, examples), { ...tabs, defaultTabs: examples.tabs });
  });
});
