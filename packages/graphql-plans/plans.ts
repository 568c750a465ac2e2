import {
  type DirectiveNode,
  type DocumentNode,
  defaultFieldResolver,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLField,
  type GraphQLFieldResolver,
  GraphQLID,
  GraphQLIncludeDirective,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  GraphQLSkipDirective,
  GraphQLString,
  getDirectiveValues,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type VariableValues,
  visit,
} from 'graphql';
import type { MaybePromise } from '../../src/core/scheduler.ts';
import { incrementalDirectives, incrementalRefusal } from './results.ts';
import { type Arguments, planArguments, type ReadArguments } from './values.ts';

/**
 * Maximum memory of an operation's plans, in bytes: there is one per combination of its conditions. Beyond
 * it, all plans are discarded.
 */
const MAX_BYTES = 1024 * 1024;
/** Memory of a selection, and of each of its fields, in bytes. */
const PLAN_BYTES = 1_024;
const FIELD_BYTES = 800;
/** GraphQL.js does not export this directive. */
const NO_PROPAGATION = 'experimental_disableErrorPropagation';

interface PlansOptions {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly definition: OperationDefinitionNode;
  readonly hideSuggestions: boolean;
  /** Called with the bytes that new plans take, or with a negative number when plans are discarded. */
  readonly onPlanned: (bytes: number) => void;
}

/** The plans of an operation: the variables of @skip and @include decide which fields are selected. */
export class Plans {
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /** Whether an error in a non-null position makes the enclosing values null. */
  readonly propagatesErrors: boolean;
  readonly #options: PlansOptions;
  readonly #conditions: readonly string[];
  readonly #incremental: readonly DirectiveNode[];
  readonly #plans = new Map<string, SelectionPlan>();
  #bytes = 0;

  constructor(options: PlansOptions) {
    this.#options = options;
    const { document, definition } = options;
    const fragments = document.definitions.filter((node) => node.kind === Kind.FRAGMENT_DEFINITION);
    this.fragments = byName(fragments);
    this.propagatesErrors = !definition.directives?.some(({ name }) => name.value === NO_PROPAGATION);
    this.#conditions = conditionsOf([definition, ...fragments]);
    this.#incremental = incrementalDirectives(definition, this.fragments);
  }

  /** Why the operation must not run with these variables; undefined if it may. */
  refusal(variables: VariableValues): GraphQLError | undefined {
    return this.#incremental.length === 0 ? undefined : incrementalRefusal(this.#incremental, variables);
  }

  /** The plan of the root selection. Throws GraphQLError if a condition has an invalid value. */
  find(variables: VariableValues): SelectionPlan {
    const key = this.#conditions.length === 0 ? '' : this.#keyOf(variables);
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const plan = this.#make(variables);
    this.#count(PLAN_BYTES);
    this.#plans.set(key, plan);
    return plan;
  }

  #count(bytes: number): void {
    if (this.#bytes + bytes > MAX_BYTES) {
      this.#plans.clear();
      this.#options.onPlanned(-this.#bytes);
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    this.#options.onPlanned(bytes);
  }

  #keyOf({ coerced }: VariableValues): string {
    return this.#conditions.map((name) => String(coerced[name])).join();
  }

  #make({ sources, coerced }: VariableValues): SelectionPlan {
    const { schema, definition, hideSuggestions } = this.#options;
    const type = schema.getRootType(definition.operation);
    if (type == null) {
      throw new GraphQLError(`Schema is not configured to execute ${definition.operation} operation.`, {
        nodes: definition,
      });
    }
    // Keep only the condition variables in the cached plan, not the rest of this request's variables.
    const conditions = { sources: pick(sources, this.#conditions), coerced: pick(coerced, this.#conditions) };
    const { fragments } = this;
    const onField = () => this.#count(FIELD_BYTES);
    const planner = new Planner({ schema, fragments, conditions, hideSuggestions, onField });
    return planner.select(type, [definition.selectionSet]);
  }
}

function byName(fragments: readonly FragmentDefinitionNode[]): Record<string, FragmentDefinitionNode> {
  const named: Record<string, FragmentDefinitionNode> = Object.create(null);
  for (const fragment of fragments) named[fragment.name.value] = fragment;
  return named;
}

/** The variables used by @skip and @include. */
function conditionsOf(definitions: readonly (OperationDefinitionNode | FragmentDefinitionNode)[]) {
  const names = new Set<string>();
  for (const definition of definitions) {
    visit(definition, {
      Directive({ name, arguments: given = [] }) {
        if (name.value !== GraphQLSkipDirective.name && name.value !== GraphQLIncludeDirective.name) return;
        for (const { value } of given) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
      },
    });
  }
  return [...names];
}

function pick<T>(from: Readonly<Record<string, T>>, names: readonly string[]): Record<string, T> {
  const picked: Record<string, T> = Object.create(null);
  for (const name of names) {
    const value = from[name];
    if (value !== undefined) picked[name] = value;
  }
  return picked;
}

interface PlannerOptions {
  readonly schema: GraphQLSchema;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /** The variables used by @skip and @include. */
  readonly conditions: VariableValues;
  readonly hideSuggestions: boolean;
  /** Called for each planned field. */
  readonly onField: () => void;
}

