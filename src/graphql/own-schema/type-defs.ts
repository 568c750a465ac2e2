import {
  buildASTSchema,
  type DocumentNode,
  extendSchema,
  GraphQLError,
  type GraphQLSchema,
  isTypeSystemDefinitionNode,
  isTypeSystemExtensionNode,
  Kind,
  parse,
  Source,
} from 'graphql';
import type { Given } from '../../config/schema/given.ts';
import { describeValue } from '../../core/quote.ts';

/**
 * Makes the schema of type definitions: they are the whole of it, or extend the built-in one. Appends all that is wrong
 * to `problems` and returns undefined then.
 */
export function schemaOf(
  given: Given,
  builtIn: GraphQLSchema,
  problems: string[],
): GraphQLSchema | undefined {
  const document = readTypeDefs(given, problems);
  if (document === undefined) return undefined;
  try {
    return isWhole(document) ? buildASTSchema(document) : extendSchema(builtIn, document);
  } catch (error) {
    // GraphQL.js throws one error with the messages of all.
    const messages = error instanceof Error ? error.message.split('\n\n') : [String(error)];
    problems.push(...messages.map((message) => `${given.path} is not valid: ${message}`));
    return undefined;
  }
}

/** Whether definitions do not need another schema to extend. */
function isWhole({ definitions }: DocumentNode): boolean {
  return definitions.some(
    (each) =>
      each.kind === Kind.SCHEMA_DEFINITION ||
      (each.kind === Kind.OBJECT_TYPE_DEFINITION && each.name.value === 'Query'),
  );
}

function readTypeDefs({ value, path }: Given, problems: string[]): DocumentNode | undefined {
  const items: readonly Given[] = Array.isArray(value)
    ? Array.from<unknown, Given>(value, (item, index) => ({ value: item, path: `${path}[${index}]` }))
    : [{ value, path }];
  const documents = items.map((item) => readDocument(item, problems));
  if (items.length === 0) problems.push(`${path} is empty; leave it out`);
  if (items.length === 0 || documents.includes(undefined)) return undefined;
  return {
    kind: Kind.DOCUMENT,
    definitions: documents.flatMap((document) => document?.definitions ?? []),
  };
}

function readDocument({ value, path }: Given, problems: string[]): DocumentNode | undefined {
  const document = typeof value === 'string' ? parsed(value, path, problems) : value;
  if (document === undefined && typeof value === 'string') return undefined;
  if (!isDocument(document)) {
    problems.push(
      `${path} must be a text or a DocumentNode of type definitions, not ${describeValue(value)}`,
    );
    return undefined;
  }
  const other = document.definitions.find(
    (each) => !isTypeSystemDefinitionNode(each) && !isTypeSystemExtensionNode(each),
  );
  if (other === undefined) return document;
  problems.push(`${path} must hold type definitions only, and has an operation or a fragment`);
  return undefined;
}

function parsed(text: string, path: string, problems: string[]): DocumentNode | undefined {
  try {
    return parse(new Source(text, path));
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    const [{ line, column } = { line: 1, column: 1 }] = error.locations ?? [];
    const what = error.message.replace(/^Syntax Error: /, '');
    problems.push(`${path} has a syntax error at line ${line}, column ${column}: ${what}`);
    return undefined;
  }
}

function isDocument(value: unknown): value is DocumentNode {
  const { kind, definitions } = Object(value) as Partial<DocumentNode>;
  return kind === Kind.DOCUMENT && Array.isArray(definitions);
}
