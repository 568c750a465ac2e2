import type { Caller } from '@portico/transport';
import type { FastifyRequest } from 'fastify';
import type {
  DocumentNode,
  GraphQLFieldResolver,
  GraphQLScalarType,
  GraphQLScalarTypeConfig,
  GraphQLSchema,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { User, UserStore } from '../../relations/user.ts';
import type { Given } from './fields.ts';

/** The users that the GraphQL door serves. */
export interface Users extends UserStore {
  /** Users from now on, as they are created, until the iterator is returned. */
  created(): MaybePromise<AsyncIterableIterator<User>>;
  /** The same of those that are updated, as they are then. */
  updated(): MaybePromise<AsyncIterableIterator<User>>;
  /** The same of those that are deleted, as they were. */
  deleted(): MaybePromise<AsyncIterableIterator<User>>;
}

/** What resolvers get as their context unless `graphql.context` makes another one. */
export interface GraphqlContext {
  readonly users: Users;
  /** Who makes the request; undefined where no credentials are needed and none were sent. */
  readonly caller?: Caller | undefined;
}

/** What `graphql.context` gets beside the request. */
export interface ContextDetails {
  /** Aborted once the client has left, and once its reply is sent. Made when it is read. */
  readonly abortSignal: AbortSignal;
  /** The payload of `connection_init`, for operations of a WebSocket. */
  readonly connectionParams: Readonly<Record<string, unknown>> | undefined;
  /** Who makes the request; undefined where no credentials are needed and none were sent. */
  readonly caller: Caller | undefined;
}

/** As methods, because their parameters then take narrower types, which only a schema knows. */
interface Methods<C> {
  resolve(...args: Parameters<GraphQLFieldResolver<unknown, C>>): unknown;
  resolveType(value: unknown, context: C): MaybePromise<string | undefined>;
  isTypeOf(value: unknown, context: C): MaybePromise<boolean>;
}

/** Gives the value of a field: of the object that the field is of, the field's arguments, the context. */
export type Resolver<C = GraphqlContext> = Methods<C>['resolve'];

/** A resolver in parts. `subscribe` gives the events of a subscription, an async iterable, `resolve` the value of each. */
export interface FieldResolver<C = GraphqlContext> {
  readonly resolve?: Resolver<C>;
  readonly subscribe?: Resolver<C>;
}

/** The resolvers of a type by field; those of an enum are its values inside the program. */
export interface TypeResolvers<C = GraphqlContext> {
  /** For an interface or a union: the name of a value's object type. */
  readonly __resolveType?: Methods<C>['resolveType'];
  /** For an object type: whether a value is of it. */
  readonly __isTypeOf?: Methods<C>['isTypeOf'];
  readonly [field: string]: Resolver<C> | FieldResolver<C> | string | number | boolean | null | undefined;
}

/** The functions of a scalar, for those who do not make a GraphQLScalarType. */
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

/** A schema of the user's own. */
export interface GraphqlConfig<C = GraphqlContext> {
  /** Type definitions. With a `type Query` or a `schema` they are the whole schema, else they extend Portico's own. */
  readonly typeDefs?: string | DocumentNode | readonly (string | DocumentNode)[];
  /** Makes the context of the resolvers for a request, at once or later. */
  readonly context?: (request: FastifyRequest, portico: GraphqlContext & ContextDetails) => C | Promise<C>;
  readonly resolvers?: Resolvers<C>;
  /** A whole schema in place of `typeDefs` and `resolvers`, however it was made. */
  readonly schema?: GraphQLSchema;
}

/** The same as read: only what makes a context is validated, the GraphQL door reads the rest. */
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
