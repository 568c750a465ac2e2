import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createListener } from '@portico/transport';
import type { GraphQLSchema } from 'graphql';
import pg from 'pg';
import { type ApiOptions, openAccessPolicy } from '../../../src/access/open-policy.ts';
import { createSecretResolver } from '../../../src/config/secrets.ts';
import { hasRules, type Relation, USERS } from '../../../src/relations/relation.ts';
import { restErrorsWith } from '../../../src/rest/messages.ts';
import { type RestOptions, rest } from '../../../src/rest/rest.ts';
import type { UserIndexOptions } from '../../../src/sql/list-sql.ts';
import { migrateDatabase, openDatabase, withExistingTables, withSchema } from '../../../src/sql/open.ts';
import { migrateRelations } from '../../../src/sql/schema/migrate.ts';
import { openLog } from '../../../src/telemetry/log.ts';
import { postgresDatabase, withoutPostgres } from '../databases.ts';
import { captureLog } from '../log-capture.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { openGraphql } from './graphql-beside.ts';

/** A reply of a relation. */
export interface RelationReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at members of all shapes
  readonly body: any;
  /** The addresses of the Link header, by relation. */
  readonly links: Readonly<Record<string, string>>;
}

/** A REST door with relations that listens on a database of its own. */
export interface RelationDoor extends AsyncDisposable {
  readonly url: string;
  /** The address of GraphQL, if it serves the same rows. */
  readonly graphql: string;
  readonly schema: GraphQLSchema | undefined;
  /** How many streams and subscriptions follow changes. */
  readonly followers: number;
  /** A text is sent as it is, anything else as JSON. */
  send(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<RelationReply>;
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<RelationReply>;
  /** Runs SQL on the database, as another program would. */
  run(sql: string): Promise<void>;
}

interface DoorOptions extends Partial<Omit<RestOptions, 'users' | 'relations' | 'api'>> {
  readonly api?: ApiOptions;
  /** Whether a GraphQL door serves the same rows. */
  readonly graphql?: boolean;
  readonly fastPath?: boolean;
  /** Whether `portico migrate` makes the tables; default: the start. */
  readonly isMigrated?: boolean;
  /** What another program has done in the database before. */
  readonly before?: string;
  /** Which indexes users have. */
  readonly userIndexes?: UserIndexOptions;
}

type Open = (relations: readonly Relation[], options?: DoorOptions) => Promise<RelationDoor>;

/** Opens a door on each engine. */
export const relationDoors: Readonly<Record<string, Open>> = {
  async sqlite(relations, options) {
    const folder = await temporaryFolder();
    const file = join(folder.path, 'test.db');
    const run = async (sql: string) => {
      using db = new DatabaseSync(file, { timeout: 5_000 });
      db.exec(sql);
    };
    return open({ url: `sqlite:${file}`, run, folder }, relations, options);
  },
  ...(withoutPostgres === undefined
    ? {
        async postgres(relations: readonly Relation[], options?: DoorOptions) {
          const url = await postgresDatabase();
          const run = async (sql: string) => {
            const client = new pg.Client({ connectionString: url });
            await client.connect();
            await client.query(sql);
            await client.end();
          };
          return open({ url, run }, relations, options);
        },
      }
    : {}),
};

interface Place {
  readonly url: string;
  readonly run: (sql: string) => Promise<void>;
  readonly folder?: AsyncDisposable;
}

async function open(
  { url, run, folder }: Place,
  declared: readonly Relation[],
  {
    fastPath = true,
    isMigrated = false,
    userIndexes,
    before,
    graphql: hasGraphql = false,
    ...options
  }: DoorOptions = {},
): Promise<RelationDoor> {
  const resources = new AsyncDisposableStack();
  if (folder !== undefined) resources.use(folder);
  if (before !== undefined) await run(before);
  const relations = await withExistingTables(url, declared);
  if (isMigrated) {
    await migrateDatabase(url);
    await withSchema(url, 'migrate', (session) => migrateRelations(session, relations, { rewrite: false }));
  }
  const database = resources.use(await openDatabase(url, { forService: true, userIndexes }));
  const listener = resources.use(
    createListener({
      door: 'rest',
      host: '127.0.0.1',
      port: 0,
      portHint: '--rest-port',
      log: await openLog({ level: 'info', stream: captureLog().stream }),
      errors: restErrorsWith(
        new Set(
          relations
            .map(({ name }) => name)
            .filter((name) => name !== USERS || options.userPaths === 'standard'),
        ),
      ),
      fastPath,
    }),
  );
  const { stores, changes } = await database.openRelations(relations);
  const api = options.api && (await policyOf(options.api, relations.some(hasRules)));
  if (api !== undefined) resources.use(api);
  listener.app.register(rest, {
    users: database.users,
    relations: stores,
    relationFeed: changes,
    ...options,
    api,
  });
  const beside = hasGraphql
    ? resources.use(await openGraphql({ database, stores, feed: changes, relations, api }))
    : undefined;
  const base = await listener.listen();
  const send: RelationDoor['send'] = async (method, path, body, headers = {}) => {
    const sent = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(`${base}${path}`, { method, headers: { ...headers }, body: sent });
    const text = await response.text();
    const links = (response.headers.get('link') ?? '').matchAll(/<([^>]*)>; rel="(\w+)"/g);
    return {
      status: response.status,
      headers: response.headers,
      text,
      get body() {
        return JSON.parse(text) as unknown;
      },
      links: Object.fromEntries([...links].map(([, address = '', rel = '']) => [rel, address])),
    };
  };
  return {
    url: base,
    graphql: beside?.url ?? '',
    schema: beside?.schema,
    get followers() {
      return changes?.followers ?? 0;
    },
    send,
    get: (path, headers) => send('GET', path, undefined, headers),
    run,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

function policyOf(api: ApiOptions, isRuled: boolean) {
  const resolve = createSecretResolver(process.env, process.cwd());
  const log = { info() {}, warn() {}, error() {} };
  return openAccessPolicy(api, { resolve, name: 'options', log, hasRules: isRuled });
}
