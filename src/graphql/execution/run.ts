import type {
  FragmentDefinitionNode,
  GraphQLError,
  GraphQLFieldResolver,
  GraphQLResolveInfo,
  GraphQLSchema,
  OperationDefinitionNode,
  VariableValues,
} from 'graphql';
import type { FieldPlan } from './field-plan.ts';
import type { Recipient } from './recipient.ts';
import type { ResultBudget } from './result-budget.ts';

/** Where a value stands in the result, from the inside out. */
export type Path = GraphQLResolveInfo['path'];

/** What an error counts as in the result, in bytes: its stack and path need more than its text. */
const ERROR_BYTES = 1_024;

/** What is the same for all fields of a run. */
export interface RunOptions {
  readonly schema: GraphQLSchema;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  readonly definition: OperationDefinitionNode;
  readonly variables: VariableValues;
  readonly context: unknown;
  readonly rootValue: unknown;
  readonly budget: ResultBudget;
  /** Who waits for the result; nobody leaves a run without one. */
  readonly recipient?: Recipient | undefined;
}

/** One run of an operation: what resolvers get, and the errors so far. */
export class Run {
  readonly schema: GraphQLSchema;
  readonly variables: VariableValues;
  readonly context: unknown;
  readonly budget: ResultBudget;
  readonly #options: RunOptions;
  readonly #errors: GraphQLError[] = [];
  /** Where the result is null because of an error. */
  #nulled: Set<Path> | undefined;
  /** What root fields with `once` gave, by name and arguments. */
  #resolved: Map<string, unknown> | undefined;
  #abort: AbortController | undefined;
  #finished = false;

  constructor(options: RunOptions) {
    this.schema = options.schema;
    this.variables = options.variables;
    this.context = options.context;
    this.budget = options.budget;
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
    this.budget.bytes += ERROR_BYTES;
    this.#errors.push(error);
  }

  /** What the resolver of a root field gives, the first time that it is asked with these arguments. */
  once(
    field: FieldPlan,
    given: Readonly<Record<string, unknown>>,
    resolve: GraphQLFieldResolver<unknown, unknown>,
    path: Path,
  ): unknown {
    this.#resolved ??= new Map();
    const key = `${field.name} ${JSON.stringify(given)}`;
    if (!this.#resolved.has(key)) {
      const { rootValue } = this.#options;
      this.#resolved.set(key, resolve(rootValue, given, this.context, this.info(field, path)));
    }
    return this.#resolved.get(key);
  }

  /** Completes the result, and aborts the signal of resolvers that still run. */
  finish(): void {
    this.#finished = true;
    this.budget.close();
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
