import type {
  FragmentDefinitionNode,
  GraphQLError,
  GraphQLResolveInfo,
  GraphQLSchema,
  OperationDefinitionNode,
  VariableValues,
} from 'graphql';
import type { Arguments } from './arguments.ts';
import type { FieldPlan } from './field-plan.ts';
import { asyncHelpers } from './promises.ts';
import type { Recipient } from './recipient.ts';
import type { ResultBudget } from './result-budget.ts';

/** Where a value stands in the result, from the inside out. */
export type Path = GraphQLResolveInfo['path'];

/** What an error counts as in the result, in bytes: its stack and path need more than its text. */
const ERROR_BYTES = 1_024;

/** What is the same for all fields of a run. */
export interface RunOptions {
  readonly schema: GraphQLSchema;
  readonly definition: OperationDefinitionNode;
  readonly variables: VariableValues;
  readonly context: unknown;
  readonly rootValue: unknown;
  readonly budget: ResultBudget;
  /** Whether somebody may listen to the channels of tracing.ts. */
  readonly isTraced: boolean;
  /** Who waits for the result; nobody leaves a run without one. */
  readonly recipient?: Recipient | undefined;
}

/** What is the same for all runs of an operation. */
export interface RunPlans {
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /** Whether an error makes the enclosing values null that may not hold null; else each stays where it is. */
  readonly propagatesErrors: boolean;
}

/** One run of an operation: what resolvers get, and the errors so far. */
export class Run {
  readonly schema: GraphQLSchema;
  readonly variables: VariableValues;
  readonly context: unknown;
  readonly budget: ResultBudget;
  readonly isTraced: boolean;
  readonly propagatesErrors: boolean;
  readonly #options: RunOptions;
  readonly #plans: RunPlans;
  readonly #errors: GraphQLError[] = [];
  /** Where the result is null because of an error; undefined in it stands for all of the result. */
  #nulled: Set<Path | undefined> | undefined;
  /** What root fields with `once` gave, by name and arguments. */
  #resolved: Map<string, unknown> | undefined;
  /** Lists that were looked through for promises. */
  #looked: WeakSet<object> | undefined;
  #abort: AbortController | undefined;
  #isComplete = false;
  #finished = false;

  constructor(options: RunOptions, plans: RunPlans) {
    this.schema = options.schema;
    this.variables = options.variables;
    this.context = options.context;
    this.budget = options.budget;
    this.isTraced = options.isTraced;
    this.propagatesErrors = plans.propagatesErrors;
    this.#options = options;
    this.#plans = plans;
  }

  /** Whether the result is out; what still runs is ignored then. */
  get finished(): boolean {
    return this.#finished;
  }

  /** Throws once the result is out: what still runs then is of no use, and its errors are nobody's. */
  checkUnfinished(): void {
    if (this.#finished) throw new Error('The run has finished');
  }

  get errors(): readonly GraphQLError[] {
    return this.#errors;
  }

  /** Records why the result is null at `path`, or all of it, unless an enclosing value is null already. */
  add(error: GraphQLError, path?: Path): void {
    if (this.#finished) return;
    this.#nulled ??= new Set();
    for (let at = path; at !== undefined; at = at.prev) if (this.#nulled.has(at)) return;
    if (this.#nulled.has(undefined)) return;
    this.#nulled.add(path);
    this.budget.bytes += ERROR_BYTES;
    this.#errors.push(error);
  }

  /** What the resolver of a root field gives, the first time that it is asked with these arguments. */
  once(field: FieldPlan, given: Arguments, info: GraphQLResolveInfo): unknown {
    this.#resolved ??= new Map();
    const key = `${field.name} ${JSON.stringify(given)}`;
    if (!this.#resolved.has(key)) {
      this.#resolved.set(key, field.resolve(this.#options.rootValue, given, this.context, info));
    }
    return this.#resolved.get(key);
  }

  /** Whether a list is looked through for the first time: one that many fields share may be long. */
  isFirstLook(list: object): boolean {
    this.#looked ??= new WeakSet();
    const isFirst = !this.#looked.has(list);
    this.#looked.add(list);
    return isFirst;
  }

  /** The result is made: aborts the signal of resolvers that still run. */
  complete(): void {
    this.#isComplete = true;
    this.budget.close();
    this.#abort?.abort();
  }

  /** The result is out. */
  finish(): void {
    this.#finished = true;
  }

  info(field: FieldPlan, path: Path): GraphQLResolveInfo {
    const { schema, definition, variables, rootValue } = this.#options;
    return {
      fieldName: field.name,
      fieldNodes: field.nodes,
      returnType: field.definition.type,
      parentType: field.parent,
      path,
      schema,
      fragments: this.#plans.fragments,
      rootValue,
      operation: definition,
      variableValues: variables,
      getAbortSignal: this.#getAbortSignal,
      getAsyncHelpers,
    };
  }

  readonly #getAbortSignal = (): AbortSignal => {
    this.#abort ??= new AbortController();
    if (this.#isComplete) this.#abort.abort();
    return this.#abort.signal;
  };
}

const getAsyncHelpers = () => asyncHelpers;
