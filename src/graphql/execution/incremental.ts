import {
  type DirectiveNode,
  type FragmentDefinitionNode,
  GraphQLDeferDirective,
  GraphQLError,
  GraphQLStreamDirective,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type VariableValues,
} from 'graphql';
import type { ErrorCode } from '../../core/error-codes.ts';

const NAMES: readonly string[] = [GraphQLDeferDirective.name, GraphQLStreamDirective.name];

/** Finds @defer and @stream in what an operation selects. */
export function incrementalDirectives(
  definition: OperationDefinitionNode,
  fragments: Readonly<Record<string, FragmentDefinitionNode>>,
): readonly DirectiveNode[] {
  const found: DirectiveNode[] = [];
  const visited = new Set<string>();
  const search = ({ selections }: SelectionSetNode): void => {
    for (const node of selections) {
      for (const directive of node.directives ?? []) {
        if (NAMES.includes(directive.name.value)) found.push(directive);
      }
      if (node.kind !== Kind.FRAGMENT_SPREAD) {
        if (node.selectionSet !== undefined) search(node.selectionSet);
        continue;
      }
      const { value: name } = node.name;
      if (visited.has(name)) continue;
      visited.add(name);
      const fragment = fragments[name];
      if (fragment !== undefined) search(fragment.selectionSet);
    }
  };
  search(definition.selectionSet);
  return found;
}

/** Why an operation cannot run: the first of its directives that is not turned off. A result has one part. */
export function incrementalRefusal(
  directives: readonly DirectiveNode[],
  variables: VariableValues,
): GraphQLError | undefined {
  const directive = directives.find((node) => !isOff(node, variables));
  if (directive === undefined) return undefined;
  return new GraphQLError(
    `@${directive.name.value} asks for incremental delivery, which is experimental and in no edition of the GraphQL specification; leave it out or set its argument "if" to false`,
    { nodes: directive, extensions: { code: 'INCREMENTAL_DELIVERY' satisfies ErrorCode } },
  );
}

function isOff({ arguments: given }: DirectiveNode, { coerced }: VariableValues): boolean {
  const value = given?.find(({ name }) => name.value === 'if')?.value;
  if (value?.kind === Kind.VARIABLE) return coerced[value.name.value] === false;
  return value?.kind === Kind.BOOLEAN && !value.value;
}
