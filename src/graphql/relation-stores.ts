import { TogetherError } from '@portico/graphql-plans';
import type { KnownCaller } from '@portico/transport';
import type { AccessPolicy } from '../access/policy.ts';
import type { KeyOf, NewRow, Patch, RelationsData, Row } from '../config/schema/declaration.ts';
import { GenerationalCache } from '../core/generational-cache.ts';
import type { MaybePromise } from '../core/scheduler.ts';
import { LIMIT } from '../relations/lists.ts';
import { type Operation, type Relation, USERS } from '../relations/relation.ts';
import { type Condition, ConditionReader, type Relations } from '../relations/rows/conditions.ts';
import { RowCursors, sortReader } from '../relations/rows/cursors.ts';
import { faultCode } from '../relations/rows/faults.ts';
import { readSort, withKey } from '../relations/rows/orders.ts';
import type { RowListShape } from '../relations/rows/row-lists.ts';
import { type RowFault, RowFormat, type RowKey, type RowValues } from '../relations/rows/rows.ts';
import type { RowWrite, StoredRow } from '../relations/rows/writes.ts';
import { isNone } from '../relations/rules/rule-trees.ts';
import type { CallerRows, RowsFor } from './callers/caller-rows.ts';
import { keyOf } from './relations/reads.ts';
import { faultyRows, missingRow, refusal, refusedWrites, showing } from './relations/refusals.ts';
import { limitOf } from './relations/selections.ts';

/** Which rows of a relation a list has, and in which order. */
export interface RowQuery {
  /** A tree of conditions, such as `{ title: { prefix: 'E' }, author: { name: 'Austen' } }`. */
  readonly where?: Readonly<Record<string, unknown>>;
  /** Columns with commas between, each with `-` if it is descending, such as `-published,author.name`. */
  readonly sort?: string;
  /** Default 100, at most 1,000. */
  readonly limit?: number;
  /** The `next` of the page before. */
  readonly after?: string | undefined;
}

/** Some rows of a list. */
export interface RowsPage<T> {
  readonly rows: readonly T[];
  /** Where the next page begins; undefined behind the last row. */
  readonly next: string | undefined;
}

/**
 * The rows of a relation as the caller of an operation may read and write them. Columns that the caller may not read are
 * not there. Refusals are errors that clients see, with the codes of the REST door.
 */
export interface RelationStore<T, New, Change, Key> {
  /** The row with a key; undefined if the caller may read none. */
  get(key: Key): Promise<T | undefined>;
  list(query?: RowQuery): Promise<RowsPage<T>>;
  count(where?: RowQuery['where']): Promise<number>;
  /** Undefined for a row that the caller may not read. */
  create(row: New): Promise<T | undefined>;
  /** Changes some columns. Rejects with `NOT_FOUND` without such a row. */
  update(key: Key, change: Change): Promise<T | undefined>;
  /** Resolves to false without such a row. */
  remove(key: Key): Promise<boolean>;
}

type StoreOf<
  C extends { readonly relations: RelationsData },
  N extends keyof C['relations'] & string,
> = RelationStore<Row<C, N>, NewRow<C, N>, Patch<C, N>, KeyOf<C, N>>;

/** The rows of declared relations by name, besides those of users. */
export type RelationStores<R extends RelationsData> = {
  readonly [N in Exclude<keyof R, 'users'> & string]: StoreOf<{ readonly relations: R }, N>;
};

type Members = Readonly<Record<string, unknown>>;
type AnyStore = RelationStore<Members, Members, Members, unknown>;
type AnyStores = Readonly<Record<string, AnyStore>>;

/** What the stores of code need of the service. */
export interface StoresOptions {
  readonly relations: Relations;
  readonly rowsFor: RowsFor;
  readonly policy: AccessPolicy | undefined;
  /** The key of the database that signs cursors. */
  cursorKey(): MaybePromise<Uint8Array>;
}

/** Size in bytes of the lists that are kept with their statements, and of one for each character. */
const MAX_BYTES = 1024 * 1024;
const CHARACTER_BYTES = 32;

