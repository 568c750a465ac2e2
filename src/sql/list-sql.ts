import {
  folded,
  type OrderField,
  type SortKeys,
  type TextField,
  type UserFilter,
  type UserPageRequest,
} from '../relations/lists.ts';
import { type Bind, type Bound, type ListDialect, type ListPlan, MAX_MATCHES } from './list-plan.ts';

/** A statement with its values. */
export interface BoundStatement {
  readonly text: string;
  readonly values: readonly Bound[];
  /** Whether it can take long where many users match. */
  readonly isLong: boolean;
}

type Walk = Extract<ListPlan, { readonly kind: 'walk' }>;
type Narrow = Extract<ListPlan, { readonly kind: 'narrow' }>;

/** Which users of a walk are read. */
interface Reach extends Pick<UserPageRequest, 'next' | 'backwards' | 'limit'> {
  /** The order that `next` has the keys of; default that of the walk. */
  readonly whole?: readonly OrderField[];
}

/** Which users a search in texts has to find. */
interface Window {
  readonly limit: number;
  readonly order?: readonly OrderField[];
  readonly next?: SortKeys | undefined;
  readonly backwards?: boolean;
}

/** The last character of Unicode: no text that begins with a prefix is above the prefix and this. */
const LAST_CHARACTER = '\u{10ffff}';
const BOTH: readonly TextField[] = ['name', 'email'];

/** Builds the statements for one selection of users in the words of an engine. */
export class ListSql {
  readonly #dialect: ListDialect;

  constructor(dialect: ListDialect) {
    this.#dialect = dialect;
  }

  /**
   * The users of a page and one more, in the direction of reading: id, name, email, JSON, the state of all. A text that
   * does not order them is null.
   */
  page(plan: ListPlan, request: UserPageRequest): BoundStatement {
    const { fields, limit, backwards, next, order } = request;
    const key = (text: TextField) => (order.some(({ field }) => field === text) ? text : 'NULL');
    const columns = `id, ${key('name')}, ${key('email')}, ${this.#dialect.json(fields)}, ${this.#dialect.state}`;
    if (plan.kind === 'walk') {
      const walk = this.#walk(columns, plan, { next, backwards, limit: limit + 1, whole: order });
      return { ...walk, isLong: walk.isLong || !isOrderOfIndex(plan.order) };
    }
    const { driver, others } = plan;
    return this.#statement(true, (bind) => {
      const found = this.#found(driver, bind);
      const where = others.map((filter) => this.#condition(filter, bind));
      if (next !== undefined) where.push(this.#behind(this.#terms(order, next, backwards), bind));
      const orderBy = this.#orderBy(order, backwards);
      return `SELECT ${columns} FROM ${found} ${allOf(where)} ${orderBy} LIMIT ${bind(limit + 1)} + 0`;
    });
  }

