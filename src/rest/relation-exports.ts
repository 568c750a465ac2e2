import { NO_PIECES, type Reply, type RequestContext } from '@portico/transport';
import { preferences } from '../core/negotiation.ts';
import type { MaybePromise } from '../core/scheduler.ts';
import { quote } from '../core/text.ts';
import type { ExportFormat } from '../relations/lists.ts';
import { invalidParameter, type Relations } from '../relations/rows/conditions.ts';
import { rowExportHead, rowPages } from '../relations/rows/row-exports.ts';
import { readRowList } from '../relations/rows/row-lists.ts';
import type { RowStore } from '../relations/rows/rows.ts';
import type { RowRules } from '../relations/rules/views.ts';
import { EXPORT_TYPES } from './lists.ts';
import { explained } from './relation-lists.ts';

/** Parameters of pages; an export has all matching rows, in the order of their key. */
const ONLY_PAGES = ['limit', 'cursor', 'sort'];

/**
 * Answers with the matching rows of a relation, one per line. Each piece shows the rows as of its read, and
 * is read while the client takes the one before. Rows behind the last key at the start are left out.
 */
export function exporterOf(
  store: RowStore,
  { relations, rules }: { readonly relations: Relations; readonly rules: RowRules | undefined },
): (ctx: RequestContext, format: ExportFormat) => MaybePromise<Reply> {
  const { relation } = store;
  return async (ctx, format) => {
    const view = rules?.viewOf(ctx.caller);
    const { exports } = store.as(view);
    for (const name of ONLY_PAGES) {
      if (ctx.query[name] === undefined) continue;
      throw invalidParameter(name, `${quote(name)} goes with application/json; CSV and NDJSON have all rows`);
    }
    const isLenient = preferences(ctx).get('handling') === 'lenient';
    const {
      where,
      fields,
      selection: embedded,
    } = readRowList(relations, relation, ctx.query, isLenient, view);
    if (embedded !== undefined)
      throw invalidParameter(
        'fields',
        '"fields" embeds rows in application/json; CSV and NDJSON have columns',
      );
    const selection = { where, fields, format };
    const head = Buffer.from(rowExportHead(relation, selection));
    const reply = (body: Reply['body']): Reply => {
      return { status: 200, type: EXPORT_TYPES[format], body, headers: { vary: 'accept' } };
    };
    const upTo = await exports.lastKey();
    if (upTo === undefined) return reply(head);
    // Read before the reply begins, so that a failure is an ordinary refusal.
    const first = await explained(() => exports.page(selection, { after: undefined, upTo }));
    if (ctx.method === 'HEAD') return reply(NO_PIECES);
    const begun = Buffer.concat([head, first.bytes]);
    if (!first.more) return reply(begun);
    async function* pieces(): AsyncGenerator<Uint8Array> {
      yield begun;
      for await (const { bytes } of rowPages(exports, selection, { after: first.last, upTo: upTo ?? [] })) {
        yield bytes;
      }
    }
    return reply(pieces());
  };
}
