import {
  type ApiParameter,
  type ApiReference,
  type ApiReply,
  named,
  queryParameter,
} from '../../http/openapi.ts';
import { LIMIT } from '../../relations/lists.ts';
import type { Column, Relation } from '../../relations/relation.ts';
import { takes } from '../../relations/selections/aggregates.ts';
import { header, prefer } from './rest-api.ts';

/** Filters of a list by their names. */
export const ROW_FILTERS = {
  type: 'object',
  propertyNames: { pattern: '^(?!embed\\.)\\w+(\\.\\w+){0,5}(:(not|lt|lte|gt|gte|prefix|contains|null))?$' },
  additionalProperties: { type: 'string' },
  description: 'Filters of a list by their names.',
};

/** The parameters of embedded rows by their names. */
export const ROW_EMBEDS = {
  type: 'object',
  propertyNames: { pattern: '^embed(\\.\\w+){2,9}(:(not|lt|lte|gt|gte|prefix|contains|null))?$' },
  additionalProperties: { type: 'string' },
  description: 'Parameters of embedded rows by their names.',
};

/** The parameters of all relations. */
export const PARAMETERS = {
  RowLimit: queryParameter('limit', 'Rows per page.', {
    type: 'integer',
    minimum: 1,
    maximum: LIMIT.max,
    default: LIMIT.default,
  }),
  RowCursor: queryParameter('cursor', 'The start of the page, from a `Link` of a neighbouring page.', {
    type: 'string',
  }),
  RowWhere: queryParameter(
    'where',
    'A condition as JSON: an object of columns with values or tests (`eq`, `ne`, `in`, `lt`, `lte`, `gt`, `gte`, `prefix`, `contains`, `isNull`), of references with conditions, of inverses with `some`, `none` or `every`, and of `and`, `or` and `not`.',
    { type: 'string' },
  ),
  RowListPrefer: prefer(
    '`count=exact` for `X-Total-Count`; `handling=lenient` ignores wrong parameters.',
    'count=exact',
  ),
  RowWritePrefer: prefer('`return=minimal` leaves the row out of the reply.', 'return=minimal'),
  RowCreatePrefer: prefer(
    '`return=minimal` leaves the rows out of the reply. An upsert merges the columns that came (`resolution=merge`, the default), or leaves a row that is there as it is (`resolution=ignore`). For an import `transaction=all` stores all lines or none, `transaction=line` stores each line separately, and `return=minimal` omits the stored lines from the report.',
    'return=minimal',
    'resolution=ignore',
    'transaction=all',
  ),
  RowMaxAffected: {
    ...prefer('The most rows that may be removed, at most 10,000.', 'max-affected=100'),
    required: true,
  },
  RowIfNoneMatch: header(
    'if-none-match',
    'The ETag that the client has; the reply is 304 while it is current.',
    '"1795352385129"',
  ),
  RowIfMatch: header(
    'if-match',
    'The ETag that the row must have; otherwise the reply is 412.',
    '"1795352385129"',
  ),
  RowOnlyNew: header('if-none-match', '`*` creates a row and refuses to replace one.', '*'),
  RowIdempotencyKey: header(
    'idempotency-key',
    'A unique key for this create, separate for each caller: a repetition with the same body gets the same reply and creates nothing. A repeated import continues after the last stored line.',
    '6f1c1d5e-7b7a-4c8e-9a35-0d2f6f6f2b0e',
  ),
} satisfies Readonly<Record<string, ApiParameter>>;

export const shared = (name: keyof typeof PARAMETERS): ApiReference => ({
  $ref: `#/components/parameters/${name}`,
});

/** The header fields of all relations. */
export const HEADERS = {
  RowETag:
    'The version of the row, for `If-Match` or `If-None-Match`. Of a page, and of a row with embedded rows, it is a digest of the reply, for `If-None-Match` only.',
  RowLastModified: 'The time of the last change; absent within the second of the change.',
  RowLocation: 'The path of the row.',
  RowLink: 'The next, the previous and the first page.',
  RowTotal: 'The number of matching rows; of a list, if requested.',
  RowApplied: 'The preferences of `Prefer` that the reply follows.',
} as const;

