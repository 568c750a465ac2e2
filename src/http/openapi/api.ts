import type { ErrorCode } from '../../core/error-codes.ts';
import type { Schema } from './schema.ts';

/** A parameter of an operation. */
export interface ApiParameter {
  readonly in: 'path' | 'query' | 'header';
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  readonly required?: boolean;
}

/** What an operation may answer with one status. */
export interface ApiReply {
  readonly description: string;
  /** By media type; none for an empty body. */
  readonly content?: Readonly<Record<string, Schema>>;
  /** Further header fields, with what they hold. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a method does at a path. */
export interface ApiOperation {
  /** A name for programs. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly ApiParameter[];
  /** The body, by media type. */
  readonly body?: { readonly required: boolean; readonly content: Readonly<Record<string, Schema>> };
  /** By status. */
  readonly replies: Readonly<Record<number, ApiReply>>;
  /** Why it may be refused, beside what any request to the door may be refused for. */
  readonly refusals?: readonly ErrorCode[];
  /** Further content of refusals, by status. */
  readonly refusalContent?: Readonly<Record<number, Readonly<Record<string, Schema>>>>;
}

/** The operations of a path. */
export type ApiPath = Readonly<Partial<Record<'get' | 'post' | 'put' | 'delete', ApiOperation>>>;

/** One door: its operations, and what all of them share. */
export interface DoorApi {
  readonly door: string;
  readonly about: string;
  readonly paths: Readonly<Record<string, ApiPath>>;
  /** The schemas that operations name. */
  readonly schemas: Readonly<Record<string, Schema>>;
  /** How the door writes a refusal for clients that do not take problem details. */
  readonly refusal: { readonly type: string; readonly schema: Schema };
  /** Why any request to it may be refused, beside what every door refuses. */
  readonly refusals?: readonly ErrorCode[];
  /** How clients authenticate, if they have to. */
  readonly security?: {
    readonly schemes: Readonly<Record<string, Schema>>;
    /** The schemes that an operation takes, each with its scopes; undefined for one that needs none. */
    needs(path: string, method: string): Readonly<Record<string, readonly string[]>> | undefined;
    /** Why an operation that needs one may be refused. */
    readonly refusals: readonly ErrorCode[];
  };
}

/** The parameter of a path. */
export function pathParameter(name: string, description: string, schema: Schema): ApiParameter {
  return { in: 'path', name, description, schema, required: true };
}

/** An optional parameter of the query. */
export function queryParameter(name: string, description: string, schema: Schema): ApiParameter {
  return { in: 'query', name, description, schema };
}
