import { type DocumentNode, GraphQLError } from 'graphql';
import type { ErrorCode } from '../core/error-codes.ts';
import { type Measure, measureOperations } from './measure.ts';

/** What a document may ask for. It is checked before validation, so that a refusal costs next to nothing. */
export interface DocumentLimits {
  /** Maximum tokens of the document; default 1,000. */
  readonly maxTokens: number;
  /** Maximum depth of its selections; default 10. Introspection is bounded by a rule of its own. */
  readonly maxDepth: number;
  /** Maximum aliases, those of `__typename` too; default 30. */
  readonly maxAliases: number;
  /** Maximum directives; default 50. */
  readonly maxDirectives: number;
  /** Maximum fields of the root types; default 30. */
  readonly maxRootFields: number;
  /** Maximum fields, those of a fragment each time it is spread; default 1,000. */
  readonly maxFields: number;
}

/** The limits where an option sets none. */
export const DEFAULT_LIMITS: DocumentLimits = {
  maxTokens: 1_000,
  maxDepth: 10,
  maxAliases: 30,
  maxDirectives: 50,
  maxRootFields: 30,
  maxFields: 1_000,
};

const RULES: readonly {
  readonly measure: keyof Measure;
  readonly limit: keyof DocumentLimits;
  readonly says: (found: number) => string;
}[] = [
  { measure: 'depth', limit: 'maxDepth', says: (found) => `is ${found} fields deep` },
  { measure: 'aliases', limit: 'maxAliases', says: (found) => `has ${found} aliases` },
  { measure: 'directives', limit: 'maxDirectives', says: (found) => `has ${found} directives` },
  { measure: 'rootFields', limit: 'maxRootFields', says: (found) => `has ${found} root fields` },
  { measure: 'fields', limit: 'maxFields', says: (found) => `unfolds to ${found} fields` },
];

/** The limits that a parsed document passes over, fragments counted each time they are spread; none: empty. */
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