/** Makes the stores of callers, each when it is first asked for. */
export class CodeStores {
  readonly #options: StoresOptions;
  readonly #lists = new GenerationalCache<RowListShape>(MAX_BYTES);
  readonly #cursors = new RowCursors();
  readonly #byCaller = new WeakMap<KnownCaller, AnyStores>();
  readonly #callers = new WeakMap<object, KnownCaller>();
  /** A property for each relation, which the objects of all callers inherit. */
  readonly #names: object;
  #anonymous: AnyStores | undefined;

  constructor(options: StoresOptions) {
    this.#options = options;
    const makeFor = (stores: object, relation: Relation) => this.#storeOf(stores, relation);
    const served = [...options.relations.values()].filter(({ name }) => name !== USERS);
    this.#names = Object.defineProperties(
      {},
      Object.fromEntries(
        served.map((relation): [string, PropertyDescriptor & ThisType<object>] => [
          relation.name,
          {
            enumerable: true,
            get() {
              return makeFor(this, relation);
            },
          },
        ]),
      ),
    );
  }

  for(caller: KnownCaller | undefined): AnyStores {
    if (caller === undefined) {
      this.#anonymous ??= Object.create(this.#names) as AnyStores;
      return this.#anonymous;
    }
    let stores = this.#byCaller.get(caller);
    if (stores === undefined) {
      stores = Object.create(this.#names) as AnyStores;
      this.#callers.set(stores, caller);
      this.#byCaller.set(caller, stores);
    }
    return stores;
  }

  #storeOf(stores: object, relation: Relation): AnyStore {
    const caller = this.#callers.get(stores);
    const value = new CodeStore(relation, {
      ...this.#options,
      caller,
      rows: this.#options.rowsFor({ caller }),
      lists: this.#lists,
      cursors: this.#cursors,
      cursorKey: () => this.#options.cursorKey(),
    });
    Object.defineProperty(stores, relation.name, { enumerable: true, value });
    return value;
  }
}

interface StoreOptions extends Omit<StoresOptions, 'rowsFor'> {
  readonly caller: KnownCaller | undefined;
  readonly rows: CallerRows;
  readonly lists: GenerationalCache<RowListShape>;
  readonly cursors: RowCursors;
}

class CodeStore implements AnyStore {
  readonly #relation: Relation;
  readonly #format: RowFormat;
  readonly #options: StoreOptions;

  constructor(relation: Relation, options: StoreOptions) {
    this.#relation = relation;
    this.#format = new RowFormat(relation);
    this.#options = options;
  }

