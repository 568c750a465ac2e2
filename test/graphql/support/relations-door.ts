import assert from 'node:assert/strict';
import { join } from 'node:path';
import { createListener } from '@portico/transport';
import type { GraphQLSchema } from 'graphql';
import type { RelationsData } from '../../../src/config/schema/declaration.ts';
import { readRelations } from '../../../src/config/schema/relations.ts';
import { type GraphqlOptions, graphql } from '../../../src/graphql/graphql.ts';
import { relationResolvers, type ServedRelations } from '../../../src/graphql/relations/resolvers.ts';
import { relationsSchema } from '../../../src/graphql/relations/schema.ts';
import { graphqlErrors } from '../../../src/graphql/requests.ts';
import { usersSchema } from '../../../src/graphql/users-schema.ts';
import { type Relation, USERS } from '../../../src/relations/relation.ts';
import type { Database } from '../../../src/sql/database.ts';
import { migrateDatabase, openDatabase, withSchema } from '../../../src/sql/open.ts';
import { changesUsers } from '../../../src/sql/relations/row-store.ts';
import { migrateRelations } from '../../../src/sql/schema/migrate.ts';
import { openLog } from '../../../src/telemetry/log.ts';
import { postgresDatabase, withoutPostgres } from '../../support/databases.ts';
import { captureLog, type LogCapture } from '../../support/log-capture.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { type Answer, ask, type Question } from './door.ts';

/** A GraphQL door with relations that listens on a database of its own. */
export interface RelationsDoor extends AsyncDisposable {
  readonly url: string;
  readonly database: Database;
  readonly schema: GraphQLSchema;
  readonly log: LogCapture;
  /** How many subscriptions follow changes of relations. */
  readonly followers: number;
  ask(question: Question | string, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** The data of an operation that must not have errors. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at members of all shapes
  data(question: Question | string): Promise<any>;
  /** The only error of an operation. */
  error(question: Question | string): Promise<NonNullable<Answer['body']['errors']>[number]>;
}

type Options = Partial<Omit<GraphqlOptions, 'schema'>> &
  Partial<Pick<ServedRelations, 'maxValues' | 'requireIfMatch' | 'mutations' | 'extendsUsers'>> & {
    /** Changes the schema, as a configuration does. */
    readonly extend?: (schema: GraphQLSchema) => GraphQLSchema;
  };

type Open = (relations: readonly Relation[], options?: Options) => Promise<RelationsDoor>;

/** Opens a door on each engine. */
export const graphqlRelationDoors: Readonly<Record<string, Open>> = {
  async sqlite(relations, options) {
    const folder = await temporaryFolder();
    return open(`sqlite:${join(folder.path, 'test.db')}`, relations, options, folder);
  },
  ...(withoutPostgres === undefined
    ? { postgres: async (relations, options) => open(await postgresDatabase(), relations, options) }
    : {}),
};

async function open(
  url: string,
  relations: readonly Relation[],
  {
    maxValues = 1_000_000,
    requireIfMatch = false,
    mutations = 'together',
    extendsUsers = false,
    extend,
    ...options
  }: Options = {},
  folder?: AsyncDisposable,
): Promise<RelationsDoor> {
  const resources = new AsyncDisposableStack();
  if (folder !== undefined) resources.use(folder);
  if (changesUsers(relations)) {
    await migrateDatabase(url);
    await withSchema(url, 'migrate', (session) => migrateRelations(session, relations, { rewrite: false }));
  }
  const database = resources.use(await openDatabase(url, { forService: true }));
  const log = captureLog();
  const listener = resources.use(
    createListener({
      door: 'graphql',
      host: '127.0.0.1',
      port: 0,
      portHint: '--graphql-port',
      log: await openLog({ level: 'info', stream: log.stream }),
      errors: graphqlErrors,
      fastPath: true,
    }),
  );
  const { stores, changes } = await database.openRelations(relations);
  const { users } = database;
  const all = new Map(relations.map((relation) => [relation.name, relation]));
  const resolvers = relationResolvers({
    relations: all,
    extendsUsers,
    rules: undefined,
    storeOf(name) {
      const store = name === USERS ? users.rows : stores.get(name);
      assert.ok(store !== undefined);
      return store;
    },
    feed: changes,
    cursorKey: () => users.lists.cursorKey(),
    maxValues,
    requireIfMatch,
    mutations,
  });
  const builtIn = relationsSchema(usersSchema(users, database.userFeed), all, resolvers);
  const schema = extend?.(builtIn) ?? builtIn;
  listener.app.register(graphql, { ...options, schema });
  const base = await listener.listen();
  const door: RelationsDoor = {
    url: `${base}/graphql`,
    database,
    schema,
    log,
    get followers() {
      return changes?.followers ?? 0;
    },
    ask: (question, headers) => ask(`${base}/graphql`, question, headers),
    async data(question) {
      const { body, text } = await door.ask(question);
      assert.equal(body.errors, undefined, text);
      return body.data;
    },
    async error(question) {
      const { body, text } = await door.ask(question);
      const [error, ...others] = body.errors ?? [];
      assert.ok(error !== undefined && others.length === 0, text);
      return error;
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
  return door;
}

/** Reads a declaration that has no mistakes. */
export function relationsOf(data: RelationsData): readonly Relation[] {
  const problems: string[] = [];
  const relations = readRelations({ value: data, path: 'relations' }, problems);
  assert.deepEqual(problems, []);
  return relations;
}

/** Authors, their books, and who borrowed them. */
export const library = relationsOf({
  authors: {
    columns: { name: { type: 'text', max: 40 }, born: { type: 'date', nullable: true } },
    unique: [['name']],
  },
  books: {
    columns: {
      title: { type: 'text', max: 40 },
      kind: { type: 'enum', values: ['novel', 'poem'], default: 'novel' },
      price: { type: 'decimal', precision: 10, scale: 2, min: '0', default: '9.90' },
      pages: { type: 'integer', min: 1, max: 9_000, nullable: true },
      data: { type: 'json', nullable: true },
      author: { type: 'reference', to: 'authors' },
      owner: { type: 'reference', to: 'users', nullable: true },
    },
    unique: [['author_id', 'title']],
    indexes: [['title'], ['price']],
  },
  loans: {
    key: ['book_id', 'reader'],
    columns: {
      book: { type: 'reference', to: 'books', onDelete: 'cascade' },
      reader: { type: 'text', max: 20 },
      big: { type: 'bigint', nullable: true },
      at: { type: 'timestamp', nullable: true },
      code: { type: 'uuid', nullable: true },
      raw: { type: 'bytes', max: 10, nullable: true },
    },
  },
});

/** The message of a start that must fail. */
export async function captureError(starting: Promise<AsyncDisposable>): Promise<string> {
  try {
    await using _ = await starting;
  } catch (error) {
    return String(error);
  }
  return assert.fail('it started');
}
