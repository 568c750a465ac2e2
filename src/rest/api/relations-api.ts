import { PROBLEM_TYPE } from '@portico/transport';
import type { AccessPolicy } from '../../access/policy.ts';
import type { ErrorCode } from '../../core/error-codes.ts';
import {
  type ApiOperation,
  type DoorApi,
  listOf,
  mapOf,
  named,
  object,
  oneOfTexts,
  pathParameter,
  queryParameter,
  type Schema,
  text,
} from '../../http/openapi.ts';
import { type Relation, USER_COLUMNS } from '../../relations/relation.ts';
import type { Relations } from '../../relations/rows/conditions.ts';
import { addedMembers, oneOrMany, type RowSchemas, rowSchemas } from '../../relations/rows/row-schemas.ts';
import { RowFormat } from '../../relations/rows/rows.ts';
import { JSON_TYPE } from '../messages.ts';
import { accessOf, ofAll } from './relation-access.ts';
import {
  APPLIED,
  aboutFilters,
  aggregateParameters,
  CREATED,
  ETAG,
  HEADERS,
  headerOf,
  MINIMAL,
  otherFilters,
  PARAMETERS,
  ROW_EMBEDS,
  ROW_FILTERS,
  shared,
  shownParameters,
} from './relation-parameters.ts';
import { BODY, CONDITION, CSV, IMPORT_REFUSALS, json, KEY, LAST_EVENT, NDJSON, STORE } from './rest-api.ts';

interface RelationsApiOptions {
  /** The prefix of the paths that clients see. */
  readonly prefix: string;
  /** What authorizes requests; undefined if the door is open. */
  readonly policy: AccessPolicy | undefined;
}

/** The OpenAPI descriptions of declared relations, each with its own tag. */
export function relationsApi(
  relations: readonly Relation[],
  { prefix, policy }: RelationsApiOptions,
): readonly DoorApi[] {
  const byName: Relations = new Map(relations.map((relation) => [relation.name, relation]));
  const described = relations.map((relation): DoorApi => {
    const { name, key } = relation;
    const rows = rowSchemas(byName, relation);
    const own = `${prefix}/${name}`;
    const isView = relation.existing?.isView === true;
    return {
      door: 'rest',
      tag: name,
      about: `The rows of ${name}.${relation.rules === undefined ? '' : ' Rules say which of them a caller may read and write.'}`,
      refusal: { type: PROBLEM_TYPE, schema: named('RowProblem') },
      ...accessOf(relation, policy),
      schemas: { RowProblem: ROW_PROBLEM, RowFilters: ROW_FILTERS, RowEmbeds: ROW_EMBEDS, ...rows.schemas },
      parameters: PARAMETERS,
      headers: HEADERS,
      paths: {
        [own]: {
          get: listOperation(relation, rows),
          ...(!isView && { post: createOperation(relation, rows), delete: removeAllOperation(relation) }),
        },
        [`${own}/${key.map((column) => `{${column}}`).join()}`]: isView
          ? { get: rowOperations(relation, rows).get }
          : rowOperations(relation, rows),
      },
    };
  });
  const written = relations.filter(({ existing }) => existing?.isView !== true);
  const several = written.slice(0, 1).map((first) => severalApi(first, byName, { prefix, policy }));
  return [...described, ...several];
}

/** GET /_changes */
function changesOperation(recorded: readonly string[]): ApiOperation {
  return {
    id: '_changes.follow',
    summary: 'Follows the changes of several relations',
    description: 'Needs the scope to read each of them. Filters hold for the rows of each.',
    parameters: [
      {
        ...queryParameter('relation', 'The relations to follow, with commas between.', {
          type: 'string',
          examples: [recorded.join()],
        }),
        required: true,
      },
      shared('RowWhere'),
      ...LAST_EVENT,
    ],
    replies: { 200: { description: 'The changes in commit order.', content: CHANGES_CONTENT } },
    refusals: [...STORE, ...FOLLOW, 'INVALID_PARAMETER'],
  };
}

