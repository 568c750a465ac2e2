import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { cp, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { loadService } from '../../scripts/service-loader.ts';
import { buildPackage } from '../support/package.ts';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const ROOT = join(import.meta.dirname, '../..');

const { built, ...cleanup } = await buildPackage();
after(() => cleanup[Symbol.asyncDispose]());

/** The built package alone in a folder: no packages beside it, no home, no variables. */
async function aloneIn(path: string): Promise<string> {
  const alone = join(path, 'node_modules/portico');
  await mkdir(join(path, 'node_modules'));
  await cp(built, alone, { recursive: true });
  return join(alone, 'bin/portico.js');
}

test('the command runs with nothing beside it: four doors, its threads, the query tool, a configuration module', async () => {
  await using place = await temporaryFolder();
  const main = await aloneIn(place.path);
  const home = join(place.path, 'home');
  await mkdir(home);
  await writeFile(
    join(place.path, 'portico.config.ts'),
    `import { defineConfig, type Delivery } from 'portico';
export default defineConfig({
  management: { include: ['health', 'info', 'own', 'cpuprofile'], endpointAccess: 'cpuprofile=read-only', endpoints: [{ id: 'own', read: () => 'mine' }] },
  webhook: {
    handlers: {
      e: (delivery: Delivery) => console.error('handled', delivery.data),
      i: { handler: ({ data }, { log }) => log.info({ data }, 'isolated'), isolate: true },
    },
  },
});\n`,
  );
  await using portico = startPortico({ cwd: place.path, main, env: { HOME: home } });
  await portico.ready();
  const { graphql, rest, management, webhook } = portico.urls;
  const post = (url: string, body: unknown) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const hello = await post(`${graphql}/graphql`, { query: '{ hello }' });
  assert.match(await hello.text(), /Hello/);
  // Written by the thread, read by this one.
  assert.equal((await post(`${rest}/users`, { name: 'a', email: 'a@b.cd' })).status, 200);
  assert.match(await (await fetch(`${rest}/users/1`)).text(), /a@b\.cd/);
  assert.equal(await (await post(`${webhook}/webhook`, { event: 'e', data: 7 })).text(), 'Webhook received');
  assert.equal(await (await post(`${webhook}/webhook`, { event: 'i', data: 8 })).text(), 'Webhook received');
  await waitFor('it to be handled in a thread', () =>
    portico.logs().some(({ msg, data }) => msg === 'isolated' && data === 8),
  );
  assert.equal(await (await fetch(`${management}/actuator/own`)).text(), 'mine');
  const profile = await (await fetch(`${management}/actuator/cpuprofile?seconds=1`)).text();
  assert.match(profile, /^\{"nodes":/);
  const { build } = (await (await fetch(`${management}/actuator/info`)).json()) as {
    build: Record<string, string>;
  };
  assert.equal(build.name, 'portico');
  assert.ok(Date.parse(build.time ?? '') > 0);
  const page = await (await fetch(`${graphql}/graphql`, { headers: { accept: 'text/html' } })).text();
  const [, script = ''] = /src="([^"]+\.js)"/.exec(page) ?? [];
  assert.equal((await fetch(new URL(script, `${graphql}/graphql`))).status, 200, script);
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);
  assert.match(portico.stderr, /handled 7/);
  assert.deepEqual(await readdir(home), []);
});

