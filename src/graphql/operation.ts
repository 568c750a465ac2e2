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
import { ResultBudget, type ResultLimits } from './execution/result-budget.ts';
import { channels, isTraced, traced } from './execution/tracing.ts';
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

/** What one run starts from. */
interface Values {
  readonly variables: VariableValues;
  /** The variables as they were sent. */
  readonly inputs: Inputs | undefined;
  readonly context: unknown;
  readonly rootValue: unknown;
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

  /** Runs a query or a mutation; the result comes at once when no resolver is asynchronous. */
  run(inputs: Inputs | undefined, context: unknown): MaybePromise<ExecutionResult> {
    const { meter } = this.#options;
    if (meter === undefined) return this.#run(inputs, context);
    this.#meter ??= meter(this.definition);
    const record = this.#meter;
    const began = performance.now();
    return whenReady(this.#run(inputs, context), (result) => {
      record(began, result.errors !== undefined);
      return result;
    });
  }

  /** Opens the event stream of a subscription, or tells why there is none. */
  subscribe(
    inputs: Inputs | undefined,
    context: unknown,
  ): MaybePromise<AsyncIterable<ExecutionResult> | ExecutionResult> {
    return traced(channels.subscribe, this.#message(inputs), () => this.#subscribe(inputs, context));
  }

  #subscribe(
    inputs: Inputs | undefined,
    context: unknown,
  ): MaybePromise<AsyncIterable<ExecutionResult> | ExecutionResult> {
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
    const { variableValues } = args;
    const refusal = this.#plansOf().refusal(variableValues);
    if (refusal !== undefined) return { errors: [refusal] };
    return whenReady(createSourceEventStream(args), (source) =>
      Symbol.asyncIterator in source
        ? mapSourceToResponseEvent(args, source, ({ rootValue }) =>
            this.#execute({ variables: variableValues, inputs, context, rootValue }, isTraced()),
          )
        : source,
    );
  }

  #run(inputs: Inputs | undefined, context: unknown): MaybePromise<ExecutionResult> {
    if (!isTraced()) {
      const variables = this.#readVariables(inputs ?? {});
      if ('errors' in variables) return variables;
      return this.#execute({ variables, inputs, context, rootValue: undefined }, false);
    }
    return traced(channels.execute, this.#message(inputs), () => {
      const read = traced(channels.variableCoercion, this.#rootMessage(inputs), () => {
        const variables = this.#readVariables(inputs ?? {});
        return 'errors' in variables ? variables : { variableValues: variables };
      });
      if ('errors' in read) return read;
      return this.#execute({ variables: read.variableValues, inputs, context, rootValue: undefined }, true);
    });
  }

  #execute(values: Values, isTraced: boolean): MaybePromise<ExecutionResult> {
    const { schema, limits, turns } = this.#options;
    const { definition } = this;
    const { variables, context, rootValue, inputs } = values;
    const plans = this.#plansOf();
    const refusal = plans.refusal(variables);
    if (refusal !== undefined) return { errors: [refusal] };
    const budget = new ResultBudget(limits, turns);
    const options = { schema, definition, variables, context, rootValue, budget, isTraced };
    return isTraced
      ? traced(channels.rootSelectionSet, this.#rootMessage(inputs), () => execute(options, plans))
      : execute(options, plans);
  }

  #plansOf(): Plans {
    const { schema, suggestions, onPlanned } = this.#options;
    this.#plans ??= new Plans({
      schema,
      document: this.#document,
      definition: this.definition,
      hideSuggestions: !suggestions,
      onPlanned,
    });
    return this.#plans;
  }

  /** What all channels say of the operation. */
  #message(inputs: Inputs | undefined): Record<string, unknown> {
    const { name, operation } = this.definition;
    return {
      schema: this.#options.schema,
      document: this.#document,
      rawVariableValues: inputs,
      operationName: name?.value,
      operationType: operation,
    };
  }

  #rootMessage(inputs: Inputs | undefined): Record<string, unknown> {
    return { ...this.#message(inputs), operation: this.definition };
  }
}
