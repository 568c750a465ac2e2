import {
  type DocumentNode,
  GraphQLError,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import { GenerationalCache } from '../../core/generational-cache.ts';
import { type DocumentLimits, exceededLimits } from '../document-limits.ts';
import type { OperationOptions } from '../operation.ts';
import type { OperationMeters } from '../operation-meters.ts';
import { type Operations, operationsOf, type Refused } from './operations.ts';

/** What documents are read with. */
export interface DocumentCacheOptions {
  readonly limits: DocumentLimits;
  readonly introspection: boolean;
  /** What remembered documents and their plans may take, in bytes. */
  readonly maxBytes: number;
  readonly meters: OperationMeters | undefined;
  readonly operations: Omit<OperationOptions, 'onPlanned'>;
}

/** What a document takes once it is parsed, in bytes: at most, for itself and for each of its tokens. */
const DOCUMENT_BYTES = 2_048;
const TOKEN_BYTES = 450;
/** The part of the cache that wrong documents have. */
const BAD_SHARE = 1 / 8;
/** Each mistake that is listed costs a walk over the text; who makes more has enough to read. */
const MAX_ERRORS = 10;

/** The documents that clients send: each is parsed, checked against the limits and validated once, and remembered. */
export class DocumentCache {
  readonly #options: DocumentCacheOptions;
  readonly #good: GenerationalCache<Operations>;
  /** Kept apart, so that a flood of wrong documents pushes no good one out. */
  readonly #bad: GenerationalCache<Refused>;

  constructor(options: DocumentCacheOptions) {
    this.#options = options;
    this.#good = new GenerationalCache((1 - BAD_SHARE) * options.maxBytes);
    this.#bad = new GenerationalCache(BAD_SHARE * options.maxBytes);
  }

  /** The operations of a document, or why it is refused. */
  find(query: string): Operations | Refused {
    const { meters } = this.#options;
    const known = this.#good.get(query);
    if (known !== undefined) {
      meters?.lookup('hit');
      return known;
    }
    const found = this.#bad.get(query) ?? this.#read(query);
    meters?.lookup('errors' in found ? 'refused' : 'miss');
    return found;
  }

  #read(query: string): Operations | Refused {
    const { limits, operations: options } = this.#options;
    const document = this.#parse(query);
    if ('errors' in document) {
      this.#bad.set(query, document, bytesOf(query, limits.maxTokens));
      return document;
    }
    const operations = operationsOf(document, {
      ...options,
      onPlanned: (bytes) => this.#good.grow(query, bytes),
    });
    this.#good.set(query, operations, bytesOf(query, document.tokenCount));
    return operations;
  }

  #parse(query: string): DocumentNode | Refused {
    const { limits, introspection, operations } = this.#options;
    const { schema, suggestions } = operations;
    const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
    try {
      const document = parse(query, { maxTokens: limits.maxTokens });
      const exceeded = exceededLimits(document, limits);
      if (exceeded.length > 0) return { errors: exceeded };
      const errors = validate(schema, document, rules, {
        maxErrors: MAX_ERRORS,
        hideSuggestions: !suggestions,
      });
      return errors.length > 0 ? { errors } : document;
    } catch (error) {
      if (error instanceof GraphQLError) return { errors: [error] };
      throw error;
    }
  }
}

/** What a remembered document takes at most; of one that is refused the number of tokens may not be known. */
function bytesOf(query: string, tokens = query.length): number {
  return DOCUMENT_BYTES + 2 * query.length + TOKEN_BYTES * Math.min(tokens, query.length);
}
