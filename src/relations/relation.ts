import type { BeforeHooks } from './hooks/hooks.ts';

/** What a text of users has to be: not blank, with UTF-16 code units for characters, and perhaps an address. */
export type TextForm = 'filled' | 'address';

/** A type of columns with its bounds. The declaration's defaults are filled in. */
export type ColumnType = KindOfColumn & {
  /** How the table of another program stores the values; undefined if they are stored as Portico does. */
  readonly stored?: string;
};

type KindOfColumn =
  /** A number of the row, never used again. `open` also takes a given number. */
  | { readonly kind: 'serial'; readonly open: boolean }
  | { readonly kind: 'integer'; readonly min?: number; readonly max?: number }
  | { readonly kind: 'bigint'; readonly min?: bigint; readonly max?: bigint }
  | {
      readonly kind: 'decimal';
      readonly precision: number;
      readonly scale: number;
      readonly min?: string;
      readonly max?: string;
    }
  | { readonly kind: 'number'; readonly min?: number; readonly max?: number }
  | { readonly kind: 'boolean' }
  /** `max` counts code points. `fold` compares A to Z in either case. `form` is that of new values. */
  | { readonly kind: 'text'; readonly max: number; readonly fold: boolean; readonly form?: TextForm }
  | { readonly kind: 'date' }
  | { readonly kind: 'timestamp' }
  | { readonly kind: 'uuid' }
  | { readonly kind: 'enum'; readonly values: readonly string[] }
  | { readonly kind: 'json'; readonly maxBytes: number }
  | { readonly kind: 'bytes'; readonly max: number };

/**
 * A value of a column. Of a `decimal` it is a text with exactly `scale` digits behind the point, of a
 * `timestamp` milliseconds since the epoch, of a `json` its text, of the other types what the name says.
 */
export type Value = null | boolean | number | bigint | string | Uint8Array;

/** What a column contains if the row does not say it. */
export type Default =
  | { readonly kind: 'value'; readonly value: Value }
  | { readonly kind: 'now' | 'v4' | 'v7' | 'caller' }
  /** The table of another program has a default that only the database knows. */
  | { readonly kind: 'database' };

/** The functions of computed columns. */
export type ExpressionFunction =
  | 'concat'
  | 'lower'
  | 'upper'
  | 'length'
  | 'add'
  | 'subtract'
  | 'multiply'
  | 'coalesce';

/** An expression over the columns of one row. Each part has a type whose values it cannot leave. */
export type Expression =
  | { readonly is: 'column'; readonly name: string; readonly type: ColumnType; readonly nullable: boolean }
  | { readonly is: 'constant'; readonly value: number | string; readonly type: ColumnType }
  | { readonly is: ExpressionFunction; readonly of: readonly Expression[]; readonly type: ColumnType };

/** Who may do something: the callers that one of the grants names. Without a grant every caller is refused. */
export type Rule = readonly Grant[];

export type Grant =
  | 'anyone'
  /** Callers with a scope. */
  | { readonly scope: string }
  /** For rows that meet a tree of conditions, in which `{ caller: '/sub' }` stands for a claim of the caller. */
  | { readonly where: Readonly<Record<string, unknown>> };

/** What may be done with the rows of a relation. */
export const OPERATIONS = ['read', 'create', 'update', 'delete'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** The rules of a relation. */
export type RelationRules = Readonly<Record<Operation, Rule>>;

/** Who may read and write a column, in rows that they may read and write. */
export interface ColumnRules {
  /** Without conditions on the row; undefined for everyone. */
  readonly read: Rule | undefined;
  readonly write: Rule | undefined;
  /** When clients may write it: in new rows only, or never. */
  readonly fixed: 'immutable' | 'readonly' | undefined;
  /** The claim that a new row gets, as a JSON pointer. Clients never write the column. */
  readonly set: string | undefined;
}

export interface Column {
  /** As declared; of the reference `author` it is `author_id`. */
  readonly name: string;
  readonly type: ColumnType;
  readonly nullable: boolean;
  readonly default: Default | undefined;
  /** The name that the column had before it was renamed. */
  readonly was: string | undefined;
  readonly rules?: ColumnRules | undefined;
  /** Given if the engine computes the value from other columns of the row; no client writes it then. */
  readonly computed?: Expression | undefined;
  /** Whether the table of another program computes it, so that no client writes it. */
  readonly isGenerated?: boolean;
}

/** The particulars of a table that another program has made. */
interface Existing {
  /** The schema of PostgreSQL; undefined for the current one. */
  readonly schema: string | undefined;
  /** Whether it is a view, whose rows are only read. */
  readonly isView: boolean;
  /** Whether the version of a row is a digest of its values; else it is what the engine knows of the row. */
  readonly hasDigest: boolean;
  /** The constraints of the database by name, each with the columns that it is about. */
  readonly constraints: ReadonlyMap<string, readonly string[]>;
}

/** Columns whose values are the key of a row of another relation. */
export interface Reference {
  readonly name: string;
  readonly to: string;
  readonly columns: readonly string[];
  readonly targetColumns: readonly string[];
  /** The name by which the target finds the rows that refer to it. */
  readonly inverse: string;
  readonly onDelete: 'restrict' | 'cascade' | 'null';
}

/**
 * Rows of another relation, each connected with a row of this one by rows of a third relation, `through`, which refer to
 * both.
 */
export interface Many {
  readonly name: string;
  readonly through: string;
  /** The references of `through`: to this relation, and to the other one. */
  readonly reference: string;
  readonly other: string;
}

/**
 * The relation of users. It has the tables and the paths of the contract, so that what serves or creates
 * relations leaves it out, and others refer to it as to any.
 */
export const USERS = 'users';

/** The columns of users that every installation has. */
export const USER_COLUMNS: readonly string[] = ['id', 'name', 'email'];

/** A relation of the declaration, with all defaults filled in and everything checked. */
export interface Relation {
  readonly name: string;
  /** The singular of the name. */
  readonly one: string;
  readonly table: string;
  /** The name that the table had before it was renamed. */
  readonly was: string | undefined;
  readonly columns: readonly Column[];
  /** The columns of the primary key, in order. */
  readonly key: readonly string[];
  readonly unique: readonly (readonly string[])[];
  readonly indexes: readonly (readonly string[])[];
  readonly references: readonly Reference[];
  /** The references of other relations to this one. */
  readonly inverses: readonly {
    readonly name: string;
    readonly relation: string;
    readonly reference: string;
  }[];
  readonly many: readonly Many[];
  /** Whether changes are recorded. */
  readonly changes: boolean;
  /** The columns of a row that a request without `fields` gets; undefined for all. */
  readonly shown?: readonly string[] | undefined;
  /** Undefined if scopes alone say who may read and write. */
  readonly rules?: RelationRules | undefined;
  /** Functions that run before writes to its rows. */
  readonly before?: BeforeHooks | undefined;
  /** Given if its table is that of another program, on which no statement of Portico changes anything but rows. */
  readonly existing?: Existing | undefined;
}

/** Whether the engine computes a column, so that no client writes it. */
export function isComputed({ computed, isGenerated }: Pick<Column, 'computed' | 'isGenerated'>): boolean {
  return computed !== undefined || isGenerated === true;
}

/** Whether rules say who may do what with the rows of a relation, or with one of its columns. */
export function hasRules({ rules, columns }: Relation): boolean {
  return rules !== undefined || columns.some((column) => column.rules !== undefined);
}

/** Whether a declaration has relations besides that of users. */
export function servesRelations(relations: readonly Pick<Relation, 'name'>[]): boolean {
  return relations.some(({ name }) => name !== USERS);
}
