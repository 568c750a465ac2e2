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

/** Coerces the variables of one operation. Strings and Booleans stay as they are, without a call of GraphQL.js. */
export class VariableReader {
  readonly #schema: GraphQLSchema;
  readonly #definitions: readonly VariableDefinitionNode[];
  readonly #hideSuggestions: boolean;
  /** By variable, the JavaScript type whose values stay as they are; undefined where there is none. */
  readonly #unchanged: readonly (readonly [name: string, type: string | undefined])[];
  /** The variables as GraphQL.js described them when it first read them all. */
  #sources: VariableValues['sources'] | undefined;

  constructor(
    schema: GraphQLSchema,
    definitions: readonly VariableDefinitionNode[],
    hideSuggestions: boolean,
  ) {
    this.#schema = schema;
    this.#definitions = definitions;
    this.#hideSuggestions = hideSuggestions;
    this.#unchanged = definitions.map((definition) => [
      definition.variable.name.value,
      unchangedType(schema, definition),
    ]);
  }

  read(inputs: Inputs): VariableValues | { readonly errors: readonly GraphQLError[] } {
    const unchanged = this.#readUnchanged(inputs);
    if (unchanged !== undefined) return unchanged;
    const { variableValues, errors } = getVariableValues(this.#schema, this.#definitions, inputs, {
      maxErrors: MAX_VARIABLE_ERRORS,
      hideSuggestions: this.#hideSuggestions,
    });
    if (errors !== undefined) return { errors };
    this.#sources = variableValues.sources;
    return variableValues;
  }

  #readUnchanged(inputs: Inputs): VariableValues | undefined {
    const known = this.#sources;
    if (known === undefined) return undefined;
    const sources: Record<string, VariableValues['sources'][string]> = Object.create(null);
    const coerced: Record<string, unknown> = Object.create(null);
    for (const [name, type] of this.#unchanged) {
      const value = Object.hasOwn(inputs, name) ? inputs[name] : undefined;
      const source = known[name];
      if (source === undefined || type === undefined || typeof value !== type) return undefined;
      sources[name] = { signature: source.signature, value };
      coerced[name] = value;
    }
    return { sources, coerced };
  }
}

function unchangedType(schema: GraphQLSchema, { type }: VariableDefinitionNode): string | undefined {
  const inner = type.kind === Kind.NON_NULL_TYPE ? type.type : type;
  if (inner.kind !== Kind.NAMED_TYPE) return undefined;
  const named = schema.getType(inner.name.value);
  if (named === GraphQLString || named === GraphQLID) return 'string';
  return named === GraphQLBoolean ? 'boolean' : undefined;
}
