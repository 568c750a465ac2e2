import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createListener } from '@portico/transport';
import fastify, { type FastifyInstance } from 'fastify';
import {
  type GraphQLFieldConfig,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';
import { type GraphqlOptions, graphql } from '../../../src/graphql/graphql.ts';
import { graphqlErrors } from '../../../src/graphql/requests.ts';
import { usersSchema } from '../../../src/graphql/users-schema.ts';
import { LocalUserFeed } from '../../../src/relations/events.ts';
import { MemoryUserStore } from '../../../src/relations/user-stores.ts';
import { openLog } from '../../../src/telemetry/log.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { warmUp } from '../../support/connections.ts';
import { captureLog } from '../../support/log-capture.ts';

/** The door's plugin in an application of its own, whose feed can be looked at. */
export interface FeedApp extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly url: string;
  readonly feed: LocalUserFeed;
}

export async function startFeedApp(options: Partial<GraphqlOptions> = {}): Promise<FeedApp> {
  const feed = new LocalUserFeed();
  const app = fastify();
  app.register(graphql, { schema: usersSchema(new MemoryUserStore(feed, 100_000), feed), ...options });
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    app,
    url: `${origin}/graphql`,
    feed,
    async [Symbol.asyncDispose]() {
      // A test that failed may have left its streams open.
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

/** What has happened to a field that takes its time. */
export interface SlowField {
  /** The signal that its resolver got. */
  readonly begun: Promise<AbortSignal>;
  readonly calls: number;
  /** Has the field end. */
  finish(): void;
}

/** A field that ends when it is told to, whatever its signal says. */
export function slowField(): SlowField & { readonly config: GraphQLFieldConfig<unknown, unknown> } {
  const begun = Promise.withResolvers<AbortSignal>();
  const end = Promise.withResolvers<string>();
  let calls = 0;
  return {
    begun: begun.promise,
    get calls() {
      return calls;
    },
    finish: () => end.resolve('done'),
    config: {
      type: GraphQLString,
      resolve(_root, _args, _context, info) {
        calls++;
        const signal = info.getAbortSignal();
        if (signal !== undefined) begun.resolve(signal);
        return end.promise;
      },
    },
  };
}

/** A type for lists of texts. */
export const TEXTS = new GraphQLList(new GraphQLNonNull(GraphQLString));

type Fields = Record<string, GraphQLFieldConfig<unknown, unknown>>;

/** An application over a schema whose root types all have these fields. */
export interface SlowApp extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly url: string;
  /** How often operations ended in each way. */
  outcomes(): Readonly<Record<string, number>>;
  /** Opens a connection that the fast path takes requests of. */
  connect(): Promise<Socket>;
}

export async function startSlowApp(
  fields: Fields,
  { fastPath = false, ...options }: Partial<GraphqlOptions> & { readonly fastPath?: boolean } = {},
): Promise<SlowApp> {
  const metrics = new Metrics();
  const listener = createListener({
    door: 'graphql',
    host: '127.0.0.1',
    port: 0,
    portHint: '',
    log: await openLog({ level: 'error', stream: captureLog().stream }),
    errors: graphqlErrors,
    fastPath,
  });
  const typeOf = (name: string) => new GraphQLObjectType({ name, fields });
  const schema = new GraphQLSchema({
    query: typeOf('Query'),
    mutation: typeOf('Mutation'),
    subscription: typeOf('Subscription'),
  });
  listener.app.register(graphql, { schema, metrics, ...options });
  listener.watchHooks();
  const origin = await listener.listen();
  return {
    app: listener.app,
    url: `${origin}/graphql`,
    outcomes() {
      const series = [...(metrics.meter('graphql.operations')?.series() ?? [])];
      return Object.fromEntries(
        series.map((one) => [
          one.tags.find(({ key }) => key === 'outcome')?.value,
          one.measure()[0]?.value ?? 0,
        ]),
      );
    },
    async connect() {
      const { hostname, port } = new URL(origin);
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
      await once(socket, 'connect');
      await warmUp(socket);
      return socket;
    },
    async [Symbol.asyncDispose]() {
      await listener[Symbol.asyncDispose]();
      metrics[Symbol.dispose]();
    },
  };
}

/** The bytes of a request by POST. */
export function requestBytes(body: unknown): string {
  const text = JSON.stringify(body);
  return `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
}

/** Resolves once a signal is aborted. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
