import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  type ValidationRule,
  validate,
} from 'graphql';
import { type DocumentLimits, exceededLimits } from './document-limits.ts';
import { GenerationalCache } from './generational-cache.ts';

/** How documents are read and remembered. */
export interface DocumentOptions {
  readonly schema: GraphQLSchema;
  readonly limits: DocumentLimits;
  /** How many documents are remembered. */
  readonly maxCached: number;
  readonly introspection: boolean;
  /** Whether an error may name what the client could have meant. */
  readonly suggestions: boolean;
  /** Called with the result of each look-up. */
  readonly onLookup?: ((result: 'hit' | 'miss' | 'refused') => void) | undefined;
}

/** Why a document cannot run. */
export interface Refused {
  readonly errors: readonly GraphQLError[];
}

/** All texts that are remembered, in characters: each can take 170 bytes once it is parsed. */
const MAX_GOOD_LENGTH = 500_000;
/** Each mistake that is listed costs a walk over the text; who makes more has enough to read. */
const MAX_ERRORS = 10;
const MAX_BAD_ENTRIES = 200;
const MAX_BAD_LENGTH = 200_000;

/**
 * Documents by their source text: each is parsed, checked against the limits and validated once.
 * `T` is what is made of a valid document and remembered with it.
 */
export class Documents<T extends object> {
  readonly #options: DocumentOptions;
  readonly #rules: readonly ValidationRule[];
  readonly #make: (document: DocumentNode) => T;
  readonly #good: GenerationalCache<T>;
  /** Kept apart, so that a flood of wrong documents pushes no good one out. */
  readonly #bad = new GenerationalCache<Refused>(MAX_BAD_ENTRIES, MAX_BAD_LENGTH);

  constructor(options: DocumentOptions, make: (document: DocumentNode) => T) {
    this.#options = options;
    this.#make = make;
    this.#good = new GenerationalCache(options.maxCached, MAX_GOOD_LENGTH);
    this.#rules = options.introspection
      ? specifiedRules
      : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  }

  find(query: string): T | Refused {
    const good = this.#good.get(query);
    if (good !== undefined) {
      this.#options.onLookup?.('hit');
      return good;
    }
    const bad = this.#bad.get(query) ?? this.#read(query);
    this.#options.onLookup?.('errors' in bad ? 'refused' : 'miss');
    return bad;
  }

  #read(query: string): T | Refused {
    const document = this.#parse(query);
    if ('errors' in document) {
      this.#bad.set(query, document);
      return document;
    }
    const made = this.#make(document);
    this.#good.set(query, made);
    return made;
  }

  #parse(query: string): DocumentNode | Refused {
    const { schema, limits, suggestions } = this.#options;
    try {
      const document = parse(query, { maxTokens: limits.maxTokens });
      const exceeded = exceededLimits(document, limits);
      if (exceeded.length > 0) return { errors: exceeded };
      const options = { maxErrors: MAX_ERRORS, hideSuggestions: !suggestions };
      const errors = validate(schema, document, this.#rules, options);
      return errors.length > 0 ? { errors } : document;
    } catch (error) {
      if (error instanceof GraphQLError) return { errors: [error] };
      throw error;
    }
  }
}
