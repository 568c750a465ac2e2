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
  const types = definitions.map((definition) => unchangedType(schema, definition));
  /** All variables, once GraphQL.js has given their signatures; none where a value may have to be changed. */
  let known: readonly Unchanged[] | undefined;

  return (inputs) => {
    const read = known && readUnchanged(known, inputs);
    if (read !== undefined) return read;
    const { variableValues, errors } = getVariableValues(schema, definitions, inputs, {
      maxErrors: MAX_VARIABLE_ERRORS,
      hideSuggestions,
    });
    if (errors !== undefined) return { errors };
    known ??= describe(variableValues);
    return variableValues;
  };

  /** Nothing of the values: they belong to a request that ends. */
  function describe({ sources }: VariableValues): readonly Unchanged[] | undefined {
    const described = definitions.map(({ variable }, index) => {
      const name = variable.name.value;
      return { name, type: types[index], signature: sources[name]?.signature };
    });
    return described.every(isUnchanged) ? described : undefined;
  }
}

function readUnchanged(variables: readonly Unchanged[], inputs: Inputs): VariableValues | undefined {
  const sources: Record<string, Source> = Object.create(null);
  const coerced: Record<string, unknown> = Object.create(null);
  for (const { name, type, signature } of variables) {
    const value = Object.hasOwn(inputs, name) ? inputs[name] : undefined;
    if (typeof value !== type) return undefined;
    sources[name] = { signature, value };
    coerced[name] = value;
  }
  return { sources, coerced };
}

type Source = NonNullable<VariableValues['sources'][string]>;

/** A variable whose values stay as they are when they have this JavaScript type. */
interface Unchanged {
  readonly name: string;
  readonly type: string;
  readonly signature: Source['signature'];
}

function isUnchanged(
  variable: {
    readonly [K in keyof Unchanged]: Unchanged[K] | undefined;
  },
): variable is Unchanged {
  return variable.type !== undefined && variable.signature !== undefined;
}

function unchangedType(schema: GraphQLSchema, { type }: VariableDefinitionNode): string | undefined {
  const inner = type.kind === Kind.NON_NULL_TYPE ? type.type : type;
  if (inner.kind !== Kind.NAMED_TYPE) return undefined;
  const named = schema.getType(inner.name.value);
  if (named === GraphQLString || named === GraphQLID) return 'string';
  return named === GraphQLBoolean ? 'boolean' : undefined;
}
