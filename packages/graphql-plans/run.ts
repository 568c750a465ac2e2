import { type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import {
  type FragmentDefinitionNode,
  type GraphQLError,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  type OperationDefinitionNode,
  responsePathAsArray,
  type VariableValues,
} from 'graphql';
import { isThenable } from '../../src/core/scheduler.ts';
import type { FieldPlan } from './plans.ts';
import type { ClientSignal, ResultBudget } from './results.ts';
import type { Arguments } from './values.ts';

/** The path of a value in the result, from the innermost key outward. */
export type Path = GraphQLResolveInfo['path'];

/** The size that an error counts as, in bytes: its stack and path take more than its text. */
const ERROR_BYTES = 1_024;

/** Options shared by all fields of a run. */
export interface RunOptions {
  readonly schema: GraphQLSchema;
  readonly definition: OperationDefinitionNode;
  readonly variables: VariableValues;
  readonly context: unknown;
  /** Passed to the functions in the extensions of fields. */
  readonly request?: unknown;
  readonly rootValue: unknown;
  readonly budget: ResultBudget;
  /** Whether the tracing channels may have subscribers. */
  readonly isTraced: boolean;
  /** The client that waits for the result; without one, a run is never abandoned. */
  readonly recipient?: ClientSignal | undefined;
}

/** Properties shared by all runs of an operation. */
interface RunPlans {
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /**
   * Whether an error in a non-null position makes the enclosing values null; otherwise only the position
   * itself becomes null.
   */
  readonly propagatesErrors: boolean;
}

/** A run of an operation: the resolvers' arguments, and the errors so far. */
export class Run {
  readonly schema: GraphQLSchema;
  readonly variables: VariableValues;
  readonly context: unknown;
  readonly request: unknown;
  readonly budget: ResultBudget;
  readonly isTraced: boolean;
  readonly propagatesErrors: boolean;
  readonly #options: RunOptions;
  readonly #plans: RunPlans;
  readonly #errors: GraphQLError[] = [];
  /** Paths that are null because of an error; undefined stands for the whole result. */
  #nulled: Set<Path | undefined> | undefined;
  /** Results of root fields with `once`, by name and arguments. */
  #resolved: Map<string, unknown> | undefined;
  /** Lists that were already searched for promises. */
  #searched: WeakSet<object> | undefined;
  #abort: AbortController | undefined;
  #isComplete = false;
  #finished = false;

  constructor(options: RunOptions, plans: RunPlans) {
    this.schema = options.schema;
    this.variables = options.variables;
    this.context = options.context;
    this.request = options.request;
    this.budget = options.budget;
    this.isTraced = options.isTraced;
    this.propagatesErrors = plans.propagatesErrors;
    this.#options = options;
    this.#plans = plans;
  }

  /** Whether the result is delivered; resolvers that are still running are ignored then. */
  get finished(): boolean {
    return this.#finished;
  }

  /** Throws if the result is delivered: later values and errors are ignored. */
  checkUnfinished(): void {
    if (this.#finished) throw new Error('The run has finished');
  }

  get errors(): readonly GraphQLError[] {
    return this.#errors;
  }

  /**
   * Records the error that makes the value at `path`, or the whole result, null, unless an enclosing value is
   * null already.
   */
  add(error: GraphQLError, path?: Path): void {
    if (this.#finished) return;
    this.#nulled ??= new Set();
    for (let at = path; at !== undefined; at = at.prev) if (this.#nulled.has(at)) return;
    if (this.#nulled.has(undefined)) return;
    this.#nulled.add(path);
    this.budget.bytes += ERROR_BYTES;
    this.#errors.push(error);
  }

  /** The result of a root field's resolver, called once for equal arguments. */
  once(field: FieldPlan, given: Arguments, info: GraphQLResolveInfo): unknown {
    this.#resolved ??= new Map();
    const key = `${field.name} ${JSON.stringify(given)}`;
    if (!this.#resolved.has(key)) {
      this.#resolved.set(key, field.resolve(this.#options.rootValue, given, this.context, info));
    }
    return this.#resolved.get(key);
  }

  /** Whether a list has not been searched yet: fields may share a long list. */
  isFirstLook(list: object): boolean {
    this.#searched ??= new WeakSet();
    const isFirst = !this.#searched.has(list);
    this.#searched.add(list);
    return isFirst;
  }

  /** Marks the result as complete and aborts the signal of resolvers that are still running. */
  complete(): void {
    this.#isComplete = true;
    this.budget.close();
    this.#abort?.abort();
  }

  /** Marks the result as delivered. */
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

/** The message of a tracing channel. */
type Message = Record<string, unknown>;
type Channel = TracingChannel<Message>;

/**
 * GraphQL.js's tracing channels for execution. GraphQL.js itself parses and validates, and publishes those
 * channels.
 */
export const channels = {
  execute: tracingChannel<Message>('graphql:execute'),
  subscribe: tracingChannel<Message>('graphql:subscribe'),
  variableCoercion: tracingChannel<Message>('graphql:execute:variableCoercion'),
  rootSelectionSet: tracingChannel<Message>('graphql:execute:rootSelectionSet'),
  resolve: tracingChannel<Message>('graphql:resolve'),
} as const;

/** Whether the tracing channels have subscribers; checked once per run. */
export function isTraced(): boolean {
  return (
    channels.execute.hasSubscribers ||
    channels.variableCoercion.hasSubscribers ||
    channels.rootSelectionSet.hasSubscribers ||
    channels.resolve.hasSubscribers
  );
}

/** Publishes the start, end and outcome of a call, and for a promise also its settlement. */
export function traced<T>(channel: Channel, message: Message, call: () => T): T {
  if (!channel.hasSubscribers) return call();
  return channel.start.runStores(message, (): T => {
    let result: T;
    try {
      result = call();
    } catch (error) {
      message.error = error;
      channel.error.publish(message);
      channel.end.publish(message);
      throw error;
    }
    if (!isThenable(result)) {
      message.result = result;
      channel.end.publish(message);
      return result;
    }
    channel.end.publish(message);
    return result.then(
      (value: unknown) => {
        message.result = value;
        channel.asyncStart.publish(message);
        channel.asyncEnd.publish(message);
        return value;
      },
      (error: unknown) => {
        message.error = error;
        channel.error.publish(message);
        channel.asyncStart.publish(message);
        channel.asyncEnd.publish(message);
        throw error;
      },
    ) as T;
  });
}

/** The tracing message for resolving a field. */
export function resolveMessage(
  { fieldName, path, parentType, returnType }: GraphQLResolveInfo,
  args: unknown,
  isDefaultResolver: boolean,
): Message {
  let fieldPath: string | undefined;
  return {
    fieldName,
    alias: String(path.key),
    parentType: parentType.name,
    fieldType: String(returnType),
    args,
    isDefaultResolver,
    get fieldPath() {
      fieldPath ??= responsePathAsArray(path).join('.');
      return fieldPath;
    },
  };
}

type Helpers = ReturnType<GraphQLResolveInfo['getAsyncHelpers']>;

/** Handles the rejections of promises that are in no result; unhandled, they would end the process. */
export function track(values: Iterable<unknown>): void {
  for (const value of values) if (isThenable(value)) value.then(ignore, ignore);
}

/** Helpers for promises that resolvers abandon. No hook waits for these promises. */
const asyncHelpers: Helpers = Object.freeze<Helpers>({
  promiseAll(values) {
    const all = Promise.all(values);
    all.then(undefined, () => track(values));
    return all;
  },
  track,
});

/**
 * `promise.then(use)`, with the same number of microtasks for thenables whose `then` does not return a
 * promise.
 */
export function after<T, R>(promise: PromiseLike<T>, use: (value: T) => R | PromiseLike<R>): Promise<R> {
  if (promise instanceof Promise) return promise.then(use);
  return new Promise((resolve, reject) => {
    promise.then((value) => {
      try {
        resolve(use(value));
      } catch (error) {
        reject(error);
      }
    }, reject);
  });
}

function ignore(): void {}
