import type { BeforeHooks } from '../../relations/hooks/hooks.ts';

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Who may do something: `'anyone'`, `'nobody'`, callers with a scope, on rows that meet conditions, or any of these. */
export type RuleData = GrantData | readonly GrantData[];

type GrantData = 'anyone' | 'nobody' | ScopeData | WhereData;

type ScopeData = { readonly scope: string };

type WhereData = { readonly where: Readonly<Record<string, unknown>> };

type ClaimData = { readonly caller: string };

/** Callers with a scope. */
export function scope(name: string): ScopeData {
  return { scope: name };
}

/** Rows that meet a tree of conditions, such as `where({ author: { name: caller('/name') } })`. */
export function where(tree: WhereData['where']): WhereData {
  return { where: tree };
}

/** The claim of a caller at a JSON pointer, such as `/sub`. */
export function caller(pointer: string): ClaimData {
  return { caller: pointer };
}

/** The options of most columns; a column is required unless it is nullable or has a default. */
interface ColumnOptions<T> {
  readonly nullable?: boolean;
  readonly default?: T;
  /** Whether no two rows have the same value. */
  readonly unique?: boolean;
  /** The former name of the column, once it is renamed. */
  readonly was?: string;
  /** Who may see the column: `'anyone'`, `'nobody'` or scopes. Default: those who may read the row. */
  readonly read?: RuleData;
  /** Who may write it: `'anyone'`, `'nobody'` or scopes. Default: those who may write the row. */
  readonly write?: RuleData;
  /** Whether no client writes it. */
  readonly readonly?: boolean;
  /** Whether clients write it in new rows only. */
  readonly immutable?: boolean;
  /** The claim of its creator that a new row has; no client writes it. */
  readonly set?: ClaimData;
  /**
   * Of an existing table: whether the database computes the column, so that no client writes it, or gives it a value if a
   * new row has none.
   */
  readonly generated?: 'always' | 'by default';
}

interface Bounds<T> {
  readonly min?: T;
  readonly max?: T;
}

/** The options of each type of columns, as a module or a JSON file writes them beside `type`. */
interface OptionsByType {
  /** Numbers the rows, and uses no number again. `open` also takes a given number. */
  readonly serial: { readonly open?: boolean; readonly was?: string };
  /** A whole number that every double holds, |n| < 2^53. */
  readonly integer: ColumnOptions<number> & Bounds<number>;
  /** A whole number of 64 bits; a text in JSON. */
  readonly bigint: ColumnOptions<string> & Bounds<string>;
  /** An exact number of at most 18 digits, `scale` of them after the point; a text in JSON. */
  readonly decimal: ColumnOptions<string> &
    Bounds<string> & { readonly precision: number; readonly scale: number };
  /** A double. */
  readonly number: ColumnOptions<number> & Bounds<number>;
  readonly boolean: ColumnOptions<boolean>;
  /** `max` counts characters, by default 65,536. `fold` compares A to Z in either case. */
  readonly text: ColumnOptions<string> & { readonly max?: number; readonly fold?: boolean };
  readonly date: ColumnOptions<string>;
  /** A time in UTC with milliseconds. */
  readonly timestamp: ColumnOptions<string>;
  /** Default `'v7'` as the only column of a key. */
  readonly uuid: ColumnOptions<string>;
  readonly enum: ColumnOptions<string> & { readonly values: readonly string[] };
  /** `maxBytes` counts the compact text in UTF-8, by default 65,536. No filter or order takes it. */
  readonly json: ColumnOptions<Json> & { readonly maxBytes?: number };
  /** Base64 in JSON; `max` counts bytes, by default 1 MiB. */
  readonly bytes: ColumnOptions<string> & { readonly max?: number };
  /**
   * The key of a row of another relation. `author` is the column `author_id`; `columns` names others, one for
   * each column of the key. The other relation finds these rows by `inverse`, by default the name of theirs.
   */
  readonly reference: ColumnOptions<string | number> & {
    readonly to: string;
    readonly columns?: readonly string[];
    readonly inverse?: string;
    readonly onDelete?: 'restrict' | 'cascade' | 'null';
  };
}

type Type = keyof OptionsByType;

/** A column as data. */
export type ColumnData = { [T in Type]: { readonly type: T } & OptionsByType[T] }[Type];

