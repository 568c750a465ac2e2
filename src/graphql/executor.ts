import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import type { Metrics } from '../observability/metrics/metrics.ts';
import { type DocumentLimits, exceededLimits } from './document-limits.ts';
import type { ResultLimits } from './execution/result-budget.ts';
import { Turns } from './execution/turns.ts';
import { GenerationalCache } from './generational-cache.ts';
import { Operation, type OperationOptions } from './operation.ts';
import { operationMeters } from './operation-meters.ts';
import type { RequestParams } from './request-params.ts';

/** What operations are found and run with. */
export interface ExecutorOptions {
  readonly schema: GraphQLSchema;
  readonly limits: DocumentLimits & ResultLimits;
  /** What remembered documents and their plans may take, in bytes. */
  readonly maxCacheBytes: number;
  readonly introspection: boolean;
  /** Whether an error may name what the client could have meant. */
  readonly suggestions: boolean;
  readonly metrics: Metrics | undefined;
}

/** Why a document cannot run. */
export interface Refused {
  readonly errors: readonly GraphQLError[];
}

/** Finds the operation that a request means: one look-up by the document's text, then its name. */
export type FindOperation = (params: RequestParams) => Operation | Refused;

/** The operations of one document by name; the only one of a document also stands under undefined. */
type Operations = ReadonlyMap<string | undefined, Operation>;

/** What a document takes once it is parsed, in bytes: at most, for itself and for each of its tokens. */
const DOCUMENT_BYTES = 2_048;
const TOKEN_BYTES = 450;
/** The part of the cache that wrong documents have. */
const BAD_SHARE = 1 / 8;
/** Each mistake that is listed costs a walk over the text; who makes more has enough to read. */
const MAX_ERRORS = 10;

/** How many results of the largest size are made at once. */
const MAX_LARGE_RESULTS = 4;

const UNDETERMINED: Refused = { errors: [new GraphQLError('The operation to run cannot be determined')] };

/** Creates the look-up. Each document is parsed, checked against the limits and validated once, and remembered. */
export function createFindOperation(options: ExecutorOptions): FindOperation {
  const { schema, limits, suggestions, metrics } = options;
  const meters = metrics && operationMeters(metrics);
  const rules = options.introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  const good = new GenerationalCache<Operations>((1 - BAD_SHARE) * options.maxCacheBytes);
  const turns = new Turns(MAX_LARGE_RESULTS * limits.maxResultBytes);
  // Kept apart, so that a flood of wrong documents pushes no good one out.
  const bad = new GenerationalCache<Refused>(BAD_SHARE * options.maxCacheBytes);

  return ({ query, operationName }) => {
    const known = good.get(query);
    const found = known ?? bad.get(query) ?? read(query);
    if ('errors' in found) {
      meters?.lookup('refused');
      return found;
    }
    meters?.lookup(known === undefined ? 'miss' : 'hit');
    return found.get(operationName) ?? UNDETERMINED;
  };

  function read(query: string): Operations | Refused {
    const document = parsed(query);
    if ('errors' in document) {
      bad.set(query, document, bytesOf(query, limits.maxTokens));
      return document;
    }
    const operations = operationsOf(document, {
      schema,
      suggestions,
      limits,
      turns,
      meter: meters?.operation,
      onPlanned: (bytes) => good.grow(query, bytes),
    });
    good.set(query, operations, bytesOf(query, document.tokenCount));
    return operations;
  }

  function parsed(query: string): DocumentNode | Refused {
    try {
      const document = parse(query, { maxTokens: limits.maxTokens });
      const exceeded = exceededLimits(document, limits);
      if (exceeded.length > 0) return { errors: exceeded };
      const errors = validate(schema, document, rules, {
        maxErrors: MAX_ERRORS,
        hideSuggestions: !suggestions,
      });
      return errors.length > 0 ? { errors } : document;
    } catch (error) {
      if (error instanceof GraphQLError) return { errors: [error] };
      throw error;
    }
  }
}

/** What a remembered document takes at most; of one that is refused the number of tokens may not be known. */
function bytesOf(query: string, tokens = query.length): number {
  return DOCUMENT_BYTES + 2 * query.length + TOKEN_BYTES * Math.min(tokens, query.length);
}

function operationsOf(document: DocumentNode, options: OperationOptions): Operations {
  const operations = new Map<string | undefined, Operation>();
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    operations.set(definition.name?.value, new Operation(document, definition, options));
  }
  const [only, second] = operations.values();
  if (only !== undefined && second === undefined) operations.set(undefined, only);
  return operations;
}
