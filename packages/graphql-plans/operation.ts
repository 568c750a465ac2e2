import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isLeafType,
  isObjectType,
  Kind,
  mapSourceToResponseEvent,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type VariableValues,
  validateSubscriptionArgs,
} from 'graphql';
import type { CooperativeScheduler } from '../../src/core/scheduler.ts';
import { type MaybePromise, whenReady } from '../../src/core/scheduler.ts';
import { execute } from './execute.ts';
import { Plans } from './plans.ts';
import {
  ABANDONED,
  type ClientSignal,
  ResultBudget,
  type ResultLimits,
  SharedClientSignal,
} from './results.ts';
import { channels, isTraced, traced } from './run.ts';
import { type Inputs, MAX_VARIABLE_ERRORS, type ReadVariables, variableReader } from './values.ts';

/** Options shared by the operations of a door. */
export interface OperationOptions {
  readonly schema: GraphQLSchema;
  readonly suggestions: boolean;
  readonly limits: ResultLimits;
  readonly turns: CooperativeScheduler;
  /** Called with the bytes that new plans take, or with a negative number when plans are discarded. */
  readonly onPlanned: (bytes: number) => void;
  /** Creates the meter of an operation when it first runs. */
  readonly meter: ((definition: OperationDefinitionNode) => OperationMeter) | undefined;
}

/** The arguments of a run or a subscription. */
interface Call {
  readonly inputs: Inputs | undefined;
  readonly context: unknown;
  /** The client that waits for the result; without one, a run is never abandoned. */
  readonly recipient: ClientSignal | undefined;
}

/** An operation of a valid document, which can run any number of times. */
export class Operation {
  readonly definition: OperationDefinitionNode;
  readonly #document: DocumentNode;
  readonly #options: OperationOptions;
  readonly #readVariables: ReadVariables;
  /** Created by the first run. */
  #plans: Plans | undefined;
  #meter: OperationMeter | undefined;
  #showsStored: boolean | undefined;

  constructor(document: DocumentNode, definition: OperationDefinitionNode, options: OperationOptions) {
    const { schema, suggestions } = options;
    this.#document = document;
    this.definition = definition;
    this.#options = options;
    this.#readVariables = variableReader(schema, definition.variableDefinitions ?? [], !suggestions);
  }

  /** Whether the result of a mutation can reveal data stored before it. */
  get showsStored(): boolean {
    this.#showsStored ??= showsStored(this.#options.schema, this.#document, this.definition);
    return this.#showsStored;
  }

