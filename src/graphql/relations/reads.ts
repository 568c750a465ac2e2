import { type FieldPlan, JsonText, type ResolveSelection } from '@portico/graphql-plans';
import type { GraphQLObjectType, VariableValues } from 'graphql';
import { getNamedType } from 'graphql';
import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import { codecOf } from '../../relations/codecs.ts';
import type { Relation, Value } from '../../relations/relation.ts';
import { type Condition, invalidParameter, type Relations } from '../../relations/rows/conditions.ts';
import { RowCursors, sortReader } from '../../relations/rows/cursors.ts';
import type { RowOrder } from '../../relations/rows/orders.ts';
import type { RowPage } from '../../relations/rows/row-lists.ts';
import type { RowKey } from '../../relations/rows/rows.ts';
import { linkOf, type SelectedMember } from '../../relations/selections/selection.ts';
import type { CallerRows, RowsFor } from '../callers/caller-rows.ts';
import { refusal, showing } from './refusals.ts';
import { limitOf, numberOf, type SelectedRows, type SelectionReader } from './selections.ts';
import { isNumber, LIST_LIMIT } from './types.ts';

/** What reads need of the service. */
export interface ReadOptions {
  readonly selections: SelectionReader;
  readonly rowsFor: RowsFor;
  /** The key of the database that signs cursors. */
  cursorKey(): MaybePromise<Uint8Array>;
}

interface ListInput {
  readonly where?: unknown;
  readonly orderBy?: unknown;
  readonly limit?: number | null;
  readonly first?: number | null;
  readonly last?: number | null;
  readonly after?: string | null;
  readonly before?: string | null;
}

/** Where a page begins. */
interface Place {
  readonly next: readonly Value[] | undefined;
  readonly backwards: boolean;
}

/** Resolves the fields of queries. */
export class Reads {
  readonly #options: ReadOptions;
  readonly #cursors = new RowCursors();

  constructor(options: ReadOptions) {
    this.#options = options;
  }

  /** `books(where:, orderBy:, limit:, after:)` */
  list(relation: Relation): ResolveSelection {
    return (field, given, request, { variableValues }) =>
      showing(() => {
        const input = given as ListInput;
        const rows = limitOf(input.limit ?? LIST_LIMIT.default, 'limit');
        const caller = this.#options.rowsFor(request);
        const asked = { ...input, rows };
        const selected = this.#options.selections.read(field, relation, variableValues, asked, caller.view);
        const place = this.#placeOf(relation, input, selected.shape.order, input.after, false);
        return whenReady(place, (at) =>
          whenReady(this.#page(caller, selected, rows, at), ({ json, count }) =>
            resultOf(`[${json}]`, selected, count),
          ),
        );
      });
  }

