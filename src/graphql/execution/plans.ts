import {
  type DirectiveNode,
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
import { incrementalDirectives, incrementalRefusal } from './incremental.ts';
import { Planner } from './planner.ts';

/** What the plans of one operation may take, in bytes: one for each combination of its conditions. More, and all begin anew. */
const MAX_BYTES = 1024 * 1024;
/** What a selection takes, and each field in it, in bytes. */
const PLAN_BYTES = 1_024;
const FIELD_BYTES = 800;
/** GraphQL.js does not export its directive. */
const NO_PROPAGATION = 'experimental_disableErrorPropagation';

interface PlansOptions {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly definition: OperationDefinitionNode;
  readonly hideSuggestions: boolean;
  /** Told of what plans take, in bytes, as they are made. */
  readonly onPlanned: (bytes: number) => void;
}

/** The plans of one operation: the variables of @skip and @include decide which fields there are. */
export class Plans {
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /** Whether an error makes the enclosing values null that may not hold null. */
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

  /** Why the operation does not run with these variables. */
  refusal(variables: VariableValues): GraphQLError | undefined {
    return this.#incremental.length === 0 ? undefined : incrementalRefusal(this.#incremental, variables);
  }

  /** What is asked of the root type. Throws GraphQLError when a condition has a wrong value. */
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
    // A cached plan keeps no other variable of the request that it was made for.
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
