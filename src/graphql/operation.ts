import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  mapSourceToResponseEvent,
  type OperationDefinitionNode,
  type VariableValues,
  validateSubscriptionArgs,
} from 'graphql';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import { execute } from './execution/execute.ts';
import { Plans } from './execution/plans.ts';
import { ABANDONED, type Recipient, SharedRecipient } from './execution/recipient.ts';
import { ResultBudget, type ResultLimits } from './execution/result-budget.ts';
import type { Turns } from './execution/turns.ts';
import {
  type Inputs,
  MAX_VARIABLE_ERRORS,
  type ReadVariables,
  variableReader,
} from './execution/variables.ts';
import type { OperationMeter } from './operation-meters.ts';

/** What the operations of a door share. */
export interface OperationOptions {
  readonly schema: GraphQLSchema;
  readonly suggestions: boolean;
  readonly limits: ResultLimits;
  readonly turns: Turns;
  /** Told of what plans take, in bytes, as they are made. */
  readonly onPlanned: (bytes: number) => void;
  /** Makes the meter of an operation when it runs for the first time. */
  readonly meter: ((definition: OperationDefinitionNode) => OperationMeter) | undefined;
}

/** One operation of a valid document, ready to be run any number of times. */
export class Operation {
  readonly definition: OperationDefinitionNode;
  readonly #document: DocumentNode;
  readonly #options: OperationOptions;
  readonly #readVariables: ReadVariables;
  /** Made by the first run. */
  #plans: Plans | undefined;
  #meter: OperationMeter | undefined;

  constructor(document: DocumentNode, definition: OperationDefinitionNode, options: OperationOptions) {
    const { schema, suggestions } = options;
    this.#document = document;
    this.definition = definition;
    this.#options = options;
    this.#readVariables = variableReader(schema, definition.variableDefinitions ?? [], !suggestions);
  }

  /**
   * Runs a query or a mutation once the context is there; the result comes at once when no resolver is asynchronous. Else the run ends once the
   * recipient has left, with ABANDONED for a result.
   */
  run(
    inputs: Inputs | undefined,
    context: unknown,
    recipient?: Recipient | undefined,
  ): MaybePromise<ExecutionResult> {
    if (context instanceof Promise) return context.then((ready) => this.run(inputs, ready, recipient));
    const { meter } = this.#options;
    if (meter === undefined) return this.#run(inputs, context, recipient);
    this.#meter ??= meter(this.definition);
    const record = this.#meter;
    const began = performance.now();
    return whenReady(this.#run(inputs, context, recipient), (result) => {
      if (result === ABANDONED) record(began, 'abandoned');
      else record(began, result.errors === undefined ? 'success' : 'error');
      return result;
    });
  }

  /** Opens the event stream of a subscription, or tells why there is none. */
  subscribe(
    inputs: Inputs | undefined,
    context: unknown,
    recipient?: Recipient | undefined,
  ): MaybePromise<AsyncIterable<ExecutionResult> | ExecutionResult> {
    if (context instanceof Promise) return context.then((ready) => this.subscribe(inputs, ready, recipient));
    const { schema, suggestions } = this.#options;
    const args = validateSubscriptionArgs({
      schema,
      document: this.#document,
      operationName: this.definition.name?.value ?? null,
      variableValues: inputs ?? null,
      contextValue: context,
      hideSuggestions: !suggestions,
      options: { maxCoercionErrors: MAX_VARIABLE_ERRORS },
    });
    if (!('schema' in args)) return { errors: args };
    const shared = recipient && new SharedRecipient(recipient);
    return whenReady(createSourceEventStream(args), (source) =>
      Symbol.asyncIterator in source
        ? mapSourceToResponseEvent(args, source, ({ rootValue }) =>
            this.#execute(args.variableValues, context, rootValue, shared),
          )
        : source,
    );
  }

  #run(
    inputs: Inputs | undefined = {},
    context: unknown,
    recipient: Recipient | undefined,
  ): MaybePromise<ExecutionResult> {
    const variables = this.#readVariables(inputs);
    return 'errors' in variables ? variables : this.#execute(variables, context, undefined, recipient);
  }

  #execute(
    variables: VariableValues,
    context: unknown,
    rootValue: unknown,
    recipient: Recipient | undefined,
  ): MaybePromise<ExecutionResult> {
    const { schema, suggestions, limits, turns, onPlanned } = this.#options;
    const { definition } = this;
    this.#plans ??= new Plans({
      schema,
      document: this.#document,
      definition,
      hideSuggestions: !suggestions,
      onPlanned,
    });
    const budget = new ResultBudget(limits, turns);
    return execute({ schema, definition, variables, context, rootValue, budget, recipient }, this.#plans);
  }
}