/** A relation as data. */
export interface RelationData {
  /** The singular of the name. */
  readonly one?: string;
  /** Default: the name. */
  readonly table?: string;
  /** Whether another program has made the table; Portico changes its rows only. Default: false. */
  readonly existing?: boolean;
  /** The schema of an existing table on PostgreSQL. Default: the current one. */
  readonly schema?: string;
  /** The former name of the table, once it is renamed. */
  readonly was?: string;
  readonly columns: Readonly<Record<string, ColumnData>>;
  /** Default: `id`, which is a serial unless it is declared. */
  readonly key?: readonly string[];
  readonly unique?: readonly (readonly string[])[];
  readonly indexes?: readonly (readonly string[])[];
  /**
   * Rows of other relations by a name, connected by rows of the relation `through`. `from` and `to` are its references to
   * this and to the other relation; they are needed if it has more than two.
   */
  readonly many?: Readonly<
    Record<string, { readonly through: string; readonly from?: string; readonly to?: string }>
  >;
  /** Columns that the database computes from others of the row, by name. No client writes them. */
  readonly computed?: Readonly<Record<string, ExpressionData>>;
  /** Functions that run before writes to the rows; in a module only. */
  readonly before?: BeforeHooks;
  /** Whether changes are recorded. Default: true. */
  readonly changes?: boolean;
  /** Who may do what; an operation without a rule is refused. Default: scopes say who may read and write. */
  readonly rules?: {
    readonly read?: RuleData;
    readonly create?: RuleData;
    readonly update?: RuleData;
    readonly delete?: RuleData;
  };
}

/** A column, a constant or an expression. A text that could be a name is that of a column; `{ value }` is a constant. */
export type PartData = string | number | { readonly value: string | number } | ExpressionData;

/** An expression over the columns of a row. */
export type ExpressionData =
  | { readonly concat: readonly PartData[] }
  | { readonly coalesce: readonly PartData[] }
  | { readonly add: readonly PartData[] }
  | { readonly subtract: readonly PartData[] }
  | { readonly multiply: readonly PartData[] }
  | { readonly lower: PartData }
  | { readonly upper: PartData }
  | { readonly length: PartData };

/** Texts, one behind the other; null if one of them is. */
export function concat<const P extends readonly PartData[]>(...parts: P): { readonly concat: P } {
  return { concat: parts };
}
/** The first part that is not null. */
export function coalesce<const P extends readonly PartData[]>(...parts: P): { readonly coalesce: P } {
  return { coalesce: parts };
}
export function add<const P extends readonly PartData[]>(...parts: P): { readonly add: P } {
  return { add: parts };
}
/** The first part less the others. */
export function subtract<const P extends readonly PartData[]>(...parts: P): { readonly subtract: P } {
  return { subtract: parts };
}
export function multiply<const P extends readonly PartData[]>(...parts: P): { readonly multiply: P } {
  return { multiply: parts };
}
/** A text with A to Z in lower case. */
export function lower<const P extends PartData>(part: P): { readonly lower: P } {
  return { lower: part };
}
/** A text with a to z in upper case. */
export function upper<const P extends PartData>(part: P): { readonly upper: P } {
  return { upper: part };
}
/** The number of characters of a text. */
export function length<const P extends PartData>(part: P): { readonly length: P } {
  return { length: part };
}

/** Relations by name. */
export type RelationsData = Readonly<Record<string, RelationData>>;

/** The options, with an error at each unknown one. */
type Known<O, All> = O & { readonly [K in Exclude<keyof O, keyof All>]: never };

type Built<T extends Type, O> = { readonly type: T } & O;

/** A builder makes the data of a column; its only work is the type. */
function builder<T extends Exclude<Type, 'decimal' | 'enum' | 'reference'>>(type: T) {
  return <const O extends OptionsByType[T] = object>(options?: Known<O, OptionsByType[T]>): Built<T, O> => ({
    type,
    ...(options as O),
  });
}

export const serial = builder('serial');
export const integer = builder('integer');
export const bigint = builder('bigint');
export const number = builder('number');
export const boolean = builder('boolean');
export const text = builder('text');
export const date = builder('date');
export const timestamp = builder('timestamp');
export const uuid = builder('uuid');
export const json = builder('json');
export const bytes = builder('bytes');

