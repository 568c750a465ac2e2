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
  /** How many documents are remembered. */
  readonly maxCachedDocuments: number;
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

/** All texts that are remembered, in characters: each can take 170 bytes once it is parsed. */
const MAX_GOOD_LENGTH = 500_000;
/** Each mistake that is listed costs a walk over the text; who makes more has enough to read. */
const MAX_ERRORS = 10;
const MAX_BAD_ENTRIES = 200;
const MAX_BAD_LENGTH = 200_000;

/** How many results of the largest size are made at once. */
const MAX_LARGE_RESULTS = 4;

const UNDETERMINED: Refused = { errors: [new GraphQLError('The operation to run cannot be determined')] };

/** Creates the look-up. Each document is parsed, checked against the limits and validated once, and remembered. */
export function createFindOperation(options: ExecutorOptions): FindOperation {
  const { schema, limits, suggestions, metrics } = options;
  const meters = metrics && operationMeters(metrics);
  const rules = options.introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  const good = new GenerationalCache<Operations>(options.maxCachedDocuments, MAX_GOOD_LENGTH);
  const turns = new Turns(MAX_LARGE_RESULTS * limits.maxResultBytes);
  // Kept apart, so that a flood of wrong documents pushes no good one out.
  const bad = new GenerationalCache<Refused>(MAX_BAD_ENTRIES, MAX_BAD_LENGTH);

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
      bad.set(query, document);
      return document;
    }
    const operations = operationsOf(document, {
      schema,
      suggestions,
      limits,
      turns,
      meter: meters?.operation,
    });
    good.set(query, operations);
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
