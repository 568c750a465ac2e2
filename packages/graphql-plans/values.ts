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

/**
 * Reads the arguments of a field, given the variables of a run. Throws GraphQLError if an argument is
 * invalid.
 */
export type ReadArguments = (variables: VariableValues) => Arguments;

/**
 * Plans how the arguments of a field are read. GraphQL.js coerces them unless the result is constant or
 * consists of unchanged variables.
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
      // GraphQL.js supplies the default or the error for a missing value.
      if (value === undefined || (value === null && nonNull)) return coerce(variables);
      values[name] = value;
    }
    return values;
  };
}

/** Coerces arguments without variables once, unless a value is an object, which resolvers might modify. */
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

/** Whether a literal is read as the same value each time, without calling custom scalar code. */
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

/** The variables as a client sent them. */
export type Inputs = Readonly<Record<string, unknown>>;

/** Maximum errors reported for the variables of a request. */
export const MAX_VARIABLE_ERRORS = 10;

/** Coerces the variables that a client sent for an operation. */
export type ReadVariables = (inputs: Inputs) => VariableValues | { readonly errors: readonly GraphQLError[] };

/**
 * Creates the reader for an operation's variables. Strings, IDs and Booleans are passed through without
 * calling GraphQL.js.
 */
export function variableReader(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
  hideSuggestions: boolean,
): ReadVariables {
  const types = definitions.map((definition) => unchangedType(schema, definition));
  /** All variables, once GraphQL.js has provided their signatures; undefined if any may need coercion. */
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

  /** Keeps no values, because they belong to a single request. */
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

/** A variable that needs no coercion if its value has this JavaScript type. */
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