  /** The number of users that the driver of a plan matches, at most one more than `MAX_MATCHES`. */
  matches({ driver }: Narrow): BoundStatement {
    return this.#statement(
      true,
      (bind) => `SELECT count(*) FROM ${this.#found(driver, bind, MAX_MATCHES + 1)}`,
    );
  }

  /** The number of users that all filters match. */
  narrowCount({ driver, others }: Narrow): BoundStatement {
    return this.#statement(true, (bind) => {
      const found = this.#found(driver, bind);
      return `SELECT count(*) FROM ${found} ${allOf(others.map((filter) => this.#condition(filter, bind)))}`;
    });
  }

  /** The `nth` user of a walk behind `next`: id, name, email. */
  step(plan: Walk, next: SortKeys | undefined, nth: number): BoundStatement {
    const walk = this.#walk('id, name, email', plan, { next, backwards: false, limit: nth });
    return { ...walk, text: `${walk.text} OFFSET ${nth - 1}`, isLong: true };
  }

  /** The number of users of a walk behind `next`, at most `limit`. */
  rest(plan: Walk, next: SortKeys | undefined, limit: number): BoundStatement {
    const walk = this.#walk('1', plan, { next, backwards: false, limit });
    return { ...walk, text: `SELECT count(*) FROM (${walk.text}) AS rest`, isLong: true };
  }

  #walk(
    columns: string,
    { filter, order }: Walk,
    { next, backwards, limit, whole = order }: Reach,
  ): BoundStatement {
    const keys =
      next && order.map(({ field }) => next[whole.findIndex((each) => each.field === field)] ?? '');
    const orderBy = this.#orderBy(order, backwards);
    return this.#statement(filter?.match === 'contains', (bind) => {
      const part = (selected: string, behind: readonly string[], equal: number) => {
        const where = [
          ...this.#walked(filter, { limit, order, next: keys, backwards }, equal, bind),
          ...behind,
        ];
        return `SELECT ${selected} FROM users ${allOf(where)} ${orderBy} LIMIT ${bind(limit)} + 0`;
      };
      if (keys === undefined) return part(columns, [], 0);
      const terms = this.#terms(order, keys, backwards);
      if (terms.length === 1) return part(columns, [this.#behind(terms, bind)], 0);
      // One part for each number of fields that are equal: an index finds its beginning, where it would not find that
      // of all parts together.
      const parts = terms.map(({ key, sign, value }, equal) => {
        const same = terms.slice(0, equal).map((before) => `${before.key} = ${bind(before.value)}`);
        return `SELECT * FROM (${part('id, name, email', [...same, `${key} ${sign} ${bind(value)}`], equal)}) AS part`;
      });
      return `SELECT ${columns} FROM (${parts.join(' UNION ALL ')}) AS page ${orderBy} LIMIT ${bind(limit)} + 0`;
    });
  }

  /** The filter of a walk, in a part where the first `equal` fields are those of the user before it. */
  #walked(filter: UserFilter | undefined, window: Window, equal: number, bind: Bind): readonly string[] {
    if (filter === undefined) return [];
    if (filter.match !== 'prefix' || window.next === undefined)
      return [this.#condition(filter, bind, window)];
    if (equal > 0) return [];
    // Of two bounds on the same side the engine might take the one that is further away.
    const [from, to] = this.#prefix(filter, bind);
    const ascends = window.order?.[0]?.descending === window.backwards;
    return [ascends ? to() : from()];
  }

  #prefix({ field, text }: Extract<UserFilter, { readonly match: 'prefix' }>, bind: Bind) {
    const key = this.#dialect.key(field);
    const prefix = folded(text);
    return [() => `${key} >= ${bind(prefix)}`, () => `${key} < ${bind(prefix + LAST_CHARACTER)}`] as const;
  }

  #statement(isLong: boolean, write: (bind: Bind) => string): BoundStatement {
    const values: Bound[] = [];
    const text = write((value) => this.#dialect.placeholder(values.push(value), value));
    return { text, values, isLong };
  }

  #found(driver: UserFilter | undefined, bind: Bind, limit = MAX_MATCHES): string {
    const where = driver === undefined ? [] : [this.#condition(driver, bind, { limit })];
    return `(SELECT id, name, email FROM users ${allOf(where)} LIMIT ${limit}) AS found`;
  }

  /** `window` is given for a filter whose index finds the users. */
  #condition(filter: UserFilter, bind: Bind, window?: Window): string {
    if (filter.match === 'contains') {
      const fields = filter.field === 'any' ? BOTH : [filter.field];
      const text = folded(filter.text);
      if (window === undefined) return this.#dialect.contains(fields, text, bind);
      const { order, next, backwards = false, limit } = window;
      const bounds = () => {
        const behind = order && next ? ` AND ${this.#behind(this.#terms(order, next, backwards), bind)}` : '';
        return `${behind} ${order ? this.#orderBy(order, backwards) : ''} LIMIT ${bind(limit)} + 0`;
      };
      return this.#dialect.containing(fields, text, bind, bounds);
    }
    if (filter.match === 'prefix') {
      return this.#prefix(filter, bind)
        .map((bound) => bound())
        .join(' AND ');
    }
    const key = this.#dialect.key(filter.field);
    const values = filter.values.map((value) => (typeof value === 'string' ? folded(value) : value));
    const [only] = values;
    if (values.length === 1 && only !== undefined) return `${key} = ${bind(only)}`;
    return this.#dialect.isOneOf(key, values, bind);
  }

  #orderBy(order: readonly OrderField[], backwards: boolean): string {
    const terms = order.map(
      ({ field, descending }) => `${this.#dialect.key(field)} ${descending === backwards ? 'ASC' : 'DESC'}`,
    );
    return `ORDER BY ${terms.join(', ')}`;
  }

  #terms(order: readonly OrderField[], keys: SortKeys, backwards: boolean): readonly Term[] {
    return order.map(({ field, descending }, i) => ({
      key: this.#dialect.key(field),
      sign: descending === backwards ? '>' : '<',
      value: keys[i] ?? '',
    }));
  }

  /** The users behind those with the values of the terms. */
  #behind(terms: readonly Term[], bind: Bind): string {
    const cases = terms.map(({ key, sign, value }, i) => {
      const equal = terms.slice(0, i).map((before) => `${before.key} = ${bind(before.value)}`);
      return [...equal, `${key} ${sign} ${bind(value)}`].join(' AND ');
    });
    return cases.length === 1 ? String(cases[0]) : `(${cases.join(' OR ')})`;
  }
}

/** Whether an index has the users in this order; otherwise those that are equal in the first field are sorted. */
function isOrderOfIndex([first, ...others]: readonly OrderField[]): boolean {
  return others.every(({ field, descending }) => field === 'id' && descending === first?.descending);
}

/** One field of an order with the value that users are compared with. */
interface Term {
  readonly key: string;
  readonly sign: '<' | '>';
  readonly value: string | number;
}

function allOf(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
}

/** The columns of a row of users. */
const COLUMN = { id: 0, name: 1, email: 2 } as const;

/** The values of an order in one user, whose row begins with id, name and email. */
export function sortKeys(row: readonly unknown[], order: readonly OrderField[]): SortKeys {
  return order.map(({ field }) => {
    const value = row[COLUMN[field]];
    return field === 'id' ? Number(value) : folded(String(value));
  });
}
