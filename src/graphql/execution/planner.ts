import {
  defaultFieldResolver,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLIncludeDirective,
  type GraphQLObjectType,
  type GraphQLSchema,
  GraphQLSkipDirective,
  getDirectiveValues,
  isAbstractType,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
  type VariableValues,
} from 'graphql';
import { planArguments } from './arguments.ts';
import type { FieldPlan, SelectionPlan } from './field-plan.ts';
import { planOutput } from './output-plan.ts';

interface PlannerOptions {
  readonly schema: GraphQLSchema;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /** The variables that decide about @skip and @include. */
  readonly conditions: VariableValues;
  readonly hideSuggestions: boolean;
  /** Told of each field that is planned. */
  readonly onField: () => void;
}

/**
 * Plans selections as GraphQL's "Field Collection" says, each when a value for it appears: the cost depends on the data
 * and not on what the document could expand to.
 */
export class Planner {
  readonly #options: PlannerOptions;
  /** Fields by their node, so that a fragment that is spread often is planned once. */
  readonly #fields = new Map<GraphQLObjectType, Map<FieldNode, FieldPlan>>();

  constructor(options: PlannerOptions) {
    this.#options = options;
  }

  /** Throws GraphQLError when a directive has a wrong value. */
  select(type: GraphQLObjectType, sets: readonly SelectionSetNode[]): SelectionPlan {
    const nodes = new Map<string, [FieldNode, ...FieldNode[]]>();
    const visited = new Set<string>();
    for (const set of sets) this.#collect(type, set, nodes, visited);
    const times = Map.groupBy(nodes.values(), ([node]) => node.name.value);
    const fields = [...nodes].flatMap(([key, found]) => {
      const { value: name } = found[0].name;
      // As in GraphQL.js, what the type does not have is not there; validation has refused it.
      if (this.#options.schema.getField(type, name) === undefined) return [];
      return this.#field(type, key, found, (times.get(name)?.length ?? 0) > 1);
    });
    // Everywhere else an object with a prototype is the faster one.
    const create = nodes.has('__proto__') ? () => Object.create(null) : () => ({});
    // Braces; and of each field the quotes, the colon, the comma and a value of one character.
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

  /** Whether a fragment on a type of this name is about objects of `type`. */
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
