import type {
  FragmentDefinitionNode,
  GraphQLError,
  GraphQLResolveInfo,
  GraphQLSchema,
  OperationDefinitionNode,
  VariableValues,
} from 'graphql';
import type { FieldPlan } from './field-plan.ts';

/** Where a value stands in the result, from the inside out. */
export type Path = GraphQLResolveInfo['path'];

export interface RunOptions {
  readonly schema: GraphQLSchema;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  readonly definition: OperationDefinitionNode;
  readonly variables: VariableValues;
  readonly context: unknown;
  readonly rootValue: unknown;
}

/** One run of an operation: what resolvers get, and the errors so far. */
export class Run {
  readonly schema: GraphQLSchema;
  readonly variables: VariableValues;
  readonly context: unknown;
  readonly #options: RunOptions;
  readonly #errors: GraphQLError[] = [];
  /** Where the result is null because of an error. */
  #nulled: Set<Path> | undefined;
  #abort: AbortController | undefined;
  #finished = false;

  constructor(options: RunOptions) {
    this.schema = options.schema;
    this.variables = options.variables;
    this.context = options.context;
    this.#options = options;
  }

  /** Whether the result is out; nothing that is still under way matters then. */
  get finished(): boolean {
    return this.#finished;
  }

  get errors(): readonly GraphQLError[] {
    return this.#errors;
  }

  /** Notes why the result is null at `path`, or all of it, unless it is null around there already. */
  add(error: GraphQLError, path?: Path): void {
    if (this.#finished) return;
    this.#nulled ??= new Set();
    for (let at = path; at !== undefined; at = at.prev) if (this.#nulled.has(at)) return;
    if (path !== undefined) this.#nulled.add(path);
    this.#errors.push(error);
  }

  /** Tells resolvers that still work for a part of the result that was given up. */
  finish(): void {
    this.#finished = true;
    this.#abort?.abort();
  }

  info(field: FieldPlan, path: Path): GraphQLResolveInfo {
    const { schema, fragments, definition, variables, rootValue } = this.#options;
    return {
      fieldName: field.name,
      fieldNodes: field.nodes,
      returnType: field.definition.type,
      parentType: field.parent,
      path,
      schema,
      fragments,
      rootValue,
      operation: definition,
      variableValues: variables,
      getAbortSignal: this.#getAbortSignal,
      getAsyncHelpers,
    };
  }

  readonly #getAbortSignal = (): AbortSignal => {
    this.#abort ??= new AbortController();
    if (this.#finished) this.#abort.abort();
    return this.#abort.signal;
  };
}

/** Work that resolvers leave behind is nobody's business here: no hook waits for it. */
const getAsyncHelpers: GraphQLResolveInfo['getAsyncHelpers'] = () => ({
  promiseAll: (values) => Promise.all(values),
  track() {},
});
