import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  GraphQLIncludeDirective,
  type GraphQLSchema,
  GraphQLSkipDirective,
  Kind,
  type OperationDefinitionNode,
  type VariableValues,
  visit,
} from 'graphql';
import type { SelectionPlan } from './field-plan.ts';
import { Planner } from './planner.ts';

/** Maximum cached plans of one operation, one for each combination of its conditions; others are planned each time. */
const MAX_PLANS = 32;

interface PlansOptions {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly definition: OperationDefinitionNode;
  readonly hideSuggestions: boolean;
}

/** The plans of one operation: the variables of @skip and @include decide which fields there are. */
export class Plans {
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  readonly #options: PlansOptions;
  readonly #conditions: readonly string[];
  readonly #plans = new Map<string, SelectionPlan>();

  constructor(options: PlansOptions) {
    this.#options = options;
    const { document, definition } = options;
    const fragments = document.definitions.filter((node) => node.kind === Kind.FRAGMENT_DEFINITION);
    this.fragments = Object.fromEntries(fragments.map((fragment) => [fragment.name.value, fragment]));
    this.#conditions = conditionsOf([definition, ...fragments]);
  }

  /** What is asked of the root type. Throws GraphQLError when a condition has a wrong value. */
  find(variables: VariableValues): SelectionPlan {
    const key = this.#conditions.length === 0 ? '' : this.#keyOf(variables);
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const plan = this.#make(variables);
    if (this.#plans.size < MAX_PLANS) this.#plans.set(key, plan);
    return plan;
  }

  #keyOf({ coerced }: VariableValues): string {
    return this.#conditions.map((name) => String(coerced[name])).join();
  }

  #make({ sources, coerced }: VariableValues): SelectionPlan {
    const { schema, definition, hideSuggestions } = this.#options;
    const type = schema.getRootType(definition.operation);
    if (type == null)
      throw new GraphQLError(`The schema has no ${definition.operation}`, { nodes: definition });
    // A cached plan keeps no other variable of the request that it was made for.
    const conditions = { sources: pick(sources, this.#conditions), coerced: pick(coerced, this.#conditions) };
    const planner = new Planner({ schema, fragments: this.fragments, conditions, hideSuggestions });
    return planner.select(type, [definition.selectionSet]);
  }
}

/** The variables of @skip and @include. */
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
