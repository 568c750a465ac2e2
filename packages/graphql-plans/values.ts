import {
  BREAK,
  type FieldNode,
  type GraphQLArgument,
  GraphQLBoolean,
  type GraphQLError,
  type GraphQLField,
  GraphQLID,
  type GraphQLInputType,
  type GraphQLSchema,
  GraphQLString,
  getArgumentValues,
  getNullableType,
  getVariableValues,
  isEnumType,
  isNonNullType,
  Kind,
  specifiedScalarTypes,
  type ValueNode,
  type VariableDefinitionNode,
  type VariableValues,
  visit,
} from 'graphql';

export type Arguments = Readonly<Record<string, unknown>>;

const BUILT_IN: ReadonlySet<unknown> = new Set(specifiedScalarTypes);

/** Gives the arguments of a field for the variables of a run. Throws GraphQLError for those that are wrong. */
export type ReadArguments = (variables: VariableValues) => Arguments;

/**
 * Plans how the arguments of a field are read. GraphQL.js coerces them, except where the result is constant or consists
 * of the variables as they are.
 */
export function planArguments(
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
  hideSuggestions: boolean,
): ReadArguments {
  const coerce: ReadArguments = (variables) =>
    getArgumentValues(definition, node, variables, undefined, hideSuggestions);
  const given = new Map(node.arguments?.map(({ name, value }) => [name.value, value]));
  if (!hasVariables(node)) {
    const isConstant = definition.args.every(({ name, type }) => isSame(type, given.get(name)));
    return isConstant ? constant(coerce) : coerce;
  }

  const direct: { name: string; variable: string; nonNull: boolean }[] = [];
  for (const argument of definition.args) {
    const value = given.get(argument.name);
    if (value?.kind === Kind.VARIABLE) {
      const { name, type } = argument;
      direct.push({ name, variable: value.name.value, nonNull: isNonNullType(type) });
    } else if (value !== undefined || hasDefault(argument)) return coerce;
  }
  return (variables) => {
    const values: Record<string, unknown> = Object.create(null);
    for (const { name, variable, nonNull } of direct) {
      const value = variables.coerced[variable];
      // Missing ones have defaults or messages of their own.
      if (value === undefined || (value === null && nonNull)) return coerce(variables);
      values[name] = value;
    }
    return values;
  };
}

/** Coerces arguments without variables once; objects each time, because resolvers may change them. */
function constant(coerce: ReadArguments): ReadArguments {
  let values: Arguments;
  try {
    values = coerce({ sources: {}, coerced: {} });
  } catch {
    return coerce;
  }
  if (Object.values(values).some((value) => Object(value) === value)) return coerce;
  const entries = Object.entries(values);
  return () => {
    const copy: Record<string, unknown> = Object.create(null);
    for (const [name, value] of entries) copy[name] = value;
    return copy;
  };
}

/** Whether a literal has the same value each time that it is read: no program's code makes it. */
function isSame(type: GraphQLInputType, value: ValueNode | undefined): boolean {
  if (value === undefined || value.kind === Kind.NULL) return true;
  const leaf = getNullableType(type);
  return isEnumType(leaf) || BUILT_IN.has(leaf);
}

function hasVariables({ arguments: given = [] }: FieldNode): boolean {
  let found = false;
  for (const { value } of given) {
    visit(value, {
      Variable() {
        found = true;
        return BREAK;
      },
    });
  }
  return found;
}

function hasDefault(argument: GraphQLArgument): boolean {
  return argument.default !== undefined || argument.defaultValue !== undefined;
}

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
