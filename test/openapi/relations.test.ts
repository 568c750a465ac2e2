import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import fc from 'fast-check';
import { openApiDocument } from '../../src/http/openapi.ts';
import type { Relation } from '../../src/relations/relation.ts';
import { relationsApi } from '../../src/rest/api/relations-api.ts';
import { proofCount, rounds } from '../support/proof-settings.ts';
import { declarations } from '../support/relations/random-declarations.ts';
import { type RelationDoor, relationDoors } from '../support/relations/relation-door.ts';
import { LIBRARY, SPECIMENS } from '../support/relations/relations.ts';
import { type ApiDocument, type Operation, replyChecker, seen } from './described-service.ts';

const RUNS = proofCount('PORTICO_API_RUNS', 250);
const RELATIONS = [...LIBRARY, SPECIMENS];
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

interface Parameter {
  readonly in: string;
  readonly name: string;
  readonly schema: { readonly examples?: readonly unknown[]; readonly items?: object };
}

interface RowSchema {
  readonly examples: readonly [Readonly<Record<string, unknown>>];
  readonly properties: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly required?: readonly string[];
}

interface JsonBody {
  readonly content: { readonly 'application/json': { readonly schema: RowSchema } };
}

interface RelationsDocument extends ApiDocument {
  readonly components: ApiDocument['components'] & {
    readonly schemas: Readonly<Record<string, RowSchema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
}

function describe(relations: readonly Relation[]): RelationsDocument {
  const api = relationsApi(relations, { prefix: '', policy: undefined });
  const info = { title: 'Portico', version: '1', servers: { rest: 'http://127.0.0.1' } };
  return openApiDocument(api, info) as unknown as RelationsDocument;
}

/** The paths of a relation: of its list, and of a row. */
function pathsOf({ name, key }: Relation): readonly [list: string, row: string] {
  return [`/${name}`, `/${name}/${key.map((column) => `{${column}}`).join()}`];
}

/** A path whose parameters are the columns of a row. */
function filled(path: string, row: Readonly<Record<string, unknown>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(row[name])));
}

/** Sends a request, compares the reply with the document, and returns its parsed body. */
function checkedDoor(document: RelationsDocument, door: RelationDoor) {
  const check = replyChecker(document);
  return async (
    path: string,
    method: string,
    { target, body, headers = {} }: { target: string; body?: unknown; headers?: Record<string, string> },
  ) => {
    const reply = await fetch(`${door.url}${target}`, {
      method: method.toUpperCase(),
      headers,
      body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
    });
    const { status } = reply;
    const found = await seen(reply);
    // A preference can make the reply to a create empty, which OpenAPI cannot say.
    if (status !== 201 || found.text !== '') check(path, method, found);
    return {
      status,
      body: (/[/+]json/.test(found.type ?? '') && found.text !== ''
        ? JSON.parse(found.text)
        : undefined) as unknown,
    };
  };
}

