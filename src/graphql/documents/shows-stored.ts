import {
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isLeafType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';

/**
 * Whether the result of a mutation can show more than its caller has sent: it selects fields of an object, and not only
 * those that the built-in schema marks with `extensions.given` because they repeat what was given. A resolver of the
 * user's own takes the mark away. `document` is valid; @skip and @include count for nothing, since variables decide them.
 */
export function showsStored(
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