const CHANGES_CONTENT: Readonly<Record<string, Schema>> = {
  'text/event-stream; charset=utf-8': text(
    'Changes from now on, or after the event in Last-Event-ID, such as `book.created`, each with the JSON object {position, relation, type, key, row}.',
  ),
};

const FOLLOW = [
  'EVENTS_GONE',
  'INVALID_EVENT_ID',
  'TOO_MANY_STREAMS',
] as const satisfies readonly ErrorCode[];

/** The paths of several relations. The example of a batch creates a row of the first. */
function severalApi(first: Relation, relations: Relations, { prefix, policy }: RelationsApiOptions): DoorApi {
  const { example } = rowSchemas(relations, first);
  const recorded = [...relations.values()].filter(({ changes }) => changes).map(({ name }) => name);
  const write = { method: 'POST', path: `/${first.name}`, body: example };
  const content = { [JSON_TYPE]: { ...BATCH_BODY, examples: [{ writes: [write] }] } };
  return {
    door: 'rest',
    tag: '_relations',
    about: 'Writes to any relations in one transaction, and the changes of several.',
    refusal: { type: PROBLEM_TYPE, schema: named('RowProblem') },
    ...accessOf({ ...first, name: '*', ...ofAll([...relations.values()]) }, policy),
    schemas: {},
    paths: {
      [`${prefix}/_changes`]: { get: changesOperation(recorded) },
      [`${prefix}/_batch`]: {
        post: {
          id: '_batch.write',
          summary: 'Does all writes or none',
          description:
            'In a body, `{"$result": 0, "pointer": "/id"}` stands for a column of the row of an earlier write, counted from 0; in a path `{$0/id}`. The first refused write undoes all, and `errors` points to it. Instead of the scope `*:write`, that of each relation is enough.',
          parameters: [shared('RowIdempotencyKey')],
          body: { required: true, content },
          replies: { 200: json('The replies to the writes, in their order.', BATCH_RESULTS, APPLIED) },
          refusals: [...WRITE, ...KEY, ...CONDITION, ...BATCH_REFUSALS],
        },
      },
    },
  };
}

const BATCH_REFUSALS = ['INVALID_BATCH', 'LIMIT_EXCEEDED', 'NOT_FOUND', 'REFERENCED'] as const;

const BATCH_BODY = {
  ...object({
    writes: {
      ...listOf({
        ...object({
          method: oneOfTexts(['POST', 'PATCH', 'PUT', 'DELETE']),
          path: text('The path of a relation or of a row.'),
          'headers?': mapOf(text(), '`If-Match`, `If-None-Match` and `Prefer`.'),
          'body?': {},
        }),
        additionalProperties: false,
      }),
      maxItems: 100,
    },
  }),
  additionalProperties: false,
};

const BATCH_RESULTS = object({
  results: listOf(
    object({ status: { type: 'integer' }, 'headers?': mapOf(text()), 'body?': {} }, 'The reply to a write.'),
  ),
});

/** What the relation of users adds to their description. */
export function usersApi(users: Relation | undefined) {
  const hasColumns = users !== undefined && users.columns.length > USER_COLUMNS.length;
  return {
    areReferenced: (users?.inverses.length ?? 0) > 0,
    added: hasColumns ? addedMembers(users) : undefined,
  };
}

const ROW_PROBLEM = {
  allOf: [
    named('Problem'),
    object({
      'errors?': listOf(
        object({
          detail: text(),
          'pointer?': text('The place in the body, as a JSON Pointer in a fragment.'),
          'parameter?': text('The name of a query parameter.'),
        }),
      ),
    }),
  ],
  description: 'A refusal as problem details (RFC 9457). `errors` lists all faults, each with its place.',
};

/** Content types of an export. */
const EXPORT_CONTENT: Readonly<Record<string, Schema>> = {
  [NDJSON]: text('A row per line, as a JSON object.'),
  [`${CSV}; charset=utf-8`]: text('A line with the names of the columns, and a row per line (RFC 4180).'),
};