test('every example of any declaration is accepted, and the replies are the described examples', async () => {
  await fc.assert(
    fc.asyncProperty(declarations, async ({ relations }) => {
      const document = describe(relations);
      const { schemas } = document.components;
      await using door = await (relationDoors.sqlite as NonNullable<typeof relationDoors.sqlite>)(relations);
      const send = checkedDoor(document, door);
      // A reference is the example of a relation that comes earlier.
      for (const relation of relations) {
        const { name } = relation;
        const [list, row] = pathsOf(relation);
        const [example] = schemas[`${name}.Fields`]?.examples ?? [{}];
        const created = await send(list, 'post', {
          target: list,
          body: schemas[`${name}.NewRow`]?.examples[0],
        });
        assert.deepEqual(created, { status: 201, body: example }, name);
        const target = filled(row, example);
        const read = await send(row, 'get', { target });
        assert.deepEqual(read, { status: 200, body: example });
        const patch = schemas[`${name}.Patch`]?.examples[0];
        const changed = await send(row, 'patch', { target, body: patch });
        assert.deepEqual(changed, { status: 200, body: example });
        const put = document.paths[row]?.put?.requestBody as JsonBody;
        const whole = put.content['application/json'].schema.examples[0];
        const replaced = await send(row, 'put', { target, body: whole });
        assert.deepEqual(replaced, { status: 200, body: example });
        for (const each of parametersOf(document, list, 'get')) {
          if (each.in !== 'query') continue;
          const value = each.schema.examples?.[0] ?? example[each.name];
          if (value === undefined || value === null) continue;
          const isObject = each.name === 'filters';
          const query = new URLSearchParams(
            isObject ? (value as Record<string, string>) : { [each.name]: String(value) },
          );
          const found = await send(list, 'get', { target: `${list}?${query}` });
          assert.equal(found.status, 200, `${query}`);
          // All conditions match the one row.
          assert.equal((found.body as readonly unknown[]).length, 1, `${query}`);
        }
      }
      for (const relation of relations.toReversed()) {
        const [list] = pathsOf(relation);
        const filter = parametersOf(document, list, 'delete').find(({ name }) => name === 'filters');
        const query = new URLSearchParams(filter?.schema.examples?.[0] as Record<string, string>);
        const headers = { prefer: 'max-affected=1' };
        const removed = await send(list, 'delete', { target: `${list}?${query}`, headers });
        assert.equal(removed.status, 204);
      }
      const { post } = document.paths['/_batch'] ?? {};
      const batch = post?.requestBody as JsonBody;
      const body = batch.content['application/json'].schema.examples[0];
      const done = await send('/_batch', 'post', { target: '/_batch', body });
      assert.deepEqual([done.status, Object(done.body).results[0].status], [200, 201]);
    }),
    { numRuns: rounds(24) },
  );
});

function parametersOf(document: RelationsDocument, path: string, method: string): readonly Parameter[] {
  const { parameters = [] } = document.paths[path]?.[method] ?? {};
  return (parameters as readonly (Parameter | { readonly $ref: string })[]).map((each) => {
    if (!('$ref' in each)) return each;
    const found = document.components.parameters[each.$ref.split('/').at(-1) ?? ''];
    assert.ok(found, each.$ref);
    return found;
  });
}