  /** `users`, which has no arguments and returns all. */
  all(relation: Relation): ResolveSelection {
    return (field, _given, request, { variableValues }) =>
      showing(() => {
        const rows = LIST_LIMIT.max;
        const caller = this.#options.rowsFor(request);
        const selected = this.#options.selections.read(
          field,
          relation,
          variableValues,
          { rows },
          caller.view,
        );
        const start = { next: undefined, backwards: false };
        return whenReady(this.#page(caller, selected, rows, start), ({ json, count, more }) => {
          if (more) throw tooManyRows(relation, rows);
          return resultOf(`[${json}]`, selected, count);
        });
      });
  }

  /** `book(id:)` */
  row(relation: Relation): ResolveSelection {
    return (field, given, request, { variableValues }) =>
      showing(() => {
        const caller = this.#options.rowsFor(request);
        const asked = { rows: 1 };
        const selected = this.#options.selections.read(field, relation, variableValues, asked, caller.view);
        const key = keyOf(relation, given);
        if (key === undefined) return null;
        return whenReady(caller.of(relation).lists.read(key, selected.shape.selection), (json) =>
          json === undefined ? null : resultOf(json, selected, 1),
        );
      });
  }

  /** `booksConnection(first:, after:, last:, before:, where:, orderBy:)` */
  connection(relation: Relation): ResolveSelection {
    return (field, given, request, { variableValues }) =>
      showing(async () => {
        const input = given as ListInput;
        const backwards = isBackwards(input);
        const rows = limitOf(input.first ?? input.last ?? LIST_LIMIT.default, backwards ? 'last' : 'first');
        const edges = field
          .select(getNamedType(field.definition.type) as GraphQLObjectType)
          .fields.filter(({ name }) => name === 'edges');
        const caller = this.#options.rowsFor(request);
        const read = await this.#edges(relation, edges, input, { rows, backwards, variableValues, caller });
        const list = read.selected.shape;
        const { first, last, more } = read.page;
        const cursor = (values: readonly Value[] | undefined) =>
          values && this.#cursorOf(relation, input, list.order, values);
        return {
          edges: read.edges,
          pageInfo: {
            hasNextPage: backwards ? input.before != null : more,
            hasPreviousPage: backwards ? more : input.after != null,
            startCursor: () => cursor(first),
            endCursor: () => cursor(last),
          },
          totalCount: () => showing(() => caller.of(relation).lists.count(list.where)),
        };
      });
  }

  /** The page of a connection, and its edges, whose nodes are those of each selection. */
  async #edges(
    relation: Relation,
    edges: readonly FieldPlan[],
    input: ListInput,
    {
      rows,
      backwards,
      variableValues,
      caller,
    }: { rows: number; backwards: boolean; variableValues: VariableValues; caller: CallerRows },
  ) {
    const { selections } = this.#options;
    const within = edges.flatMap((edge) =>
      edge
        .select(getNamedType(edge.definition.type) as GraphQLObjectType)
        .fields.map((field) => ({ edge, field })),
    );
    const hasCursors = within.some(({ field }) => field.name === 'cursor');
    const nodes = within.filter(({ field }) => field.name === 'node');
    const asked = { where: input.where, orderBy: input.orderBy, rows };
    const all = nodes.map(({ field }) =>
      selections.read(field, relation, variableValues, asked, caller.view),
    );
    const [selected = selections.list(relation, asked, caller.view), ...others] = all;
    const { order } = selected.shape;
    const at = await this.#placeOf(relation, input, order, backwards ? input.before : input.after, backwards);
    const first = hasCursors ? withKeys(selections.relations, selected, order) : selected;
    const page = await this.#page(caller, first, rows, at);
    const texts = rowTexts(page.json).map((text) =>
      hasCursors ? withoutKeys(text, order) : { text, keys: [] },
    );
    const found: { readonly selected: SelectedRows; readonly texts: readonly string[] }[] = [
      { selected, texts: texts.map(({ text }) => text) },
    ];
    for (const other of others) {
      found.push({ selected: other, texts: rowTexts((await this.#page(caller, other, rows, at)).json) });
    }
    const values = found.map((each) => each.texts.map((text) => resultOf(text, each.selected, 1)));
    const place = new Map(nodes.map(({ edge, field }, i) => [`${edge.key} ${field.key}`, i]));
    return {
      page,
      selected,
      edges: texts.map(({ keys }, row) => ({
        cursor: () => this.#cursorOf(relation, input, order, keys),
        node: (_given: unknown, _context: unknown, { path }: { readonly path: ResponsePath }) =>
          values[place.get(`${path.prev?.prev?.key} ${path.key}`) ?? 0]?.[row],
      })),
    };
  }

  #page(caller: CallerRows, { shape }: SelectedRows, limit: number, at: Place): MaybePromise<RowPage> {
    return caller.of(shape.selection.relation).lists.page({ shape, limit, ...at });
  }

  /** Where a page begins whose cursor a client sent. Throws HttpProblem. */
  #placeOf(
    relation: Relation,
    input: ListInput,
    order: readonly RowOrder[],
    cursor: string | null | undefined,
    backwards: boolean,
  ): MaybePromise<Place> {
    if (cursor == null) return { next: undefined, backwards };
    return whenReady(this.#options.cursorKey(), (key) => {
      const { next } = this.#cursors.read(key, nameOf(relation, input), cursor);
      return { next: order.map((term, i) => sortReader(term).value(next[i] ?? null)), backwards };
    });
  }

  /** The cursor of a row with these values by which it is sorted. */
  #cursorOf(
    relation: Relation,
    input: ListInput,
    order: readonly RowOrder[],
    values: readonly Value[],
  ): MaybePromise<string> {
    return whenReady(this.#options.cursorKey(), (key) => {
      const texts = order.map((term, i) => sortReader(term).text(values[i] ?? null));
      return this.#cursors.write(key, nameOf(relation, input), texts, texts).next;
    });
  }
}

interface ResponsePath {
  readonly prev: ResponsePath | undefined;
  readonly key: string | number;
}

function tooManyRows({ name }: Relation, rows: number) {
  const message = `More than ${rows} rows of ${name}, or more than 1 MiB of them, do not fit one list (page); ask for pages with "${name}Connection"`;
  return refusal('LIMIT_EXCEEDED', message, { limit: 'page' });
}

