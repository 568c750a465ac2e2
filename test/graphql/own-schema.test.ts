import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient } from 'graphql-sse';
import { startConfigExample } from '../support/config-example.ts';
import { runPortico } from '../support/portico-process.ts';
import { startTestService } from '../support/service.ts';
import { checkShownRequests, runShown, shownCommand, shownCommands } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ask, openDoor } from './support/door.ts';

const SERVE = shownCommand('examples/own-schema/README.md', /^npm start -- /);
const REQUESTS = shownCommands('examples/own-schema/README.md', /^curl -s /);
const SUBSCRIBE = shownCommand('examples/own-schema/README.md', /^curl -N /);

test('the command finds the schema of the example, whose README shows what comes back', async () => {
  await using portico = await startConfigExample(SERVE, { INTERFACES: 'graphql' });
  const origin = portico.urls.graphql ?? '';
  const urls = { graphql: origin };
  await checkShownRequests(REQUESTS, urls);
  const { stdout } = await runShown(SUBSCRIBE, { cwd: import.meta.dirname, urls });
  assert.equal(stdout.match(/"countdown":\d/g)?.length, 4);
  const client = createClient({ url: `${origin}/graphql`, fetchFn: fetch, retryAttempts: 0 });
  const results: unknown[] = [];
  for await (const { data } of client.iterate({ query: 'subscription { countdown(from: 2) }' })) {
    results.push(data?.countdown);
  }
  assert.deepEqual(results, [2, 1, 0]);
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);
});

/** The configuration module that a page shows first behind a text, without its import. */
function shown(page: string, behind: string): string {
  const text = readFileSync(join(import.meta.dirname, '../..', page), 'utf8');
  const [, code = ''] = /```ts\n(.*?)```/s.exec(text.slice(text.indexOf(behind))) ?? [];
  return code.replace(/^import .*\n/, '').replace('defineConfig(', '(');
}

test('the modules that the documentation shows do what it says', async () => {
  {
    await using door = await openDoor({ module: shown('docs/GRAPHQL.md', '## Your own schema') });
    assert.deepEqual((await ask(door.url, '{ hello shout(text: "a") user(id: 1) { initials } }')).body.data, {
      hello: 'Hello from Portico!',
      shout: 'A',
      user: { initials: 'AL' },
    });
  }
  const env = { INTERFACES: 'graphql,rest' };
  await using door = await openDoor({ env, module: shown('docs/TOUR.md', 'A GraphQL field needs') });
  assert.deepEqual((await ask(door.url, '{ shout(text: "b") }')).body.data, { shout: 'B' });
  assert.equal(await (await fetch(`${door.service.urls.rest}/greeting`)).text(), 'Hello!');
});

test('every mistake is in one list at the start, beside those of other options', async () => {
  await using folder = await temporaryFolder();
  const module = `export default { rest: { prot: 1 }, webhook: { sources: 7 }, graphql: {
    context: 1, setup: 2,
    typeDefs: 'extend type Query { books: [String] }',
    resolvers: { Query: { boks: () => [] } },
  } };`;
  await writeFile(join(folder.path, 'portico.config.ts'), module);
  const { code, stderr } = await runPortico(['serve'], { cwd: folder.path });
  assert.equal(code, 2);
  const problems = stderr.split('\n').filter((line) => line.startsWith('  - '));
  assert.deepEqual(
    problems.map((line) => line.replace('  - portico.config.ts', '')),
    [
      ' has an unknown key "rest.prot"; did you mean rest.port?',
      ': graphql.context must be a function',
      ': graphql.setup must be a function',
      ': webhook.sources must be an object of sources by name',
      ': graphql.resolvers.Query.boks is not a field of Query; did you mean books?',
    ],
  );
});

test('a service that is embedded refuses a schema with mistakes too', async () => {
  const module = `export default { graphql: { typeDefs: 'type' } };`;
  await assert.rejects(startTestService({ module }), {
    code: 'CONFIG_INVALID',
    message: /graphql\.typeDefs has a syntax error/,
  });
});

/** Fields over the users of the door, and one that shows the context. */
const USERS = `
  typeDefs: \`
    extend type Query { names: [String!]! who: String }
    extend type Mutation { invite(name: String!): User! }
    extend type Subscription { joined: String! first: String }
  \`,
  resolvers: {
    Query: {
      names: async (_parent, _args, { users }) => {
        const names = [];
        for await (const { name } of await users.all()) names.push(name);
        return names;
      },
      who: (_parent, _args, { who }) => who,
    },
    Mutation: { invite: (_parent, { name }, { users }) => users.add({ name, email: name + '@example.com' }) },
    Subscription: {
      joined: { subscribe: (_parent, _args, { users }) => users.created(), resolve: ({ name }) => name },
      first: { subscribe: async function* (_parent, _args, { who }) { yield who; }, resolve: (who) => who },
    },
  },`;

for (const kind of ['memory', 'database'] as const) {
  test(`resolvers have the users of the door: ${kind}`, async () => {
    const env = { GRAPHQL_USERS: kind, GRAPHQL_MAX_USERS: '4' };
    await using door = await openDoor({ env, module: `export default { graphql: { ${USERS} } };` });
    const before = (await ask(door.url, '{ names }')).body.data?.names as string[];
    const client = createClient({ url: door.url, fetchFn: fetch, retryAttempts: 0 });
    const connected = Promise.withResolvers<void>();
    const joined = client.iterate(
      { query: 'subscription { joined }' },
      { connected: () => connected.resolve() },
    );
    const first = joined.next();
    await connected.promise;
    const invited = await ask(door.url, 'mutation { invite(name: "Grace") { name email } }');
    assert.deepEqual(invited.body.data, { invite: { name: 'Grace', email: 'Grace@example.com' } });
    assert.deepEqual((await first).value, { data: { joined: 'Grace' } });
    assert.deepEqual((await ask(door.url, '{ names }')).body.data?.names, [...before, 'Grace']);
    await joined.return?.();

    // A refusal of the store is the client's business.
    if (kind === 'database') return;
    await ask(door.url, 'mutation { invite(name: "Edsger") { id } }');
    const { body } = await ask(door.url, 'mutation { invite(name: "Barbara") { id } }');
    assert.equal(body.errors?.[0]?.extensions?.code, 'COLLECTION_FULL');
  });
}

test('a context is made of each request, at once or later, and knows the users', async () => {
  const context = `context: async (request, { users }) => {
    if (request.headers['x-who'] === 'nobody') throw new Error('no context');
    return { users, who: await request.headers['x-who'] };
  },`;
  await using door = await openDoor({ module: `export default { graphql: { ${context} ${USERS} } };` });
  for (const who of ['Ada', 'Alan']) {
    assert.deepEqual((await ask(door.url, '{ who names }', { 'x-who': who })).body.data, {
      who,
      names: ['Ada Lovelace', 'Alan Turing'],
    });
  }
  const streamed = await ask(door.url, '{ who }', { 'x-who': 'Ada', accept: 'text/event-stream' });
  assert.match(streamed.text, /"who":"Ada"/);
  const subscribed = await ask(door.url, 'subscription { first }', {
    'x-who': 'Ada',
    accept: 'text/event-stream',
  });
  assert.match(subscribed.text, /"first":"Ada"/);
  const failed = await ask(door.url, '{ who }', { 'x-who': 'nobody' });
  assert.equal(failed.status, 500);
  assert.doesNotMatch(failed.text, /no context/);
  const page = await fetch(door.url, { headers: { accept: 'text/html', 'x-who': 'nobody' } });
  assert.equal(page.status, 200, 'a page needs no context');
});
