import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  type GraphQLSchema,
  type OperationDefinitionNode,
  subscribe,
} from 'graphql';
import { type MaybePromise, whenReady } from '../users/maybe-promise.ts';
import type { Compile, Compiled } from './compile.ts';
import type { OperationMeter } from './operation-meters.ts';

export type Variables = Readonly<Record<string, unknown>> | undefined;

export interface OperationOptions {
  readonly schema: GraphQLSchema;
  readonly suggestions: boolean;
  /** Turns an operation that is used again into a function; absent: every run is interpreted. */
  readonly compile: Compile | undefined;
  /** Makes the meter of an operation when it runs for the first time. */
  readonly meter: ((definition: OperationDefinitionNode) => OperationMeter) | undefined;
}

/** One operation of a valid document, ready to be run any number of times. */
export class Operation {
  readonly definition: OperationDefinitionNode;
  readonly #document: DocumentNode;
  readonly #options: OperationOptions;
  #used = false;
  #compiled: Compiled | undefined;
  #meter: OperationMeter | undefined;

  constructor(document: DocumentNode, definition: OperationDefinitionNode, options: OperationOptions) {
    this.#document = document;
    this.definition = definition;
    this.#options = options;
  }

  /** Runs a query or a mutation; the result comes at once when no resolver is asynchronous. */
  run(variables: Variables, context: unknown): MaybePromise<ExecutionResult> {
    const { meter } = this.#options;
    if (meter === undefined) return this.#run(variables, context);
    this.#meter ??= meter(this.definition);
    const record = this.#meter;
    const began = performance.now();
    return whenReady(this.#run(variables, context), (result) => {
      record(began, result.errors !== undefined);
      return result;
    });
  }

  #run(variables: Variables, context: unknown): MaybePromise<ExecutionResult> {
    const compiled = this.#compiled ?? this.#compile();
    if (compiled === undefined) return execute(this.#args(variables, context));
    return whenReady(compiled(variables ?? {}, context), (result) =>
      // Nothing ran: the variables are wrong, and the reference says how in its own words.
      'data' in result ? result : execute(this.#args(variables, context)),
    );
  }

  /** Opens the event stream of a subscription, or tells why there is none. */
  subscribe(
    variables: Variables,
    context: unknown,
  ): MaybePromise<AsyncIterable<ExecutionResult> | ExecutionResult> {
    return subscribe(this.#args(variables, context));
  }

  /** A flood of documents that are used once costs no compilation. */
  #compile(): Compiled | undefined {
    if (this.#used) this.#compiled = this.#options.compile?.(this.#document, this.definition.name?.value);
    this.#used = true;
    return this.#compiled;
  }

  #args(variables: Variables, context: unknown) {
    const { schema, suggestions } = this.#options;
    return {
      schema,
      document: this.#document,
      operationName: this.definition.name?.value ?? null,
      variableValues: variables ?? null,
      contextValue: context,
      hideSuggestions: !suggestions,
    };
  }
}
