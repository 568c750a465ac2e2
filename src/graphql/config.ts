import type { Caller } from '@portico/transport';
import type { FastifyRequest } from 'fastify';
import type {
  DocumentNode,
  GraphQLFieldResolver,
  GraphQLScalarType,
  GraphQLScalarTypeConfig,
  GraphQLSchema,
} from 'graphql';
import type { RelationsData } from '../config/schema/declaration.ts';
import type { Given } from '../config/schema/fields.ts';
import type { MaybePromise } from '../core/scheduler.ts';
import type { User, UserStore } from '../relations/user.ts';
import type { RelationStores } from './relation-stores.ts';

/** The users that the GraphQL door serves. */
export interface Users extends UserStore {
  /** Yields users from now on, as they are created, until the iterator is returned. */
  created(): MaybePromise<AsyncIterableIterator<User>>;
  /** Like `created`, for updated users, in their new state. */
  updated(): MaybePromise<AsyncIterableIterator<User>>;
  /** Like `created`, for deleted users, in their last state. */
  deleted(): MaybePromise<AsyncIterableIterator<User>>;
}

/** The context of resolvers, unless `graphql.context` provides another. */
export interface GraphqlContext<R extends RelationsData = Record<never, never>> {
  readonly users: Users;
  /** The rows of declared relations, as the caller may read and write them. Not there without relations. */
  readonly relations: RelationStores<R>;
  /** The authenticated client; undefined if no credentials were needed or sent. */
  readonly caller?: Caller | undefined;
}

/** The arguments of `graphql.context` in addition to the request. */
export interface ContextDetails {
  /** Aborted once the client has disconnected, or once its reply is sent. Created on first access. */
  readonly abortSignal: AbortSignal;
  /** The payload of `connection_init`, for operations over a WebSocket. */
  readonly connectionParams: Readonly<Record<string, unknown>> | undefined;
  /** The authenticated client; undefined if no credentials were needed or sent. */
  readonly caller: Caller | undefined;
}

/**
 * Declared as methods, whose parameters are bivariant: resolvers may take narrower types, which only a schema
 * knows.
 */
interface Methods<C> {
  resolve(...args: Parameters<GraphQLFieldResolver<unknown, C>>): unknown;
  resolveType(value: unknown, context: C): MaybePromise<string | undefined>;
  isTypeOf(value: unknown, context: C): MaybePromise<boolean>;
}

/** Returns the value of a field from the parent object, the field's arguments and the context. */
export type Resolver<C = GraphqlContext> = Methods<C>['resolve'];

/**
 * A resolver in parts: `subscribe` returns the events of a subscription as an async iterable, `resolve` the
 * value of each.
 */
export interface FieldResolver<C = GraphqlContext> {
  readonly resolve?: Resolver<C>;
  readonly subscribe?: Resolver<C>;
}

/** The resolvers of a type by field. For an enum: its internal values. */
export interface TypeResolvers<C = GraphqlContext> {
  /** For an interface or a union: returns the name of a value's object type. */
  readonly __resolveType?: Methods<C>['resolveType'];
  /** For an object type: returns whether a value has this type. */
  readonly __isTypeOf?: Methods<C>['isTypeOf'];
  readonly [field: string]: Resolver<C> | FieldResolver<C> | string | number | boolean | null | undefined;
}

/** The functions of a scalar, instead of a GraphQLScalarType. */
export type ScalarFunctions = Pick<
  GraphQLScalarTypeConfig<unknown, unknown>,
  | 'serialize'
  | 'parseValue'
  | 'parseLiteral'
  | 'coerceOutputValue'
  | 'coerceInputValue'
  | 'coerceInputLiteral'
  | 'valueToLiteral'
>;

/** Resolvers by the names of types. */
export type Resolvers<C = GraphqlContext> = Readonly<
  Record<string, TypeResolvers<C> | GraphQLScalarType | ScalarFunctions>
>;

/** A schema defined by the user. */
export interface GraphqlConfig<C = GraphqlContext, R extends RelationsData = Record<never, never>> {
  /**
   * Type definitions. With a `type Query` or a `schema` they are the whole schema; otherwise they extend
   * Portico's.
   */
  readonly typeDefs?: string | DocumentNode | readonly (string | DocumentNode)[];
  /** Returns the context of a request's resolvers, or a promise of it. */
  readonly context?: (request: FastifyRequest, portico: GraphqlContext<R> & ContextDetails) => C | Promise<C>;
  readonly resolvers?: Resolvers<C>;
  /** A complete schema instead of `typeDefs` and `resolvers`, from any library. */
  readonly schema?: GraphQLSchema;
}

/** The parsed form: only the function `context` is validated here; the GraphQL door reads the rest. */
export interface GraphqlCode {
  readonly typeDefs: unknown;
  readonly resolvers: unknown;
  readonly schema: unknown;
  readonly context: NonNullable<GraphqlConfig<unknown>['context']> | undefined;
}

/** Reads `graphql.context`. */
export function readContext({ value, path }: Given, problems: string[]): GraphqlCode['context'] {
  if (value === undefined || isContext(value)) return value;
  problems.push(`${path} must be a function`);
  return undefined;
}

function isContext(value: unknown): value is NonNullable<GraphqlCode['context']> {
  return typeof value === 'function';
}