/** Content types of an import. */
const IMPORT_CONTENT: Readonly<Record<string, Schema>> = {
  [NDJSON]: text('A new row per line, as a JSON object.'),
  [CSV]: text('A line with the names of the columns, and a new row per line (RFC 4180).'),
};

/** The report of an import. */
const REPORT_CONTENT: Readonly<Record<string, Schema>> = {
  [NDJSON]: text(
    'The report of an import: a JSON object per line, with the line and the key of its row, or with the line, a code, a reason and all faults. The last object has the totals.',
  ),
};

const WRITE = [
  ...STORE,
  ...BODY,
  'UNSUPPORTED_MEDIA_TYPE',
  'INVALID_PARAMETER',
  'INVALID_ROW',
  'TAKEN',
  'REFERENCE_MISSING',
] as const satisfies readonly ErrorCode[];

function listOperation(relation: Relation, rows: RowSchemas): ApiOperation {
  const { name, columns } = relation;
  const sorted = columns
    .filter(({ type }) => type.kind !== 'json' && type.kind !== 'bytes')
    .map((column) => column.name);
  const [first = '', second] = sorted;
  return {
    id: `${name}.list`,
    summary: `Lists ${name}`,
    description: aboutFilters(relation),
    parameters: [
      shared('RowLimit'),
      shared('RowCursor'),
      queryParameter('sort', 'Columns to sort by; `-` before a column sorts in descending order.', {
        type: 'string',
        examples: [second === undefined ? first : `-${second},${first}`],
      }),
      ...shownParameters(relation),
      ...aggregateParameters(relation),
      shared('RowWhere'),
      ...columns
        .filter(({ type }) => type.kind !== 'json')
        .map((column) =>
          queryParameter(column.name, 'Rows with one of these values.', listOf(rows.filterOf(column.name))),
        ),
      otherFilters(columns[0]?.name ?? ''),
      shared('RowListPrefer'),
      shared('RowIfNoneMatch'),
      ...(relation.changes ? LAST_EVENT : []),
    ],
    replies: {
      200: {
        description:
          'A page of rows, by key unless `sort` says otherwise, or groups of rows, by the values of `group`. NDJSON and CSV have all matching rows, by key. An event stream has the changes of rows that match filters on their own columns.',
        content: {
          [JSON_TYPE]: { anyOf: [listOf(rows.shown), listOf(rows.group)] },
          ...EXPORT_CONTENT,
          ...(relation.changes && CHANGES_CONTENT),
        },
        headers: { ...ETAG, link: headerOf('RowLink'), 'x-total-count': headerOf('RowTotal'), ...APPLIED },
      },
      304: { description: 'The copy of the client is current.', headers: ETAG },
    },
    refusals: [
      ...STORE,
      ...(relation.changes ? FOLLOW : (['NOT_ACCEPTABLE'] as const)),
      ...(['INVALID_PARAMETER', 'INVALID_CURSOR', 'LIMIT_EXCEEDED', 'SEARCH_OFF'] as const),
    ],
  };
}

function removeAllOperation({ name, columns }: Relation): ApiOperation {
  return {
    id: `${name}.removeAll`,
    summary: `Removes the rows of ${name} that match a filter`,
    description:
      'The filters are those of the list. Removes none if more rows match than `Prefer: max-affected` allows.',
    parameters: [shared('RowWhere'), otherFilters(columns[0]?.name ?? ''), shared('RowMaxAffected')],
    replies: {
      204: {
        description: 'The rows are removed.',
        headers: { 'x-total-count': headerOf('RowTotal'), ...APPLIED },
      },
    },
    refusals: [
      ...[...STORE, ...BODY],
      ...([
        'INVALID_PARAMETER',
        'LIMIT_EXCEEDED',
        'PRECONDITION_REQUIRED',
        'REFERENCED',
        'SEARCH_OFF',
      ] as const),
    ],
  };
}

