import { type DocumentNode, type GraphQLError, Kind } from 'graphql';
import { Operation, type OperationOptions } from '../operation.ts';

/** The operations of one document by name; the only one of a document also stands under undefined. */
export type Operations = ReadonlyMap<string | undefined, Operation>;

/** Why a document cannot run. */
export interface Refused {
  readonly errors: readonly GraphQLError[];
  /** Header fields of the refusal, by name in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Makes the operations of a valid document. */
export function operationsOf(document: DocumentNode, options: OperationOptions): Operations {
  const operations = new Map<string | undefined, Operation>();
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    operations.set(definition.name?.value, new Operation(document, definition, options));
  }
  const [only, second] = operations.values();
  if (only !== undefined && second === undefined) operations.set(undefined, only);
  return operations;
}
