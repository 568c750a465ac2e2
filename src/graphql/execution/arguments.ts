import {
  BREAK,
  type FieldNode,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  getArgumentValues,
  getNullableType,
  isEnumType,
  isNonNullType,
  Kind,
  specifiedScalarTypes,
  type ValueNode,
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
