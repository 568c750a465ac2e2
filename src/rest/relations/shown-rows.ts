import type { RequestContext } from '@portico/transport';
import type { AccessPolicy } from '../../access/policy.ts';
import { GenerationalCache } from '../../core/generational-cache.ts';
import { didYouMean, quote } from '../../core/text.ts';
import { type Relation, USERS } from '../../relations/relation.ts';
import { invalidParameter, type Relations } from '../../relations/rows/conditions.ts';
import { EMBED, SelectionReader } from '../../relations/selections/read-selection.ts';
import { nestedRows, type Selection } from '../../relations/selections/selection.ts';

type Shown = SelectionReader['shown'];

/** Size in bytes, at most, of what a query asks for, for each of its characters. */
const BYTES_PER_CHARACTER = 64;
const BYTES_PER_QUERY = 2_048;

/** What requests for single rows of a relation show: columns, and embedded rows. */
export class ShownRows {
  readonly #relation: Relation;
  readonly #relations: Relations;
  readonly #policy: AccessPolicy | undefined;
  /** By query, so that the statements of a selection are kept with it. */
  readonly #known = new GenerationalCache<Shown>(512 * 1024);

  constructor(relation: Relation, relations: Relations, policy: AccessPolicy | undefined) {
    this.#relation = relation;
    this.#relations = relations;
    this.#policy = policy;
  }

  /** Throws HttpProblem. */
  of(ctx: RequestContext): Shown {
    const { target, query } = ctx;
    const start = target.indexOf('?') + 1;
    const text = start === 0 ? '' : target.slice(start);
    let shown = this.#known.get(text);
    if (shown === undefined) {
      shown = this.#read(query);
      this.#known.set(text, shown, BYTES_PER_QUERY + BYTES_PER_CHARACTER * text.length);
    }
    authorizeSelection(this.#policy, ctx, shown.selection);
    return shown;
  }

  #read(query: RequestContext['query']): Shown {
    const reader = new SelectionReader(this.#relations, this.#relation);
    const embeds: string[] = [];
    for (const name in query) {
      if (name.startsWith(EMBED)) embeds.push(name);
      else if (name !== 'fields') {
        const message = `There is no parameter ${quote(name)} for a row${didYouMean(name, ['fields'])}`;
        throw invalidParameter(name, message);
      }
    }
    if (query.fields !== undefined) reader.fields(String(query.fields));
    for (const name of embeds) reader.embed(name, [query[name]].flat().map(String));
    return reader.shown;
  }
}

/** Requires the scopes to read the embedded relations. Throws HttpProblem. */
export function authorizeSelection(
  policy: AccessPolicy | undefined,
  ctx: RequestContext,
  selection: Selection | undefined,
): void {
  if (policy === undefined || selection === undefined) return;
  for (const { rows } of nestedRows(selection)) {
    const { relation, through } = rows.link;
    for (const { name } of through === undefined ? [relation] : [through.relation, relation]) {
      policy.authorizeOperation(ctx, 'read', name === USERS ? undefined : name);
    }
  }
}