export const headerOf = (name: keyof typeof HEADERS): ApiReference => ({
  $ref: `#/components/headers/${name}`,
});
export const ETAG = { etag: headerOf('RowETag') };
export const APPLIED = { 'preference-applied': headerOf('RowApplied') };
export const CREATED = { location: headerOf('RowLocation'), ...ETAG, ...APPLIED };
export const MINIMAL: ApiReply = {
  description: 'Done; without the row, as `Prefer: return=minimal` asks, or because the caller may not read.',
  headers: { ...ETAG, ...APPLIED },
};

/** Filters other than equality; a parameter for each would be too many. */
export function otherFilters(column: string): ApiParameter {
  const description =
    'Other filters, each a parameter of its own: a column with `:not`, `:lt`, `:lte`, `:gt`, `:gte`, `:prefix`, `:contains` or `:null` (`true` or `false`); also behind references and inverses, such as `author.name:prefix=J`.';
  const schema = { ...named('RowFilters'), examples: [{ [`${column}:null`]: 'false' }] };
  return { ...queryParameter('filters', description, schema), style: 'form', explode: true };
}

/** Names the relations over which filters and orders may go. */
export function aboutFilters({ references, inverses }: Relation): string {
  const said = [
    ...references.map(({ name, to }) => `\`${name}.\` (a row of ${to})`),
    ...inverses.map(({ name, relation }) => `\`${name}.\` (rows of ${relation})`),
  ];
  const about =
    'All parameters must match. Nulls come last. A list of more than 10,000 rows needs an index for its filters and order.';
  return said.length === 0 ? about : `${about} Filters may begin with ${said.join(', ')}.`;
}

/** The columns and embedded rows to return, and the parameters of the latter. */
export function shownParameters(relation: Relation): readonly ApiParameter[] {
  const { columns, references, inverses, many } = relation;
  const [first = '', second] = columns.map(({ name }) => name);
  const plain = second === undefined ? first : `${first},${second}`;
  const arrays = [...inverses, ...many].map(({ name }) => name);
  const names = [...references.map(({ name }) => name), ...arrays];
  const [embedded] = names;
  const description =
    embedded === undefined
      ? 'The columns to return.'
      : `The columns to return, and rows of other relations with theirs in parentheses: ${quoted(names)}. At most 4 levels, 20 of them, 50,000 rows and 16 MiB.`;
  const fields = queryParameter('fields', description, {
    type: 'string',
    examples: [plain, ...(embedded === undefined ? [] : [`${first},${embedded}(*)`])],
  });
  const [array] = arrays;
  if (array === undefined) return [fields];
  const about = `Which embedded rows, each a parameter of its own: \`embed.${array}.limit\`, \`embed.${array}.sort\`, \`embed.${array}.where\`, and filters on their columns. Only for rows that \`fields\` embeds; without a limit, more than 1,000 for one row are refused.`;
  // Its members are parameters, which clients write beside `fields`.
  const embed = queryParameter('embed', about, { ...named('RowEmbeds') });
  return [fields, { ...embed, style: 'form', explode: true }];
}

/** Aggregates of a list instead of its rows. */
export function aggregateParameters({ columns }: Relation): readonly ApiParameter[] {
  const grouped = columns.filter(({ type }) => type.kind !== 'json').map(({ name }) => name);
  const [first = ''] = grouped;
  return [
    queryParameter(
      'aggregate',
      'Returns groups instead of rows: `count`, and `countDistinct`, `sum`, `avg`, `min` and `max` of columns.',
      { type: 'string', examples: ['count', `count,max(${aggregated(columns)})`] },
    ),
    queryParameter(
      'group',
      'Up to 3 columns to group by; at most 1,000 groups. Without `aggregate` it returns their values.',
      {
        type: 'string',
        examples: [first],
      },
    ),
  ];
}

function aggregated(columns: readonly Column[]): string {
  return columns.find(({ type }) => takes('max', type.kind))?.name ?? '';
}

const quoted = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');