/**
 * Plans selections as in GraphQL's "Field Collection", each when the first value for it appears: the cost
 * depends on the data and not on how far the document could expand.
 */
class Planner {
  readonly #options: PlannerOptions;
  /** Plans by field node, so that a fragment spread several times is planned once. */
  readonly #fields = new Map<GraphQLObjectType, Map<FieldNode, FieldPlan>>();

  constructor(options: PlannerOptions) {
    this.#options = options;
  }

  /** Throws GraphQLError if a directive has an invalid value. */
  select(type: GraphQLObjectType, sets: readonly SelectionSetNode[]): SelectionPlan {
    const nodes = new Map<string, [FieldNode, ...FieldNode[]]>();
    const visited = new Set<string>();
    for (const set of sets) this.#collect(type, set, nodes, visited);
    const times = Map.groupBy(nodes.values(), ([node]) => node.name.value);
    const fields = [...nodes].flatMap(([key, found]) => {
      const { value: name } = found[0].name;
      // Skip fields that the type lacks, as GraphQL.js does; validation has already refused them.
      if (this.#options.schema.getField(type, name) === undefined) return [];
      return this.#field(type, key, found, (times.get(name)?.length ?? 0) > 1);
    });
    // An object with a prototype is faster, but cannot hold the key `__proto__`.
    const create = nodes.has('__proto__') ? () => Object.create(null) : () => ({});
    // Braces, and per field the quotes, the colon, the comma and a value of one character.
    const bytes = fields.reduce((sum, { key }) => sum + key.length + 5, 1);
    return { fields, create, bytes };
  }

  #collect(
    type: GraphQLObjectType,
    { selections }: SelectionSetNode,
    nodes: Map<string, [FieldNode, ...FieldNode[]]>,
    visited: Set<string>,
  ): void {
    for (const node of selections) {
      if (!this.#includes(node)) continue;
      if (node.kind === Kind.FIELD) {
        const key = node.alias?.value ?? node.name.value;
        const found = nodes.get(key);
        if (found === undefined) nodes.set(key, [node]);
        else found.push(node);
      } else if (node.kind === Kind.INLINE_FRAGMENT) {
        const condition = node.typeCondition?.name.value;
        if (this.#applies(condition, type)) this.#collect(type, node.selectionSet, nodes, visited);
      } else {
        const { value: name } = node.name;
        const fragment = this.#options.fragments[name];
        if (fragment === undefined || visited.has(name)) continue;
        if (!this.#applies(fragment.typeCondition.name.value, type)) continue;
        visited.add(name);
        this.#collect(type, fragment.selectionSet, nodes, visited);
      }
    }
  }

  #includes(node: SelectionNode): boolean {
    if (node.directives === undefined || node.directives.length === 0) return true;
    const { conditions, hideSuggestions } = this.#options;
    const skip = getDirectiveValues(GraphQLSkipDirective, node, conditions, undefined, hideSuggestions);
    if (skip?.if === true) return false;
    const include = getDirectiveValues(GraphQLIncludeDirective, node, conditions, undefined, hideSuggestions);
    return include?.if !== false;
  }

  /** Whether a fragment with this type condition applies to objects of `type`. */
  #applies(condition: string | undefined, type: GraphQLObjectType): boolean {
    if (condition === undefined || condition === type.name) return true;
    const { schema } = this.#options;
    const named = schema.getType(condition);
    return isAbstractType(named) && schema.isSubType(named, type);
  }

  #field(
    parent: GraphQLObjectType,
    key: string,
    nodes: [FieldNode, ...FieldNode[]],
    isRepeated: boolean,
  ): FieldPlan {
    if (nodes.length > 1) return this.#plan(parent, key, nodes, isRepeated);
    const [node] = nodes;
    let known = this.#fields.get(parent);
    if (known === undefined) {
      known = new Map();
      this.#fields.set(parent, known);
    }
    let plan = known.get(node);
    if (plan === undefined) {
      plan = this.#plan(parent, key, nodes, isRepeated);
      known.set(node, plan);
    }
    return plan;
  }

  #plan(
    parent: GraphQLObjectType,
    key: string,
    nodes: [FieldNode, ...FieldNode[]],
    isRepeated: boolean,
  ): FieldPlan {
    const { schema, hideSuggestions, onField } = this.#options;
    onField();
    const [node] = nodes;
    const definition = schema.getField(parent, node.name.value);
    if (definition === undefined) throw new TypeError(`${parent}.${node.name.value} is not validated`);
    const output = planOutput(definition.type);
    const selections = new Map<GraphQLObjectType, SelectionPlan>();
    return {
      key,
      name: definition.name,
      parent,
      definition,
      nodes,
      isProperty: definition.resolve === undefined && definition.args.length === 0,
      resolve: definition.resolve ?? defaultFieldResolver,
      needsInfo: output.asksType,
      once: isRepeated && definition.extensions.once === true,
      isPlain: definition.extensions.plain === true,
      selects: definition.extensions.selects as ResolveSelection | undefined,
      together: definition.extensions.together as ResolveTogether | undefined,
      follows: definition.extensions.follows as FollowEvents | undefined,
      readArguments: planArguments(definition, node, hideSuggestions),
      output,
      select: (type) => {
        let selection = selections.get(type);
        if (selection === undefined) {
          const sets = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
          selection = this.select(type, sets);
          selections.set(type, selection);
        }
        return selection;
      },
    };
  }
}