  get(key: unknown): Promise<Members | undefined> {
    return showing(async () => {
      this.#require('read');
      const parsed = this.#keyOf(key);
      const found = parsed && (await this.#rows.read(parsed));
      return found && this.#shown(found.values);
    });
  }

  list({ where, sort = '', limit = LIMIT.default, after }: RowQuery = {}): Promise<RowsPage<Members>> {
    return showing(async () => {
      this.#require('read');
      const name = JSON.stringify(['code', this.#relation.name, where ?? null, sort]);
      const shape = this.#shapeOf(name, where, sort);
      const next = after === undefined ? undefined : await this.#placeOf(name, shape, after);
      const page = { shape, limit: limitOf(limit, 'limit'), next, backwards: false };
      const { json, last, more } = await this.#rows.lists.page(page);
      return {
        rows: JSON.parse(`[${json}]`) as readonly Members[],
        next: more && last !== undefined ? await this.#cursorOf(name, shape, last) : undefined,
      };
    });
  }

  count(where?: RowQuery['where']): Promise<number> {
    return showing(() => {
      this.#require('read');
      return this.#rows.lists.count(this.#conditionOf(where));
    });
  }

  create(row: Members): Promise<Members | undefined> {
    return showing(() => {
      this.#require('create');
      const { caller, view } = this.#writer;
      const faults: RowFault[] = [];
      const values = this.#format.readRow(row, { caller, faults, view });
      refuseFaults(faults);
      return this.#write({ is: 'create', relation: this.#relation.name, row: values });
    });
  }

  update(key: unknown, change: Members): Promise<Members | undefined> {
    return showing(() => {
      this.#require('update');
      const parsed = this.#keyOf(key);
      if (parsed === undefined) throw missingRow(this.#relation.name);
      const faults: RowFault[] = [];
      const patch = this.#format.readPatch(change, parsed, faults, this.#writer.view);
      refuseFaults(faults);
      const { name: relation } = this.#relation;
      return this.#write({ is: 'change', relation, key: parsed, patch, condition: undefined });
    });
  }

  remove(key: unknown): Promise<boolean> {
    return showing(async () => {
      this.#require('delete');
      const parsed = this.#keyOf(key);
      if (parsed === undefined) return false;
      const { is } = await this.#rows.remove(parsed, undefined).catch((error: unknown) => {
        throw this.#refusalOf(error);
      });
      return is === 'removed';
    });
  }

  get #rows() {
    return this.#options.rows.of(this.#relation);
  }

  /** The caller as new rows need it. */
  get #writer() {
    const { rows } = this.#options;
    return { caller: rows.caller, view: rows.viewOf(this.#relation) };
  }

  /** Refuses what the caller may do with no row: by rules if there are any, else by scopes. Throws GraphQLError. */
  #require(operation: Operation): void {
    const { rows, policy, caller } = this.#options;
    const { name } = this.#relation;
    const view = rows.viewOf(this.#relation);
    const need = operation === 'read' ? 'read' : 'write';
    const isAllowed =
      view === undefined ? (policy?.allows({ caller }, need, name) ?? true) : !isNone(view[operation]);
    if (!isAllowed) throw refusal('NOT_ALLOWED', `The caller may not ${operation} rows of ${name}`);
  }

  /** The key of a row: a value, or an object with several. */
  #keyOf(key: unknown): RowKey | undefined {
    const [name = '', ...more] = this.#relation.key;
    return keyOf(this.#relation, more.length === 0 ? { [name]: key } : (Object(key) as Members));
  }

  #conditionOf(where: RowQuery['where']): Condition {
    const { relations, rows } = this.#options;
    if (where === undefined) return { is: 'and', all: [] };
    return new ConditionReader(relations, 'where', rows.view).readTree(this.#relation, where);
  }

  /** A list; the same for the same, so that its statements are kept. */
  #shapeOf(name: string, where: RowQuery['where'], sort: string): RowListShape {
    const { relations, rows, lists } = this.#options;
    const key = `${name}${rows.view?.key ?? ''}`;
    const known = lists.get(key);
    if (known !== undefined) return known;
    const guard = { parameter: 'sort', guard: rows.view };
    const order =
      sort === '' ? withKey(this.#relation, []) : readSort(relations, this.#relation, sort, guard);
    const made = { where: this.#conditionOf(where), order, fields: undefined };
    lists.set(key, made, CHARACTER_BYTES * key.length);
    return made;
  }

  async #cursorOf(name: string, { order }: RowListShape, last: RowValues): Promise<string> {
    const { cursors, cursorKey } = this.#options;
    const texts = order.map((term, i) => sortReader(term).text(last[i] ?? null));
    return cursors.write(await cursorKey(), name, texts, texts).next;
  }

  async #placeOf(name: string, { order }: RowListShape, after: string): Promise<RowValues> {
    const { cursors, cursorKey } = this.#options;
    const { next } = cursors.read(await cursorKey(), name, after);
    return order.map((term, i) => sortReader(term).value(next[i] ?? null));
  }

  async #write(write: RowWrite): Promise<Members | undefined> {
    let stored: StoredRow | undefined;
    try {
      const [outcome] = await this.#rows.transactions.write([write]);
      stored = outcome === undefined || outcome.is === 'removed' ? undefined : outcome.row;
    } catch (error) {
      throw this.#refusalOf(error);
    }
    if (stored === undefined) throw new Error('A write returned no row');
    const [isShown] = await this.#rows.shows([stored.values]);
    return isShown === true ? this.#shown(stored.values) : undefined;
  }

  #refusalOf(error: unknown): unknown {
    const refused = refusedWrites(
      error,
      () => this.#relation.name,
      () => ({ call: 0, pointer: '#' }),
    );
    return refused instanceof TogetherError ? refused.cause : refused;
  }

  #shown(values: RowValues): Members {
    return JSON.parse(this.#format.json(values, this.#writer.view?.readable)) as Members;
  }
}

function refuseFaults(faults: readonly RowFault[]): void {
  if (faults.length > 0) throw faultyRows(faultCode(faults), faults);
}
