import type { GraphQLSchema } from 'graphql';
import { type DocumentNode, GraphQLError, Kind, OperationTypeNode } from 'graphql';
import type { Metrics } from '../observability/metrics/metrics.ts';
import type { DocumentLimits } from './document-limits.ts';
import { Documents, type Refused } from './documents.ts';
import { Operation, type OperationOptions } from './operation.ts';
import { operationMeters } from './operation-meters.ts';
import type { RequestParams } from './request-params.ts';

/** What operations are found and run with. */
export interface ExecutorOptions {
  readonly schema: GraphQLSchema;
  readonly limits: DocumentLimits;
  readonly maxCachedDocuments: number;
  readonly introspection: boolean;
  readonly suggestions: boolean;
  readonly metrics: Metrics | undefined;
}

/** Finds the operation that a request means: one look-up by the document's text, then its name. */
export type FindOperation = (params: RequestParams) => Operation | Refused;

/** The operations of one document by name; the only one of a document also stands under undefined. */
type Operations = ReadonlyMap<string | undefined, Operation>;

const UNDETERMINED: Refused = { errors: [new GraphQLError('The operation to run cannot be determined')] };

/** Creates the look-up, with a cache of documents of its own. */
export function createFindOperation(options: ExecutorOptions): FindOperation {
  const { schema, suggestions, metrics } = options;
  const meters = metrics && operationMeters(metrics);
  const operationOptions: OperationOptions = {
    schema,
    suggestions,
    meter: meters?.operation,
  };
  const documents = new Documents<Operations>(
    {
      schema,
      limits: options.limits,
      maxCached: options.maxCachedDocuments,
      introspection: options.introspection,
      suggestions,
      onLookup: meters?.lookup,
    },
    (document) => operationsOf(document, operationOptions),
  );
  return ({ query, operationName }) => {
    const found = documents.find(query);
    if ('errors' in found) return found;
    return found.get(operationName) ?? UNDETERMINED;
  };
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

/** Whether an operation only reads, so that a GET may run it. */
export function isQuery({ definition }: Operation): boolean {
  return definition.operation === OperationTypeNode.QUERY;
}