function createOperation({ name, key, unique }: Relation, rows: RowSchemas): ApiOperation {
  const on = [key, ...unique].map((columns) => columns.join());
  return {
    id: `${name}.create`,
    summary: `Creates a row of ${name}, or up to 1,000 at once`,
    description:
      'An array is stored as a whole or not at all. With `on` rows are upserted. A body of NDJSON or CSV is an import, and so is an array with `Prefer: transaction=`: it is processed while it arrives, and the reply reports on each line.',
    parameters: [
      queryParameter(
        'on',
        'Upserts: the columns by which a row that is there is found. The body must be valid as a new row.',
        { type: 'string', enum: on },
      ),
      queryParameter(
        'dryRun',
        'Stores nothing of an import; the report has the lines that would be refused, and the numbers of both.',
        { type: 'boolean' },
      ),
      shared('RowCreatePrefer'),
      shared('RowIdempotencyKey'),
    ],
    body: { required: true, content: { [JSON_TYPE]: oneOrMany(rows.created), ...IMPORT_CONTENT } },
    replies: {
      200: {
        description: 'The report of an import; or the rows of an upsert that created none.',
        content: { [JSON_TYPE]: oneOrMany(rows.whole), ...REPORT_CONTENT },
        headers: { ...ETAG, ...APPLIED },
      },
      201: json(
        'The row or the rows; empty with `Prefer: return=minimal` and for callers who may not read.',
        oneOrMany(rows.whole),
        CREATED,
      ),
      204: MINIMAL,
    },
    refusals: [...WRITE, ...KEY, ...IMPORT_REFUSALS, 'LIMIT_EXCEEDED'],
    // An import in one transaction that stored nothing.
    refusalContent: { 400: REPORT_CONTENT, 409: REPORT_CONTENT },
  };
}

function rowOperations(relation: Relation, rows: RowSchemas) {
  const { name, one, key } = relation;
  const parts = key.map((column) => pathParameter(column, `The ${column} of the row.`, rows.partOf(column)));
  const conditions = [shared('RowIfMatch')];
  const whole = (description: string) => json(description, rows.whole, ETAG);
  const { clientsGiveKeys } = new RowFormat(relation);
  return {
    get: {
      id: `${name}.read`,
      summary: `Reads a row of ${name}`,
      parameters: [...parts, ...shownParameters(relation), shared('RowIfNoneMatch')],
      replies: {
        200: json(`The ${one}.`, rows.shown, {
          ...ETAG,
          'last-modified': headerOf('RowLastModified'),
        }),
        304: { description: 'The copy of the client is current.', headers: ETAG },
      },
      refusals: [...STORE, 'NOT_FOUND', 'INVALID_PARAMETER', 'LIMIT_EXCEEDED', 'SEARCH_OFF'],
    },
    patch: {
      id: `${name}.change`,
      summary: `Changes columns of a row of ${name}`,
      parameters: [...parts, ...conditions, shared('RowWritePrefer')],
      body: {
        required: true,
        content: { [JSON_TYPE]: rows.patch, 'application/merge-patch+json': rows.patch },
      },
      replies: { 200: whole('The row as it is now.'), 204: MINIMAL },
      refusals: [...WRITE, ...CONDITION, 'NOT_FOUND'],
    },
    put: {
      id: `${name}.put`,
      summary: `Replaces a row of ${name}${clientsGiveKeys ? ', or creates it' : ''}`,
      parameters: [...parts, ...conditions, shared('RowOnlyNew'), shared('RowWritePrefer')],
      body: { required: true, content: { [JSON_TYPE]: rows.put } },
      replies: {
        200: whole('The row as it is now.'),
        ...(clientsGiveKeys && {
          201: json('The row is created; empty with `Prefer: return=minimal`.', rows.whole, CREATED),
        }),
        204: MINIMAL,
      },
      refusals: [...WRITE, ...CONDITION, 'NOT_FOUND'],
    },
    delete: {
      id: `${name}.remove`,
      summary: `Removes a row of ${name}`,
      parameters: [...parts, ...conditions],
      replies: { 204: { description: 'The row is removed.' } },
      refusals: [...STORE, ...BODY, ...CONDITION, 'INVALID_PARAMETER', 'NOT_FOUND', 'REFERENCED'],
    },
  } satisfies Record<string, ApiOperation>;
}
