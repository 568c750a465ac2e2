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

/** What is the same for all fields of a run. */
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

  /** Whether the result is complete; what still runs is ignored then. */
  get finished(): boolean {
    return this.#finished;
  }

  get errors(): readonly GraphQLError[] {
    return this.#errors;
  }

  /** Records why the result is null at `path`, or all of it, unless an enclosing value is null already. */
  add(error: GraphQLError, path?: Path): void {
    if (this.#finished) return;
    this.#nulled ??= new Set();
    for (let at = path; at !== undefined; at = at.prev) if (this.#nulled.has(at)) return;
    if (path !== undefined) this.#nulled.add(path);
    this.#errors.push(error);
  }

  /** Completes the result, and aborts the signal of resolvers that still run. */
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

/** No hook waits for work that resolvers leave behind. */
const getAsyncHelpers: GraphQLResolveInfo['getAsyncHelpers'] = () => ({
  promiseAll: (values) => Promise.all(values),
  track() {},
});