/** The options besides those that a builder takes as parameters. */
type Rest<T extends Type, K extends string> = Omit<OptionsByType[T], K>;

export function decimal<const P extends number, const S extends number, const O extends DecimalRest = object>(
  precision: P,
  scale: S,
  options?: Known<O, DecimalRest>,
): Built<'decimal', O & { readonly precision: P; readonly scale: S }> {
  return { type: 'decimal', precision, scale, ...(options as O) };
}
type DecimalRest = Rest<'decimal', 'precision' | 'scale'>;

/** One of several texts. The type is `enum`, a reserved word. */
export function oneOf<const V extends readonly string[], const O extends EnumRest = object>(
  values: V,
  options?: Known<O, EnumRest>,
): Built<'enum', O & { readonly values: V }> {
  return { type: 'enum', values, ...(options as O) };
}
type EnumRest = Rest<'enum', 'values'>;

export function reference<const To extends string, const O extends ReferenceRest = object>(
  to: To,
  options?: Known<O, ReferenceRest>,
): Built<'reference', O & { readonly to: To }> {
  return { type: 'reference', to, ...(options as O) };
}
type ReferenceRest = Rest<'reference', 'to'>;

/** A configuration with relations. */
interface Declared {
  readonly relations: RelationsData;
}

/** The columns that users have without being declared. */
interface UsersData {
  readonly columns: {
    readonly id: { readonly type: 'serial' };
    readonly name: { readonly type: 'text' };
    readonly email: { readonly type: 'text' };
  };
}

/** The relations of a configuration, with that of users. */
type All<C extends Declared> = C['relations'] & { readonly users: UsersData };

type Columns<R extends RelationsData, N extends keyof R> = R[N]['columns'];

/** The names of the columns of a key. */
type Key<R extends RelationsData, N extends keyof R> = R[N] extends {
  readonly key: infer K extends readonly string[];
}
  ? K
  : readonly ['id'];

/** The names of a reference's columns, in the order of the target's key. */
type ReferenceColumns<Name extends string, C> = C extends {
  readonly columns: infer All extends readonly string[];
}
  ? All
  : readonly [`${Name}_id`];

/** The columns that references make, each with the reference. */
type ReferenceFields<R extends RelationsData, N extends keyof R> = {
  [K in keyof Columns<R, N> & string as Columns<R, N>[K] extends { readonly type: 'reference' }
    ? Exclude<ReferenceColumns<K, Columns<R, N>[K]>[number], keyof Columns<R, N>>
    : never]: Columns<R, N>[K];
};

type PlainFields<R extends RelationsData, N extends keyof R> = {
  [K in keyof Columns<R, N> as Columns<R, N>[K] extends { readonly type: 'reference' } ? never : K]: Columns<
    R,
    N
  >[K];
};

type Implicit<R extends RelationsData, N extends keyof R> = R[N] extends { readonly key: readonly string[] }
  ? unknown
  : 'id' extends keyof Columns<R, N>
    ? unknown
    : { readonly id: { readonly type: 'serial' } };

/** All columns of a row by name, each with its data or that of the reference that makes it. */
type Fields<R extends RelationsData, N extends keyof R> = PlainFields<R, N> &
  ReferenceFields<R, N> &
  Implicit<R, N>;

type Nullable<C, T> = C extends { readonly nullable: true } ? T | null : T;

/** The value of a column in JSON; `At` is the place of a reference's column in the target's key. */
type ValueOf<R extends RelationsData, C, Name extends string> = C extends {
  readonly type: 'serial' | 'integer' | 'number';
}
  ? number
  : C extends { readonly type: 'boolean' }
    ? boolean
    : C extends { readonly type: 'enum'; readonly values: infer V extends readonly string[] }
      ? V[number]
      : C extends { readonly type: 'json' }
        ? Json
        : C extends { readonly type: 'reference'; readonly to: infer To extends keyof R }
          ? KeyValue<R, To, PlaceOf<C, Name>>
          : string;

/** The place of a column among those of its reference, as the name of an array's index. */
type PlaceOf<C, Name extends string> = C extends { readonly columns: infer All extends readonly string[] }
  ? { [I in keyof All]: All[I] extends Name ? I : never }[number]
  : '0';