/** The schemas of a module, and what the command, which holds a GraphQL.js of its own, answers with them. */
const schemas = {
  // Beside the command there is no GraphQL.js.
  'type definitions': [
    `export default { graphql: {
      typeDefs: 'extend type Query { day: Day } scalar Day',
      resolvers: { Query: { day: () => 7 }, Day: { serialize: (value) => 'day ' + value } },
    } };`,
    '{"data":{"hello":"Hello from Portico!","day":"day 7"}}',
  ],
  "the types and errors of the user's own GraphQL.js": [
    `import { GraphQLError, GraphQLScalarType, parse } from 'graphql';
    const fail = () => { throw new GraphQLError('for you'); };
    export default { graphql: {
      typeDefs: parse('extend type Query { day: Day } scalar Day'),
      resolvers: { Query: { day: fail }, Day: new GraphQLScalarType({ name: 'Day' }) },
    } };`,
    /^\{"errors":\[\{"message":"for you",.*"data":\{"hello":"Hello from Portico!","day":null\}\}$/,
  ],
  "a schema of the user's own GraphQL.js": [
    `import { buildSchema } from 'graphql';
    const schema = buildSchema('type Query { hello: String day: Day } enum Day { MONDAY SUNDAY }');
    Object.assign(schema.getQueryType().getFields().day, { resolve: () => 'SUNDAY' });
    export default { graphql: { schema } };`,
    '{"data":{"hello":null,"day":"SUNDAY"}}',
  ],
} as const;
for (const [what, [module, expected]] of Object.entries(schemas)) {
  test(`the command takes ${what}`, async () => {
    await using place = await temporaryFolder();
    const main = await aloneIn(place.path);
    if (module.includes(' from ')) {
      await symlink(join(ROOT, 'node_modules/graphql'), join(place.path, 'node_modules/graphql'));
    }
    await writeFile(join(place.path, 'portico.config.ts'), module);
    await using portico = startPortico({ cwd: place.path, main, env: { INTERFACES: 'graphql' } });
    await portico.ready();
    const reply = await fetch(`${portico.urls.graphql}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"query":"{ hello day }"}',
    });
    const text = await reply.text();
    if (typeof expected === 'string') assert.equal(text, expected);
    else assert.match(text, expected);
  });
}

test('the other commands of the bundle run alone too, help and version without the service', async () => {
  await using place = await temporaryFolder();
  const main = await aloneIn(place.path);
  const run = async (...args: readonly string[]) =>
    (await promisify(execFile)(process.execPath, [main, ...args], { cwd: place.path, env: {} })).stdout;
  assert.equal(
    await run('--version'),
    `${JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version}\n`,
  );
  assert.match(await run('help', 'serve'), /--webhook-secret/);
  assert.match(await run('migrate'), /001-schema\.sql/);
  assert.equal(await run('deliveries', 'list', '--json'), '{"items":[],"next":null}\n');
});

test('what a user can mend is a text without a stack, though the service is a bundle of its own', async () => {
  await using place = await temporaryFolder();
  const main = await aloneIn(place.path);
  const start = promisify(execFile)(process.execPath, [main, 'serve', '--rest-port', 'none'], {
    cwd: place.path,
    env: {},
  });
  await assert.rejects(start, ({ code, stderr }: { code: number; stderr: string }) => {
    assert.equal(code, 2);
    assert.match(stderr, /^portico: /);
    assert.doesNotMatch(stderr, /\n\s+at /);
    return true;
  });
});

test('the package holds no sources and no tests, and the licence of each package inside', () => {
  const files = globSync('**/*', { cwd: built });
  const strays = files.filter((name) => /(?<!\.d)\.ts$|\.test\.|node_modules/.test(name));
  assert.deepEqual(strays, []);
  const licenses = readFileSync(join(built, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
  for (const name of ['fastify', 'graphql', 'pg', 'pino', 'valibot', 'find-my-way', 'avvio']) {
    assert.match(licenses, new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(MIT\\)$`, 'm'));
  }
  assert.ok(licenses.split('Permission is hereby granted').length > 20, 'their texts');
  assert.match(readFileSync(join(built, 'build/graphiql/LICENSES.txt'), 'utf8'), /^react \d/m);
  const { peerDependencies } = JSON.parse(readFileSync(join(built, 'package.json'), 'utf8'));
  assert.deepEqual(Object.keys(peerDependencies), ['@opentelemetry/api', 'fastify', 'graphql']);
});

test('the client of relations is one file, which a browser can load as it is', async () => {
  const file = join(built, 'src/client.js');
  const text = readFileSync(file, 'utf8');
  assert.doesNotMatch(text, /\bimport\b|\bprocess\b|node:/);
  const { client, PorticoError, result } = await import(pathToFileURL(file).href);
  for (const each of [client, PorticoError, result]) assert.equal(typeof each, 'function');
});

test('the code that the build has compiled is taken by the Node that built it', () => {
  const { script } = loadService(pathToFileURL(join(built, 'bin/service/serve.js')));
  assert.equal(script.cachedDataRejected, false);
});

test('an old Node gets one sentence from the package too', () => {
  const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.0.0' } });
    delete process.getBuiltinModule;`;
  const preload = ['--import', `data:text/javascript,${encodeURIComponent(old)}`];
  const run = spawnSync(process.execPath, [...preload, join(built, 'bin/portico.js')], { encoding: 'utf8' });
  assert.equal(run.status, 1);
  assert.match(run.stderr, /^portico: Portico needs Node 24 or newer, and this is Node 18\.0\.0 \(.*\)\.\n$/);
  const { engines } = JSON.parse(readFileSync(join(built, 'package.json'), 'utf8'));
  assert.equal(engines.node, '>=24');
});
