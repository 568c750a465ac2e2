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
import { type MaybePromise, whenReady } from '../../src/core/maybe-promise.ts';
import type { CooperativeScheduler } from '../../src/core/scheduler.ts';
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

/** What the operations of a door share. */
export interface OperationOptions {
  readonly schema: GraphQLSchema;
  readonly suggestions: boolean;
  readonly limits: ResultLimits;
  readonly turns: CooperativeScheduler;
  /** Told of what plans take, in bytes, as they are made. */
  readonly onPlanned: (bytes: number) => void;
  /** Makes the meter of an operation when it runs for the first time. */
  readonly meter: ((definition: OperationDefinitionNode) => OperationMeter) | undefined;
}

/** What a run or a subscription is called with. */
interface Call {
  readonly inputs: Inputs | undefined;
  readonly context: unknown;
  /** Who waits for the result; nobody leaves a run without one. */
  readonly recipient: ClientSignal | undefined;
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
  #showsStored: boolean | undefined;

  constructor(document: DocumentNode, definition: OperationDefinitionNode, options: OperationOptions) {
    const { schema, suggestions } = options;
    this.#document = document;
    this.definition = definition;
    this.#options = options;
    this.#readVariables = variableReader(schema, definition.variableDefinitions ?? [], !suggestions);
  }

  /** Whether the result of a mutation can show what was stored before. */
  get showsStored(): boolean {
    this.#showsStored ??= showsStored(this.#options.schema, this.#document, this.definition);
    return this.#showsStored;
  }

  /**
   * Runs a query or a mutation once the context is there; the result comes at once when no resolver is asynchronous.
   * Else the run ends once the recipient has left, with ABANDONED for a result.
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

  /** Opens the event stream of a subscription, or tells why there is none. */
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
    // As they came, variables may take twenty times their text, and only a tracer asks for them again.
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

/**
 * Whether the result of a mutation can show more than its caller has sent: it selects fields of an object, and not only
 * those that the built-in schema marks with `extensions.given` because they repeat what was given. A resolver of the
 * user's own takes the mark away. `document` is valid; @skip and @include count for nothing, since variables decide them.
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

  /** Whether a selection on the root, or on an object that only repeats what was given, goes beyond that. */
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

  /** A fragment says the same wherever a type spreads it. */
  function selectsFragment(type: GraphQLObjectType, name: string): boolean {
    const known = seen.get(type) ?? new Set();
    if (known.has(name)) return false;
    seen.set(type, known.add(name));
    const fragment = fragments.get(name);
    return fragment === undefined || selects(type, fragment.selectionSet);
  }
}

/** How an operation went: an abandoned one ended because its client had left. */
export type OperationOutcome = 'success' | 'error' | 'abandoned';

/** Records how one operation of a document went; `began` is from performance.now(). */
type OperationMeter = (began: number, outcome: OperationOutcome) => void;

/** What the GraphQL door counts and times. */
export interface OperationMeters {
  /** The meter of one operation, bound to its name once. Names are the clients' choice; the registry caps them. */
  operation(definition: OperationDefinitionNode): OperationMeter;
  lookup(result: 'hit' | 'miss' | 'refused'): void;
}