type KeyValue<R extends RelationsData, N extends keyof R, At> = At extends keyof Key<R, N>
  ? Key<R, N>[At] extends infer Name extends string
    ? Name extends keyof Fields<R, N>
      ? ValueOf<R, Fields<R, N>[Name], Name>
      : string | number
    : never
  : never;

/** The parts of an expression. */
type PartsOf<E> = E extends { readonly [K in keyof E]: infer P }
  ? P extends readonly unknown[]
    ? P[number]
    : P
  : never;

/** What an expression is in JSON: a number or a text. */
type ResultOf<R extends RelationsData, N extends keyof R, E> = E extends keyof Fields<R, N> & string
  ? ValueOf<R, Fields<R, N>[E], E> extends number
    ? number
    : string
  : E extends number | { readonly value: number } | { readonly length: unknown }
    ? number
    : E extends
          | string
          | { readonly value: string }
          | { readonly concat: unknown }
          | { readonly lower: unknown }
          | { readonly upper: unknown }
      ? string
      : string extends ResultOf<R, N, PartsOf<E>>
        ? string
        : number;

/** Whether an expression may be null. */
type MayBeNull<R extends RelationsData, N extends keyof R, E> = E extends keyof Fields<R, N>
  ? Fields<R, N>[E] extends { readonly nullable: true }
    ? true
    : false
  : E extends string | number | { readonly value: unknown }
    ? false
    : E extends { readonly coalesce: unknown }
      ? false extends MayBeNull<R, N, PartsOf<E>>
        ? false
        : true
      : true extends MayBeNull<R, N, PartsOf<E>>
        ? true
        : false;

/** The computed columns of a row. */
type ComputedOf<R extends RelationsData, N extends keyof R> = R[N] extends {
  readonly computed: infer E extends object;
}
  ? {
      readonly [K in keyof E]: MayBeNull<R, N, E[K]> extends true
        ? ResultOf<R, N, E[K]> | null
        : ResultOf<R, N, E[K]>;
    }
  : unknown;

type Flat<T> = { [K in keyof T]: T[K] };

type RowOf<R extends RelationsData, N extends keyof R> = {
  readonly [K in keyof Fields<R, N>]: Nullable<Fields<R, N>[K], ValueOf<R, Fields<R, N>[K], K & string>>;
};

/** Whether a column may be left out of a new row. */
type IsOptional<C, K, OnlyKey> = C extends { readonly type: 'serial' } | { readonly nullable: true }
  ? true
  : C extends { readonly default: unknown }
    ? true
    : C extends { readonly type: 'uuid' }
      ? OnlyKey extends readonly [K]
        ? true
        : false
      : false;

/** The columns that Portico alone gives a value. */
type Given<C> = C extends { readonly type: 'serial' }
  ? C extends { readonly open: true }
    ? false
    : true
  : C extends { readonly set: object } | { readonly readonly: true }
    ? true
    : false;

/** A row of a relation as clients get it: `Row<typeof config, 'books'>`. */
export type Row<C extends Declared, N extends keyof All<C>> = Flat<RowOf<All<C>, N> & ComputedOf<All<C>, N>>;

/** A row as clients write it; nullable columns and those with a default may be absent. */
export type NewRow<C extends Declared, N extends keyof All<C>> = Flat<
  {
    readonly [K in keyof Fields<All<C>, N> as Given<Fields<All<C>, N>[K]> extends true
      ? never
      : IsOptional<Fields<All<C>, N>[K], K, Key<All<C>, N>> extends true
        ? never
        : K]: Row<C, N>[K & keyof Row<C, N>];
  } & {
    readonly [K in keyof Fields<All<C>, N> as Given<Fields<All<C>, N>[K]> extends true
      ? never
      : IsOptional<Fields<All<C>, N>[K], K, Key<All<C>, N>> extends true
        ? K
        : never]?: Row<C, N>[K & keyof Row<C, N>];
  }
>;

/** The key of a row: a value, or an object with the columns of a key of several. A number may be a text, as an ID is. */
export type KeyOf<C extends Declared, N extends keyof All<C>> =
  Key<All<C>, N> extends readonly [infer K extends keyof Row<C, N>]
    ? Row<C, N>[K] | string
    : Flat<Pick<Row<C, N>, Key<All<C>, N>[number] & keyof Row<C, N>>>;

/** A change of some columns of a row. */
export type Patch<C extends Declared, N extends keyof All<C>> = Partial<NewRow<C, N>>;
