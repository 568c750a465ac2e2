import { type DocumentNode, GraphQLError, Kind, type SelectionSetNode } from 'graphql';
import type { ErrorCode } from '../../src/core/error-codes.ts';

/** Limits on a document. They are checked before validation, so a refusal costs very little. */
export interface DocumentLimits {
  /** Maximum tokens of the document. */
  readonly maxTokens: number;
  /** Maximum depth of its selections. Introspection has its own limit. */
  readonly maxDepth: number;
  /** Maximum aliases, including those of `__typename`. */
  readonly maxAliases: number;
  /** Maximum directives. */
  readonly maxDirectives: number;
  /** Maximum fields of the root types. */
  readonly maxRootFields: number;
  /** Maximum fields, counting a fragment's fields each time it is spread. */
  readonly maxFields: number;
}

const RULES: readonly {
  readonly measure: keyof Measure;
  readonly limit: keyof DocumentLimits;
  readonly says: (found: number) => string;
}[] = [
  { measure: 'depth', limit: 'maxDepth', says: (found) => `is ${found} fields deep` },
  { measure: 'aliases', limit: 'maxAliases', says: (found) => `has ${found} aliases` },
  { measure: 'directives', limit: 'maxDirectives', says: (found) => `has ${found} directives` },
  { measure: 'rootFields', limit: 'maxRootFields', says: (found) => `has ${found} root fields` },
  { measure: 'fields', limit: 'maxFields', says: (found) => `expands to ${found} fields` },
];

/**
 * The errors for the limits that a parsed document exceeds, counting fragments each time they are spread;
 * empty if there are none.
 */
export function exceededLimits(document: DocumentNode, limits: DocumentLimits): readonly GraphQLError[] {
  const measure = measureOperations(document);
  return RULES.filter((rule) => measure[rule.measure] > limits[rule.limit]).map(
    (rule) =>
      new GraphQLError(
        `The document ${rule.says(measure[rule.measure])}; at most ${limits[rule.limit]} are allowed (${rule.limit})`,
        { extensions: { code: 'LIMIT_EXCEEDED' satisfies ErrorCode, limit: rule.limit } },
      ),
  );
}

/** The size of a document. */
export interface Measure {
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  readonly rootFields: number;
  /** All fields, counting a fragment's fields each time it is spread. */
  readonly fields: number;
}

const NOTHING: Measure = { depth: 0, aliases: 0, directives: 0, rootFields: 0, fields: 0 };

/**
 * Measures the largest operation of a document. Each fragment is measured once and counted wherever it is
 * spread, so the time is linear in the document's length even if it expands enormously. Cycles count as
 * nothing: validation refuses them.
 */
export function measureOperations(document: DocumentNode): Measure {
  const fragments = new Map<string, { readonly set: SelectionSetNode; readonly directives: number }>();
  for (const node of document.definitions) {
    if (node.kind !== Kind.FRAGMENT_DEFINITION) continue;
    fragments.set(node.name.value, { set: node.selectionSet, directives: node.directives?.length ?? 0 });
  }
  const known = new Map<string, Measure>();

  function ofFragment(name: string): Measure {
    const measured = known.get(name);
    if (measured !== undefined) return measured;
    const fragment = fragments.get(name);
    if (fragment === undefined) return NOTHING;
    known.set(name, NOTHING);
    const inner = ofSelections(fragment.set);
    const measure = { ...inner, directives: inner.directives + fragment.directives };
    known.set(name, measure);
    return measure;
  }

  function ofSelections({ selections }: SelectionSetNode): Measure {
    let { depth, aliases, directives, rootFields, fields } = NOTHING;
    for (const node of selections) {
      directives += node.directives?.length ?? 0;
      if (node.kind === Kind.FIELD) {
        const inner = node.selectionSet === undefined ? NOTHING : ofSelections(node.selectionSet);
        const introspection = node.name.value === '__schema' || node.name.value === '__type';
        depth = Math.max(depth, 1 + (introspection ? 0 : inner.depth));
        aliases += inner.aliases + (node.alias === undefined ? 0 : 1);
        directives += inner.directives;
        rootFields += 1;
        fields += 1 + inner.fields;
      } else {
        const inner =
          node.kind === Kind.FRAGMENT_SPREAD ? ofFragment(node.name.value) : ofSelections(node.selectionSet);
        depth = Math.max(depth, inner.depth);
        aliases += inner.aliases;
        directives += inner.directives;
        rootFields += inner.rootFields;
        fields += inner.fields;
      }
    }
    return { depth, aliases, directives, rootFields, fields };
  }

  let largest = NOTHING;
  for (const node of document.definitions) {
    if (node.kind !== Kind.OPERATION_DEFINITION) continue;
    const inner = ofSelections(node.selectionSet);
    largest = {
      depth: Math.max(largest.depth, inner.depth),
      aliases: Math.max(largest.aliases, inner.aliases),
      directives: Math.max(largest.directives, inner.directives + (node.directives?.length ?? 0)),
      rootFields: Math.max(largest.rootFields, inner.rootFields),
      fields: Math.max(largest.fields, inner.fields),
    };
  }
  return largest;
}