/** Whether a page ends at its cursor. Throws HttpProblem for arguments that do not go together. */
function isBackwards({ first, last, after, before }: ListInput): boolean {
  const backwards = last != null || (before != null && first == null);
  if (backwards ? first != null || after != null : before != null) {
    throw invalidParameter('first', 'A page takes `first` with `after`, or `last` with `before`');
  }
  return backwards;
}

/** What tells a list from others: cursors are good for one list. */
function nameOf({ name }: Relation, { where = null, orderBy = null }: ListInput): string {
  return JSON.stringify(['graphql', name, where, orderBy]);
}

/** The result of JSON: as it is, or as what the executor completes. */
export function resultOf(json: string, { isWhole, values }: SelectedRows, count: number): unknown {
  return isWhole ? new JsonText(json, count * values) : (JSON.parse(json) as unknown);
}

/** Reads the key of a row from arguments; undefined if no row can have it. */
export function keyOf(
  { key, columns }: Relation,
  given: Readonly<Record<string, unknown>>,
): RowKey | undefined {
  const values: Value[] = [];
  for (const name of key) {
    const column = columns.find((each) => each.name === name);
    const part = column !== undefined && isNumber(column.type) ? numberOf(given[name]) : given[name];
    const parsed = column && codecOf(column.type).parse(part);
    if (parsed === undefined || !('value' in parsed)) return undefined;
    values.push(parsed.value);
  }
  return values;
}

const keyName = (nth: number) => ` k${nth}`;

/** The same selection with the values in front by which the rows are sorted. */
function withKeys(relations: Relations, selected: SelectedRows, order: readonly RowOrder[]): SelectedRows {
  const { relation, members } = selected.shape.selection;
  const known = keyed.get(selected);
  if (known !== undefined) return known;
  const keys = order.map(({ path, column }, nth) =>
    sortedMember(relations, relation, path, column.name, keyName(nth)),
  );
  const selection = { relation, members: [...keys, END, ...members] };
  const found = { ...selected, shape: { ...selected.shape, selection } };
  keyed.set(selected, found);
  return found;
}

const keyed = new WeakMap<SelectedRows, SelectedRows>();
/** Stands between the values by which a row is sorted and its other members. */
const END: SelectedMember = { is: 'constant', name: ' end', json: '0' };
const END_TEXT = '," end":0';

/** A member with a value by which rows are sorted, perhaps of a row that references lead to. */
function sortedMember(
  relations: Relations,
  relation: Relation,
  [step, ...rest]: readonly string[],
  column: string,
  name: string,
): SelectedMember {
  if (step === undefined) {
    return { is: 'column', name, column: relation.columns.findIndex((each) => each.name === column) };
  }
  const link = linkOf(relations, relation, step);
  if (link === undefined) throw new Error(`${relation.name} has no ${step}`);
  const members = [sortedMember(relations, link.relation, rest, column, name)];
  const selection = { relation: link.relation, members };
  const where: Condition = { is: 'and', all: [] };
  return {
    is: 'rows',
    name,
    rows: { path: step, link, selection, where, order: [], limit: undefined, after: undefined },
  };
}

/** The JSON of a row without the values by which it is sorted, and these. */
function withoutKeys(text: string, order: readonly RowOrder[]) {
  const end = text.indexOf(END_TEXT);
  const members = JSON.parse(`${text.slice(0, end)}}`) as Readonly<Record<string, unknown>>;
  const keys = order.map(({ path, column }, nth): Value => {
    const name = keyName(nth);
    let given = members[name];
    for (const _ of path) given = (given as Readonly<Record<string, unknown>> | null)?.[name];
    const parsed = given == null ? { value: null } : codecOf(column.type).parse(given);
    return 'value' in parsed ? parsed.value : null;
  });
  return { text: `{${text.slice(end + END_TEXT.length + 1)}`, keys };
}

/** Splits JSON objects with commas between. */
function rowTexts(json: string): readonly string[] {
  const texts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(json, at);
        break;
      case OPEN:
        if (depth++ === 0) start = at;
        break;
      case CLOSE:
        if (--depth === 0) texts.push(json.slice(start, at + 1));
        break;
    }
  }
  return texts;
}

const [QUOTE, BACKSLASH, OPEN, CLOSE] = [0x22, 0x5c, 0x7b, 0x7d];

/** The index of the quote that ends a string. */
function endOfString(json: string, start: number): number {
  for (let at = json.indexOf('"', start + 1); at !== -1; at = json.indexOf('"', at + 1)) {
    let escapes = 0;
    while (json.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return at;
  }
  return json.length;
}
