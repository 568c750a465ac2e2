import { HttpProblem, type RequestContext } from '@portico/transport';
import { type RowAccess, requireAny, viewOf } from '../../access/row-access.ts';
import { GenerationalCache } from '../../core/generational-cache.ts';
import { didYouMean, quote } from '../../core/text.ts';
import { type Relation, USERS } from '../../relations/relation.ts';
import { invalidParameter, type Relations } from '../../relations/rows/conditions.ts';
import { isAll } from '../../relations/rules/rule-trees.ts';
import type { RowView } from '../../relations/rules/views.ts';
import { EMBED, SelectionReader } from '../../relations/selections/read-selection.ts';
import { nestedRows, type Selection } from '../../relations/selections/selection.ts';

type Shown = SelectionReader['shown'];

interface ShownRowsOptions extends RowAccess {
  readonly relations: Relations;
}

/** Size in bytes, at most, of what a query asks for, for each of its characters. */
const BYTES_PER_CHARACTER = 64;
const BYTES_PER_QUERY = 2_048;

/** What requests for single rows of a relation show: columns, and embedded rows. */
export class ShownRows {
  readonly #relation: Relation;
  readonly #options: ShownRowsOptions;
  /** By query and view, so that the statements of a selection are kept with it. */
  readonly #known = new GenerationalCache<Shown>(512 * 1024);

  constructor(relation: Relation, options: ShownRowsOptions) {
    this.#relation = relation;
    this.#options = options;
  }

  /** Throws HttpProblem. */
  of(ctx: RequestContext): Shown {
    const { target, query } = ctx;
    const view = viewOf(this.#options, ctx);
    const start = target.indexOf('?') + 1;
    const text = `${start === 0 ? '' : target.slice(start)}${view === undefined ? '' : ` ${view.key}`}`;
    let shown = this.#known.get(text);
    if (shown === undefined) {
      shown = this.#read(query, view);
      this.#known.set(text, shown, BYTES_PER_QUERY + BYTES_PER_CHARACTER * text.length);
    }
    authorizeSelection(this.#options, ctx, shown.selection);
    return shown;
  }

  #read(query: RequestContext['query'], view: RowView | undefined): Shown {
    const reader = new SelectionReader(this.#options.relations, this.#relation, view);
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

/** Requires the scopes to read the embedded relations, or that their rules let the caller read some. Throws HttpProblem. */
export function authorizeSelection(
  access: RowAccess,
  ctx: RequestContext,
  selection: Selection | undefined,
): void {
  if (selection === undefined) return;
  const { policy, rules } = access;
  for (const { rows } of nestedRows(selection)) {
    const { relation, through } = rows.link;
    for (const { name } of through === undefined ? [relation] : [through.relation, relation]) {
      if (rules?.governs(name) === true) requireAny(access, ctx, name, ['read']);
      else policy?.authorizeOperation(ctx, 'read', name === USERS ? undefined : name);
    }
    const connects = through && viewOf(access, ctx)?.of(through.relation).read;
    if (through === undefined || connects === undefined || isAll(connects)) continue;
    const message = `"fields" embeds "${rows.path}" over ${through.relation.name}, of which the caller may not read all rows`;
    throw new HttpProblem(403, 'NOT_ALLOWED', message, {
      reasons: [{ detail: message, parameter: 'fields' }],
    });
  }
}
