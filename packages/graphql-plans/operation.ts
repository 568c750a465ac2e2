import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isLeafType,
  isObjectType,
  Kind,
  locatedError,
  mapSourceToResponseEvent,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type VariableValues,
  validateSubscriptionArgs,
} from 'graphql';
import type { CooperativeScheduler } from '../../src/core/scheduler.ts';
import { type MaybePromise, whenReady } from '../../src/core/scheduler.ts';
import { execute } from './execute.ts';
import { type FieldPlan, Plans } from './plans.ts';
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
  /** Calls the execution of each operation, and of each event of a subscription; default: nothing is around it. */
  readonly around?: (<T>(run: () => T) => T) | undefined;
  /** Creates the meter of an operation when it first runs. */
  readonly meter: ((definition: OperationDefinitionNode) => OperationMeter) | undefined;
}

/** The arguments of a run or a subscription. */
interface Call {
  readonly inputs: Inputs | undefined;
  readonly context: unknown;
  /** Passed to the functions in the extensions of fields. */
  readonly request: unknown;
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
  #needs: readonly Need[] | undefined;

  constructor(document: DocumentNode, definition: OperationDefinitionNode, options: OperationOptions) {
    const { schema, suggestions } = options;
    this.#document = document;
    this.definition = definition;
    this.#options = options;
    this.#readVariables = variableReader(schema, definition.variableDefinitions ?? [], !suggestions);
  }

  /** What its caller needs to be allowed. */
  get needs(): readonly Need[] {
    this.#needs ??= needsOf(this.#options.schema, this.#document, this.definition);
    return this.#needs;
  }

  /**
   * Runs a query or a mutation once `context` is resolved. Returns the result synchronously if no resolver is
   * asynchronous. An asynchronous run ends with ABANDONED if the recipient leaves first.
   */
  run(
    inputs: Inputs | undefined,
    context: unknown,
    recipient?: ClientSignal | undefined,
    request?: unknown,
  ): MaybePromise<ExecutionResult> {
    if (context instanceof Promise)
      return context.then((ready) => this.run(inputs, ready, recipient, request));
    const { meter } = this.#options;
    const call = { inputs, context, recipient, request };
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
    request?: unknown,
  ): MaybePromise<AsyncIterable<ExecutionResult> | ExecutionResult> {
    if (context instanceof Promise)
      return context.then((ready) => this.subscribe(inputs, ready, recipient, request));
    const shared = recipient && new SharedClientSignal(recipient);
    return traced(channels.subscribe, this.#message(inputs), () =>
      this.#subscribe({ inputs, context, recipient: shared, request }),
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
    const opened = this.#follow(kept, variableValues) ?? createSourceEventStream(args);
    return whenReady(opened, (source) =>
      Symbol.asyncIterator in source
        ? mapSourceToResponseEvent(keptArgs, source, ({ rootValue }) =>
            isTraced()
              ? this.#executeTraced(kept, variableValues, rootValue)
              : this.#execute(kept, variableValues, rootValue, false),
          )
        : source,
    );
  }

  /** The events of a field that opens them itself; undefined if a resolver does. */
  #follow(
    { request }: Call,
    variables: VariableValues,
  ): MaybePromise<AsyncIterable<unknown> | ExecutionResult> | undefined {
    const field = this.#rootField(variables);
    if (field?.follows === undefined) return undefined;
    const refuse = (error: unknown): ExecutionResult => ({
      errors: [locatedError(error, field.nodes, [field.key])],
    });
    try {
      const source = field.follows(field, field.readArguments(variables), request);
      return source instanceof Promise ? source.catch(refuse) : source;
    } catch (error) {
      return refuse(error);
    }
  }

  /** The first field of the root; undefined if GraphQL.js will say why it cannot be found. */
  #rootField(variables: VariableValues): FieldPlan | undefined {
    try {
      return this.#plansOf().find(variables).fields[0];
    } catch {
      return undefined;
    }
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
    { context, request, recipient }: Call,
    variables: VariableValues,
    rootValue: unknown,
    isTraced: boolean,
  ): MaybePromise<ExecutionResult> {
    const { schema, limits, turns, around } = this.#options;
    const { definition } = this;
    const plans = this.#plansOf();
    const refusal = plans.refusal(variables);
    if (refusal !== undefined) return { errors: [refusal] };
    const budget = new ResultBudget(limits, turns);
    const run = { schema, definition, variables, context, request, rootValue, budget, recipient, isTraced };
    return around === undefined ? execute(run, plans) : around(() => execute(run, plans));
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

/** A permission that an operation needs: for a relation, or for everything else. */
export interface Need {
  readonly need: 'read' | 'write';
  readonly relation: string | undefined;
  /** What a field does with rows of the relation, by its `extensions.operations`: to read them without. */
  readonly operations: readonly string[];
}

/**
 * The permissions that an operation needs. A field with `extensions.access` needs them for the relation that it names:
 * in the root of a mutation to write, and to read if anything is selected of its result. Other fields of the root need
 * them for everything else. `document` must be valid; @skip and @include are ignored because variables decide them.
 */
function needsOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  definition: OperationDefinitionNode,
): readonly Need[] {
  const { operation, selectionSet } = definition;
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const each of document.definitions) {
    if (each.kind === Kind.FRAGMENT_DEFINITION) fragments.set(each.name.value, each);
  }
  const found = new Map<string, Need>();
  const add = (need: Need['need'], relation: string | undefined, operations: readonly string[] = ['read']) =>
    found.set([need, relation, ...operations].join(' '), { need, relation, operations });
  const root = schema.getRootType(operation);
  const isMutation = operation === 'mutation';
  const seen = new Map<string, Set<string>>();
  let hasOthers = false;
  if (root != null) visit(root, selectionSet, undefined);
  if (hasOthers || found.size === 0) {
    if (isMutation) add('write', undefined);
    if (!isMutation || showsStored(schema, document, definition)) add('read', undefined);
  }
  return [...found.values()];

  /** Looks at a selection; `written` is the relation that the field around it writes. */
  function visit(
    type: GraphQLObjectType,
    { selections }: SelectionSetNode,
    written: string | undefined,
  ): void {
    for (const node of selections) {
      if (node.kind === Kind.INLINE_FRAGMENT) visit(type, node.selectionSet, written);
      else if (node.kind === Kind.FRAGMENT_SPREAD) visitFragment(type, node.name.value, written);
      else visitField(type, node, written);
    }
  }

  function visitField(type: GraphQLObjectType, node: FieldNode, written: string | undefined): void {
    const name = node.name.value;
    const field = schema.getField(type, name);
    const access = field?.extensions.access as string | undefined;
    const isRoot = type === root;
    if (written !== undefined && name !== '__typename') add('read', written);
    const operations = field?.extensions.operations as readonly string[] | undefined;
    if (access !== undefined) add(isRoot && isMutation ? 'write' : 'read', access, operations);
    else if (isRoot && name !== '__typename') hasOthers = true;
    const named = field && getNamedType(field.type);
    if (node.selectionSet === undefined || !isObjectType(named)) return;
    visit(named, node.selectionSet, isRoot && isMutation ? access : undefined);
  }

  /** Each fragment is looked at once per type and relation that is written. */
  function visitFragment(type: GraphQLObjectType, name: string, written: string | undefined): void {
    const place = `${type.name} ${written ?? ''}`;
    const known = seen.get(place) ?? new Set();
    if (known.has(name)) return;
    seen.set(place, known.add(name));
    const fragment = fragments.get(name);
    if (fragment !== undefined) visit(type, fragment.selectionSet, written);
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
      if (field.extensions.access !== undefined) return false;
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
