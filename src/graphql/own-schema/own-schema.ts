import { type GraphQLSchema, isSchema, validateSchema } from 'graphql';
import type { Given } from '../../config/schema/given.ts';
import type { GraphqlCode } from '../../config/schema/graphql-code.ts';
import { describeError } from '../../core/describe-error.ts';
import { describeValue } from '../../core/quote.ts';
import { isKind } from './is-kind.ts';
import { readResolvers } from './read-resolvers.ts';
import { rebuildSchema } from './rebuild-schema.ts';
import { schemaOf } from './type-defs.ts';

/** What a configuration says of the schema. */
export type SchemaCode = Pick<GraphqlCode, 'typeDefs' | 'resolvers' | 'schema'>;

/**
 * The schema that a configuration asks for, from the built-in one; `name` is the module's name in messages. Appends all
 * that is wrong to `problems`; the result is then not to be used.
 */
export function ownSchema(
  { typeDefs, resolvers, schema }: SchemaCode,
  builtIn: GraphQLSchema,
  name: string,
  problems: string[],
): GraphQLSchema {
  const path = (key: string) => `${name}: graphql.${key}`;
  if (schema !== undefined) {
    const others = Object.entries({ typeDefs, resolvers }).filter(([, value]) => value !== undefined);
    for (const [key] of others)
      problems.push(`${path(key)} and graphql.schema exclude each other; leave one out`);
    return givenSchema({ value: schema, path: path('schema') }, problems) ?? builtIn;
  }
  if (typeDefs === undefined && resolvers === undefined) return builtIn;
  const defined =
    typeDefs === undefined
      ? builtIn
      : schemaOf({ value: typeDefs, path: path('typeDefs') }, builtIn, problems);
  if (defined === undefined) return builtIn;
  const wrong = validity(defined, path('typeDefs'));
  const changes = readResolvers({ value: resolvers, path: path('resolvers') }, defined, wrong);
  problems.push(...wrong);
  if (wrong.length > 0) return builtIn;
  const made = rebuildSchema(defined, changes);
  problems.push(...missingResolvers(made, path('resolvers')));
  return made;
}

/** A GraphQLSchema, made anew where another copy of GraphQL.js has made it: the built command has one of its own. */
function givenSchema({ value, path }: Given, problems: string[]): GraphQLSchema | undefined {
  if (!isKind<GraphQLSchema>(value, 'Schema')) {
    problems.push(`${path} must be a GraphQLSchema, not ${describeValue(value)}`);
    return undefined;
  }
  try {
    const schema = isSchema(value) ? value : rebuildSchema(value);
    problems.push(...validity(schema, path));
    return schema;
  } catch (error) {
    problems.push(`${path} cannot be read, perhaps for its version of GraphQL.js: ${describeError(error)}`);
    return undefined;
  }
}

/** What makes a schema invalid, with the place where that is known. */
function validity(schema: GraphQLSchema, path: string): string[] {
  return validateSchema(schema).map((error) => {
    const [place] = error.locations ?? [];
    // The definitions of an array are named by their item.
    const source = error.source?.name.startsWith(path) ? error.source.name : path;
    const at = place === undefined ? '' : ` at line ${place.line}, column ${place.column}`;
    return `${source} is not valid${at}: ${error.message}`;
  });
}

/** Root fields that would always be null, or fail: their type has no value that could hold them. */
function missingResolvers(schema: GraphQLSchema, path: string): readonly string[] {
  const roots = [
    [schema.getQueryType(), 'resolve'],
    [schema.getMutationType(), 'resolve'],
    [schema.getSubscriptionType(), 'subscribe'],
  ] as const;
  return roots.flatMap(([type, part]) =>
    Object.values(type?.getFields() ?? {})
      .filter((field) => field[part] === undefined)
      .map(
        (field) =>
          `${path} has no ${part === 'resolve' ? 'resolver' : 'subscribe'} for ${type?.name}.${field.name}`,
      ),
  );
}
