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
import { isThenable } from '../../src/core/maybe-promise.ts';
import type { FieldPlan } from './plans.ts';
import type { ClientSignal, ResultBudget } from './results.ts';
import type { Arguments } from './values.ts';

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
  readonly recipient?: ClientSignal | undefined;
}

/** What is the same for all runs of an operation. */
interface RunPlans {
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

/** What subscribers of a channel get. */
type Message = Record<string, unknown>;
type Channel = TracingChannel<Message>;

/** The channels on which GraphQL.js says what it executes. Parsing and validation are its own, and so are theirs. */
export const channels = {
  execute: tracingChannel<Message>('graphql:execute'),
  subscribe: tracingChannel<Message>('graphql:subscribe'),
  variableCoercion: tracingChannel<Message>('graphql:execute:variableCoercion'),
  rootSelectionSet: tracingChannel<Message>('graphql:execute:rootSelectionSet'),
  resolve: tracingChannel<Message>('graphql:resolve'),
} as const;

/** Whether anybody listens while an operation runs: asked once for each run. */
export function isTraced(): boolean {
  return (
    channels.execute.hasSubscribers ||
    channels.variableCoercion.hasSubscribers ||
    channels.rootSelectionSet.hasSubscribers ||
    channels.resolve.hasSubscribers
  );
}

/** Publishes when a call begins and ends, and how; with a promise, also when that settles. */
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

/** Says that a field is resolved. */
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

/** Handles the errors of promises that are in no result: else one of them would end the process. */
export function track(values: Iterable<unknown>): void {
  for (const value of values) if (isThenable(value)) value.then(ignore, ignore);
}

/** What resolvers use for promises that they leave behind. No hook waits for these. */
const asyncHelpers: Helpers = Object.freeze<Helpers>({
  promiseAll(values) {
    const all = Promise.all(values);
    all.then(undefined, () => track(values));
    return all;
  },
  track,
});

/** `promise.then(use)`, with the same number of microtasks for a promise whose `then` returns something else. */
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
