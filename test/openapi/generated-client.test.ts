import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { documentOf, startDescribed } from './described-service.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A client in the types of the document; what it must not allow is marked. */
const CLIENT = `import type { components, operations, paths } from './api.d.ts';

type Json<R> = R extends { content: { 'application/json': infer B } } ? B : never;
type Reply<P extends keyof paths> = paths[P] extends { get: { responses: { 200: infer R } } } ? Json<R> : never;
type NewUser = components['schemas']['NewUser'];
type Book = components['schemas']['books.Row'];

export async function read<P extends keyof paths>(base: string, path: P): Promise<Reply<P>> {
  return (await (await fetch(base + path, { headers: { accept: 'application/json' } })).json()) as Reply<P>;
}

export async function create(base: string, user: NewUser): Promise<string> {
  const method: keyof paths['/users'] & 'post' = 'post';
  const reply = await fetch(base + '/users', { method, body: JSON.stringify(user) });
  const { message } = (await reply.json()) as Json<operations['createUser']['responses'][200]>;
  return message;
}

export async function namesOf(base: string): Promise<readonly string[]> {
  return (await read(base, '/users')).data.map(({ id, name }) => \`\${id satisfies number | undefined} \${name}\`);
}

export async function statusOf(base: string): Promise<'UP' | 'DOWN' | 'OUT_OF_SERVICE' | 'UNKNOWN'> {
  return (await read(base, '/actuator/health')).status;
}

export async function createBook(base: string, book: components['schemas']['books.NewRow']): Promise<Book> {
  const reply = await fetch(base + '/books', { method: 'POST', body: JSON.stringify(book) });
  const created = (await reply.json()) as Json<operations['books.create']['responses'][201]>;
  if (Array.isArray(created)) throw new Error('several books');
  return created;
}

export async function pricesOf(base: string, query: operations['books.list']['parameters']['query']) {
  const books = await read(base, \`/books?\${new URLSearchParams({ title: query?.title?.[0] ?? '' })}\` as '/books');
  return books.map(({ price, published }) => [price, published satisfies string | null | undefined] as const);
}

export async function raise(base: string, { id }: Book, change: components['schemas']['books.Patch']): Promise<string> {
  const method: keyof paths['/books/{id}'] & 'patch' = 'patch';
  const reply = await fetch(base + '/books/' + id, { method: method.toUpperCase(), body: JSON.stringify(change) });
  const { price } = (await reply.json()) as Json<operations['books.change']['responses'][200]>;
  return price;
}

const key: Parameters<(of: paths['/loans/{book_id},{reader}']['get']['parameters']['path']) => void>[0] = {
  book_id: 1,
  reader: 'ann',
};
void key;

export async function publish(base: string, event: components['schemas']['NewEvent']): Promise<number | undefined> {
  const method: keyof paths['/events'] & 'post' = 'post';
  const reply = await fetch(base + '/events', { method, body: JSON.stringify(event) });
  const published = (await reply.json()) as Json<operations['events.publish']['responses'][202]>;
  return 'events' in published ? published.events[0]?.endpoints : published.endpoints;
}

export async function hook(base: string, tenant: string, url: string): Promise<string> {
  const path = \`\${base}/webhooks/tenants/\${tenant}/endpoints\`;
  const reply = await fetch(path, { method: 'POST', body: JSON.stringify({ url }) });
  const { secret } = (await reply.json()) as Json<operations['webhooks.createEndpoint']['responses'][201]>;
  return secret;
}

// @ts-expect-error
void ((base: string) => publish(base, { tenant: 'acme', data: 1 }));
// @ts-expect-error
void ((base: string) => createBook(base, { author_id: 1 }));
// @ts-expect-error
void ((base: string) => createBook(base, { title: 'Emma', author_id: 1, price: 9.9 }));
// @ts-expect-error
void ((base: string) => read(base, '/nothing'));
// @ts-expect-error
void ((base: string) => create(base, { name: 'x' }));
`;

/** openapi-typescript prints by the compiler's own API, which TypeScript 7 has no more. */
function withCompilerApi(): Disposable {
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      next(
        specifier === 'typescript' && context.parentURL?.includes('/openapi-typescript/') === true
          ? 'typescript5'
          : specifier,
        context,
      ),
  });
  return { [Symbol.dispose]: () => hooks.deregister() };
}

const RELATIONS = {
  authors: { columns: { name: { type: 'text', max: 120 } } },
  books: {
    columns: {
      title: { type: 'text', max: 200 },
      price: { type: 'decimal', precision: 10, scale: 2, default: '9.90' },
      published: { type: 'date', nullable: true },
      author: { type: 'reference', to: 'authors' },
    },
  },
  loans: {
    key: ['book_id', 'reader'],
    columns: { book: { type: 'reference', to: 'books' }, reader: { type: 'text', max: 60 } },
  },
};

test('a client that is generated from the document compiles, and works', async () => {
  await using service = await startDescribed({}, RELATIONS, true);
  await using folder = await temporaryFolder();
  using _api = withCompilerApi();
  const { astToString, default: generate } = await import('openapi-typescript');
  const types = astToString(await generate(JSON.stringify(await documentOf(service))));
  writeFileSync(join(folder.path, 'api.d.ts'), types);
  writeFileSync(join(folder.path, 'client.ts'), CLIENT);
  writeFileSync(join(folder.path, 'package.json'), '{"type":"module"}');
  symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
  const flags =
    '--noEmit --strict --target esnext --module nodenext --allowImportingTsExtensions --types node';
  const tsc = [join(ROOT, 'node_modules/typescript/bin/tsc'), ...flags.split(' '), 'client.ts'];
  await promisify(execFile)(process.execPath, tsc, { cwd: folder.path }).catch(({ stdout }) => {
    assert.fail(stdout);
  });

  const client = await import(pathToFileURL(join(folder.path, 'client.ts')).href);
  const { rest, management } = service.urls;
  const cy = { name: 'Cy', email: 'cy@x' };
  assert.equal(await client.create(rest, cy), 'User created successfully');
  assert.deepEqual(await client.namesOf(rest), ['1 Ada', '2 Bob', '3 Cy']);
  assert.equal(await client.statusOf(management), 'UP');
  await fetch(`${rest}/authors`, { method: 'POST', body: '{"name":"Jane Austen"}' });
  const emma = await client.createBook(rest, { title: 'Emma', author_id: 1 });
  assert.deepEqual(emma, { id: 1, title: 'Emma', price: '9.90', published: null, author_id: 1 });
  assert.equal(await client.raise(rest, emma, { price: '12.50' }), '12.50');
  assert.deepEqual(await client.pricesOf(rest, { title: ['Emma'] }), [['12.50', null]]);
  assert.match(await client.hook(rest, 'acme', 'https://example.invalid/hooks'), /^whsec_/);
  const runAt = '2100-01-01T00:00:00Z';
  assert.equal(await client.publish(rest, { tenant: 'acme', type: 'a', data: 1, runAt }), 1);
});