  /**
   * Runs a query or a mutation once `context` is resolved. Returns the result synchronously if no resolver is
   * asynchronous. An asynchronous run ends with ABANDONED if the recipient leaves first.
   */
  run(
    inputs: Inputs | undefined,
    context: unknown,
    recipient?: ClientSignal | undefined,
  ): MaybePromise<ExecutionResult> {
    if (context instanceof Promise) return context.then((ready) => this.run(inputs, ready, recipient));
    const { meter } = this.#options;
    const call = { inputs, context, recipient };
    if (meter === undefined) return this.#run(call);
    this.#meter ??= meter(this.definition);
    const record = this.#meter;
    const began = performance.now();
    return whenReady(this.#run(call), (result) => {
      if (result === ABANDONED) record(began, 'abandoned');
      else record(began, result.errors === undefined ? 'success' : 'error');
      return result;
    });
  }

  /** Opens the event stream of a subscription, or returns a result with the errors that prevent it. */
  subscribe(
    inputs: Inputs | undefined,
    context: unknown,
    recipient?: ClientSignal | undefined,
  ): MaybePromise<AsyncIterable<ExecutionResult> | ExecutionResult> {
    if (context instanceof Promise) return context.then((ready) => this.subscribe(inputs, ready, recipient));
    const shared = recipient && new SharedClientSignal(recipient);
    return traced(channels.subscribe, this.#message(inputs), () =>
      this.#subscribe({ inputs, context, recipient: shared }),
    );
  }

  #subscribe(call: Call): MaybePromise<AsyncIterable<ExecutionResult> | ExecutionResult> {
    const { schema, suggestions } = this.#options;
    const args = validateSubscriptionArgs({
      schema,
      document: this.#document,
      operationName: this.definition.name?.value ?? null,
      ...(call.inputs !== undefined && { variableValues: call.inputs }),
      contextValue: call.context,
      hideSuggestions: !suggestions,
      options: { maxCoercionErrors: MAX_VARIABLE_ERRORS },
    });
    if (!('schema' in args)) return { errors: args };
    const { variableValues } = args;
    const refusal = this.#plansOf().refusal(variableValues);
    if (refusal !== undefined) return { errors: [refusal] };
    // Raw variables may take twenty times the memory of their text, and only tracers need them again.
    const [kept, keptArgs] = isTraced()
      ? [call, args]
      : [
          { ...call, inputs: undefined },
          { ...args, rawVariableValues: undefined },
        ];
    return whenReady(createSourceEventStream(args), (source) =>
      Symbol.asyncIterator in source
        ? mapSourceToResponseEvent(keptArgs, source, ({ rootValue }) =>
            isTraced()
              ? this.#executeTraced(kept, variableValues, rootValue)
              : this.#execute(kept, variableValues, rootValue, false),
          )
        : source,
    );
  }

  #run(call: Call): MaybePromise<ExecutionResult> {
    if (isTraced()) return this.#runTraced(call);
    const variables = this.#readVariables(call.inputs ?? {});
    return 'errors' in variables ? variables : this.#execute(call, variables, undefined, false);
  }

  #runTraced(call: Call): MaybePromise<ExecutionResult> {
    const { inputs } = call;
    return traced(channels.execute, this.#message(inputs), () => {
      const read = traced(channels.variableCoercion, this.#rootMessage(inputs), () => {
        const variables = this.#readVariables(inputs ?? {});
        return 'errors' in variables ? variables : { variableValues: variables };
      });
      return 'errors' in read ? read : this.#executeTraced(call, read.variableValues, undefined);
    });
  }

  #executeTraced(call: Call, variables: VariableValues, rootValue: unknown): MaybePromise<ExecutionResult> {
    return traced(channels.rootSelectionSet, this.#rootMessage(call.inputs), () =>
      this.#execute(call, variables, rootValue, true),
    );
  }

  #execute(
    { context, recipient }: Call,
    variables: VariableValues,
    rootValue: unknown,
    isTraced: boolean,
  ): MaybePromise<ExecutionResult> {
    const { schema, limits, turns } = this.#options;
    const { definition } = this;
    const plans = this.#plansOf();
    const refusal = plans.refusal(variables);
    if (refusal !== undefined) return { errors: [refusal] };
    const budget = new ResultBudget(limits, turns);
    return execute({ schema, definition, variables, context, rootValue, budget, recipient, isTraced }, plans);
  }

  #plansOf(): Plans {
    this.#plans ??= this.#plan();
    return this.#plans;
  }

  #plan(): Plans {
    const { schema, suggestions, onPlanned } = this.#options;
    const { definition } = this;
    return new Plans({
      schema,
      document: this.#document,
      definition,
      hideSuggestions: !suggestions,
      onPlanned,
    });
  }

  /** The part of a tracing message that all channels share. */
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

/**
 * Whether the result of a mutation can show more than its caller has sent. It can if it selects fields of an
 * object that the built-in schema does not mark with `extensions.given`, that is, as echoing the input.
 * Custom resolvers remove the mark. `document` must be valid; @skip and @include are ignored because
 * variables decide them.
 */
function showsStored(
  schema: GraphQLSchema,
  document: DocumentNode,
  { selectionSet }: OperationDefinitionNode,
): boolean {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const root = schema.getMutationType();
  const seen = new Map<GraphQLObjectType, Set<string>>();
  return root == null || selects(root, selectionSet);

  /** Whether a selection on the root, or on an object that only echoes the input, selects anything else. */
  function selects(type: GraphQLObjectType, { selections }: SelectionSetNode): boolean {
    return selections.some((node) => {
      if (node.kind === Kind.INLINE_FRAGMENT) return selects(type, node.selectionSet);
      if (node.kind === Kind.FRAGMENT_SPREAD) return selectsFragment(type, node.name.value);
      const field = schema.getField(type, node.name.value);
      if (field === undefined) return true;
      const named = getNamedType(field.type);
      const isGiven = field.extensions.given === true || field.name === '__typename';
      if (isLeafType(named)) return type !== root && !isGiven;
      return (
        !isGiven ||
        !isObjectType(named) ||
        node.selectionSet === undefined ||
        selects(named, node.selectionSet)
      );
    });
  }

  /** Each fragment is checked once per type. */
  function selectsFragment(type: GraphQLObjectType, name: string): boolean {
    const known = seen.get(type) ?? new Set();
    if (known.has(name)) return false;
    seen.set(type, known.add(name));
    const fragment = fragments.get(name);
    return fragment === undefined || selects(type, fragment.selectionSet);
  }
}

/** The outcome of an operation; abandoned means that it ended because its client had left. */
export type OperationOutcome = 'success' | 'error' | 'abandoned';

/** Records the outcome of an operation; `began` is a time of performance.now(). */
type OperationMeter = (began: number, outcome: OperationOutcome) => void;

/** The meters of the GraphQL door. */
export interface OperationMeters {
  /**
   * Creates the meter of an operation, bound to its name. Clients choose the names; the registry limits their
   * number.
   */
  operation(definition: OperationDefinitionNode): OperationMeter;
  lookup(result: 'hit' | 'miss' | 'refused'): void;
}