/**
 * Resolves a field from its whole selection: `extensions.selects` of its definition. A JsonText is the result of
 * the field as it is, any other value is completed as usual. `request` is what the run was given.
 */
export type ResolveSelection = (
  field: FieldPlan,
  given: Arguments,
  request: unknown,
  info: GraphQLResolveInfo,
) => unknown;

/** What a ResolveSelection returns to leave the field to its resolver. */
export const TO_RESOLVER: unique symbol = Symbol('to resolver');

/** Opens the events of the field of a subscription: `extensions.follows`. Each is the root value of a result. */
export type FollowEvents = (
  field: FieldPlan,
  given: Arguments,
  request: unknown,
) => MaybePromise<AsyncIterable<unknown>>;

/** A field of a mutation with its arguments. */
export interface CalledField {
  readonly field: FieldPlan;
  readonly given: Arguments;
  readonly info: GraphQLResolveInfo;
}

/**
 * Resolves all fields of a mutation that have this function as `extensions.together`, when the first of them has its
 * turn. Resolves to their values in order, or fails with TogetherError.
 */
export type ResolveTogether = (
  calls: readonly CalledField[],
  request: unknown,
) => Promise<readonly unknown[]>;

/** One of the fields that are resolved together failed, and so all did. */
export class TogetherError extends Error {
  override readonly name = 'TogetherError';
  /** The index of the call that failed. */
  readonly call: number;

  constructor(call: number, cause: unknown) {
    super(`Call ${call} failed`, { cause });
    this.call = call;
  }
}

/** A field of a selection, with everything that is the same in each run. */
export interface FieldPlan {
  /** Its key in the result. */
  readonly key: string;
  readonly name: string;
  readonly parent: GraphQLObjectType;
  readonly definition: GraphQLField<unknown, unknown>;
  /** The nodes of the field in the document; several if selections are merged. */
  readonly nodes: readonly FieldNode[];
  /**
   * Whether it has neither a resolver nor arguments, so it is nearly always a property of the parent value.
   */
  readonly isProperty: boolean;
  readonly resolve: GraphQLFieldResolver<unknown, unknown>;
  /** Whether the output type calls `resolveType` or `isTypeOf`, which receive the field's info. */
  readonly needsInfo: boolean;
  /**
   * Whether the resolver of this root field runs once per operation for all fields with equal arguments: the
   * definition has `extensions.once`, and the selection contains the field more than once.
   */
  readonly once: boolean;
  /** Whether no list item is a promise, so that no check is needed: the definition has `extensions.plain`. */
  readonly isPlain: boolean;
  /** Resolves the field instead of `resolve`, or leaves it to that. */
  readonly selects: ResolveSelection | undefined;
  /** Resolves the field of a mutation, with others. */
  readonly together: ResolveTogether | undefined;
  /** Opens the events of the field of a subscription. */
  readonly follows: FollowEvents | undefined;
  readonly readArguments: ReadArguments;
  readonly output: OutputPlan;
  /** The selection on its value for an object type. */
  readonly select: (type: GraphQLObjectType) => SelectionPlan;
}

/** The selection on objects of one type. */
export interface SelectionPlan {
  readonly fields: readonly FieldPlan[];
  /** Creates an empty result object. */
  readonly create: () => Record<string, unknown>;
  /** The JSON size of an object without the text of its values, in bytes. */
  readonly bytes: number;
}

/** How a value of a type is completed. */
export type OutputPlan = {
  readonly nonNull: boolean;
  /** Whether the type calls `resolveType` or `isTypeOf` for values. */
  readonly asksType: boolean;
} & (
  | {
      readonly kind: 'leaf';
      readonly type: GraphQLLeafType;
      /** Whether strings are valid as they are, without coercion. */
      readonly takesText: boolean;
    }
  | { readonly kind: 'list'; readonly item: OutputPlan }
  | { readonly kind: 'object'; readonly type: GraphQLObjectType }
  | { readonly kind: 'abstract'; readonly type: GraphQLAbstractType }
);

/** Plans the output of a declared type, including its list and non-null wrappers. */
function planOutput(declared: GraphQLOutputType): OutputPlan {
  const nonNull = isNonNullType(declared);
  const type = nonNull ? declared.ofType : declared;
  if (isListType(type)) {
    const item = planOutput(type.ofType);
    return { kind: 'list', nonNull, asksType: item.asksType, item };
  }
  if (isLeafType(type)) {
    const takesText = type === GraphQLString || type === GraphQLID;
    return { kind: 'leaf', nonNull, asksType: false, type, takesText };
  }
  return isAbstractType(type)
    ? { kind: 'abstract', nonNull, asksType: true, type }
    : { kind: 'object', nonNull, asksType: type.isTypeOf != null, type };
}
