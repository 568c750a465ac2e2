import { type DocumentNode, GraphQLError, type GraphQLSchema, parse, validate } from 'graphql';

/** A document that is ready to run, or why it cannot be. */
export type Prepared = { readonly document: DocumentNode } | { readonly errors: readonly GraphQLError[] };

/** How many documents are remembered. */
const CAPACITY = 1_000;

/** Parses and validates each document once; the least recently used ones are forgotten. */
export class Documents {
  readonly #schema: GraphQLSchema;
  readonly #good = new Map<string, Prepared>();
  /** Kept apart, so that a flood of wrong documents pushes no good one out. */
  readonly #bad = new Map<string, Prepared>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  prepare(query: string): Prepared {
    const known = recall(this.#good, query) ?? recall(this.#bad, query);
    if (known !== undefined) return known;
    const prepared = this.#prepare(query);
    remember('document' in prepared ? this.#good : this.#bad, query, prepared);
    return prepared;
  }

  #prepare(query: string): Prepared {
    try {
      const document = parse(query);
      const errors = validate(this.#schema, document);
      return errors.length > 0 ? { errors } : { document };
    } catch (error) {
      if (error instanceof GraphQLError) return { errors: [error] };
      throw error;
    }
  }
}

function recall(cache: Map<string, Prepared>, query: string): Prepared | undefined {
  const prepared = cache.get(query);
  if (prepared === undefined) return undefined;
  cache.delete(query);
  cache.set(query, prepared);
  return prepared;
}

function remember(cache: Map<string, Prepared>, query: string, prepared: Prepared): void {
  cache.set(query, prepared);
  if (cache.size <= CAPACITY) return;
  const [oldest] = cache.keys();
  if (oldest !== undefined) cache.delete(oldest);
}
