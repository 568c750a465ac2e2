import {
  GraphQLBoolean,
  type GraphQLError,
  GraphQLID,
  type GraphQLSchema,
  GraphQLString,
  getVariableValues,
  Kind,
  type VariableDefinitionNode,
  type VariableValues,
} from 'graphql';

/** What a client sent for the variables. */
export type Inputs = Readonly<Record<string, unknown>>;

/** Maximum errors listed for the variables of one request. */
export const MAX_VARIABLE_ERRORS = 10;

/** Coerces what a client sent for the variables of an operation. */
export type ReadVariables = (inputs: Inputs) => VariableValues | { readonly errors: readonly GraphQLError[] };

/** Prepares the variables of one operation. Strings and Booleans stay as they are, without a call of GraphQL.js. */
export function variableReader(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
  hideSuggestions: boolean,
): ReadVariables {
  /** By variable, the JavaScript type whose values stay as they are; undefined where there is none. */
  const unchanged = definitions.map(
    (definition) => [definition.variable.name.value, unchangedType(schema, definition)] as const,
  );
  /** The variables' signatures as GraphQL.js gave them when it first read them all. */
  let known: Signatures | undefined;

  return (inputs) => {
    const read = known && readUnchanged(known, inputs);
    if (read !== undefined) return read;
    const { variableValues, errors } = getVariableValues(schema, definitions, inputs, {
      maxErrors: MAX_VARIABLE_ERRORS,
      hideSuggestions,
    });
    if (errors !== undefined) return { errors };
    known ??= signaturesOf(variableValues);
    return variableValues;
  };

  function readUnchanged(signatures: Signatures, inputs: Inputs): VariableValues | undefined {
    const sources: Record<string, Source> = Object.create(null);
    const coerced: Record<string, unknown> = Object.create(null);
    for (const [name, type] of unchanged) {
      const value = Object.hasOwn(inputs, name) ? inputs[name] : undefined;
      const signature = signatures[name];
      if (signature === undefined || type === undefined || typeof value !== type) return undefined;
      sources[name] = { signature, value };
      coerced[name] = value;
    }
    return { sources, coerced };
  }
}

type Source = NonNullable<VariableValues['sources'][string]>;
type Signatures = Readonly<Record<string, Source['signature']>>;

/** Nothing of the values: they belong to a request that ends. */
function signaturesOf({ sources }: VariableValues): Signatures {
  return Object.fromEntries(Object.entries(sources).map(([name, { signature }]) => [name, signature]));
}

function unchangedType(schema: GraphQLSchema, { type }: VariableDefinitionNode): string | undefined {
  const inner = type.kind === Kind.NON_NULL_TYPE ? type.type : type;
  if (inner.kind !== Kind.NAMED_TYPE) return undefined;
  const named = schema.getType(inner.name.value);
  if (named === GraphQLString || named === GraphQLID) return 'string';
  return named === GraphQLBoolean ? 'boolean' : undefined;
}