test('schemas have the bounds, defaults and required columns of the declaration', () => {
  const { schemas } = describe(RELATIONS).components;
  const members = (name: string) => schemas[name]?.properties ?? {};
  assert.deepEqual(members('books.Fields').title, { type: 'string', maxLength: 200 });
  assert.deepEqual(schemas['authors.NewRow']?.required, ['name']);
  assert.equal('id' in members('authors.NewRow'), false);
  const pages = members('books.NewRow').pages;
  assert.deepEqual(pages, { type: ['integer', 'null'], minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
  // biome-ignore lint/suspicious/noExplicitAny: a document of OpenAPI
  const row = members('specimens.Fields') as any;
  for (const { name, type, nullable } of SPECIMENS.columns) {
    assert.equal([row[name].type].flat().includes('null'), nullable && type.kind !== 'json', name);
    if (type.kind === 'decimal') {
      const pattern = new RegExp(row[name].pattern);
      const digits = '0'.repeat(type.scale);
      assert.ok(pattern.test(`1.${digits}`) && !pattern.test(`1.${digits}0`) && !pattern.test('01'), name);
    }
  }
});

let door: RelationDoor;
let document: RelationsDocument;
before(async () => {
  document = describe(RELATIONS);
  door = await (relationDoors.sqlite as NonNullable<typeof relationDoors.sqlite>)(RELATIONS);
});
after(() => door[Symbol.asyncDispose]());

test('whatever is asked of a relation, the reply is as the document says', async () => {
  const send = checkedDoor(document, door);
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => (item[method] === undefined ? [] : [[path, method, item[method]] as const])),
  );
  const values = fc.constantFrom('1', '2', 'x', 'Emma', '-1', 'null', '2024-02-29', '%');
  const queries = fc.constantFrom(
    ...['', '', 'fields=id', 'sort=-title', 'limit=0', 'cursor=x', 'title:prefix=E', 'titel=Emma'],
    ...[
      'where={"title":"Emma"}',
      'where={',
      'author.name=Ann',
      'on=id',
      'on=author_id,title',
      'on=none',
      'name:null=true',
    ],
  );
  const rows = Object.values(document.components.schemas).flatMap(({ examples }) => examples ?? []);
  const bodies = fc.constantFrom(
    ...rows.flatMap((row) => [JSON.stringify(row), JSON.stringify([row])]),
    ...['name\nJane Austen\n', 'title,author_id\nEmma,7\n', '{"name":"Ann"}\n{"name":7}\n'],
    ...[
      '{"writes":[{"method":"POST","path":"/authors","body":{"name":"Ann"}},{"method":"DELETE","path":"/authors/{$0/id}"}]}',
      '{"writes":[{"method":"PATCH","path":"/books/77","body":{}}]}',
      '{"writes":[{"method":"PUT","path":"/nothing"}]}',
      '{"writes":7}',
    ],
    ...['', '{', '[]', '{}', '"x"', '{"__proto__":1}', '[{},{}]', '{"title":7}', ' '.repeat(1_100_000)],
  );
  const request = fc.constantFrom(...operations).chain(([path, method]) =>
    fc.record({
      path: fc.constant(path),
      method: fc.constant(method),
      parts: fc.array(values, { minLength: 3, maxLength: 3 }),
      query: queries,
      body: bodies,
      headers: fc.record(
        {
          prefer: fc.constantFrom(
            ...['count=exact', 'return=minimal', 'handling=lenient'],
            ...['transaction=all', 'transaction=line', 'transaction=line, return=minimal'],
            ...['resolution=ignore', 'resolution=none', 'max-affected=1', 'max-affected=x'],
          ),
          'if-match': fc.constantFrom('"1"', '*'),
          'if-none-match': fc.constantFrom('"1"', '*'),
          'idempotency-key': fc.constantFrom('k', 'l', ''),
          'content-type': fc.constantFrom(
            ...['application/json', 'application/xml', 'application/x-ndjson', 'text/csv'],
          ),
          accept: fc.constantFrom(
            ...['application/json', 'application/problem+json', '*/*'],
            ...['application/x-ndjson', 'text/csv'],
          ),
        },
        { requiredKeys: [] },
      ),
    }),
  );
  await fc.assert(
    fc.asyncProperty(request, async ({ path, method, parts, query, body, headers }) => {
      let part = 0;
      const target = `${path.replace(/\{\w+\}/g, () => encodeURIComponent(parts[part++] ?? ''))}?${query}`;
      await send(path, method, {
        target,
        headers: headers as Record<string, string>,
        ...(method === 'get' ? {} : { body }),
      });
    }),
    { numRuns: RUNS },
  );
});

test('event streams of one relation and of several have the described type', async () => {
  for (const [path, target] of [
    ['/books', '/books'],
    ['/_changes', `/_changes?relation=${RELATIONS.map(({ name }) => name).join()}`],
  ] as const) {
    const stop = new AbortController();
    const reply = await fetch(`${door.url}${target}`, {
      headers: { accept: 'text/event-stream' },
      signal: stop.signal,
    });
    const type = reply.headers.get('content-type') ?? '';
    stop.abort();
    assert.equal(reply.status, 200, path);
    const described = document.paths[path]?.get?.responses[200] as { readonly content: object };
    assert.ok(type.startsWith('text/event-stream') && Object.hasOwn(described.content, type), type);
  }
});

test('the document is sound OpenAPI 3.1, and small for many relations', async () => {
  const config = await createConfig({ extends: ['recommended'] });
  const source = JSON.stringify(document);
  const problems = await lintFromString({ source, absoluteRef: '/openapi.json', config });
  assert.deepEqual(
    problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer]),
    [],
  );
  const ids = Object.values(document.paths).flatMap((item) =>
    METHODS.flatMap((method) => (item[method] as Operation | undefined)?.operationId ?? []),
  );
  assert.equal(new Set(ids).size, ids.length);
  const many = Array.from({ length: 50 }, (_, i): Relation => ({ ...SPECIMENS, name: `specimens${i}` }));
  const bytes = JSON.stringify(describe(many)).length;
  assert.ok(bytes < 1_100_000, `${bytes} bytes`);
});
