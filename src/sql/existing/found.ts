/** A column of a table as the catalogue of its database has it. */
export interface FoundColumn {
  readonly name: string;
  /** The type in the words of the database: `character varying(160)`. */
  readonly type: string;
  /** The values of a type of PostgreSQL that is an enumeration, and the quoted name of that type. */
  readonly labels?: { readonly type: string; readonly values: readonly string[] } | undefined;
  /** How texts are compared: by bytes, without the case of A to Z, or by the rules of a language. */
  readonly collation: 'bytes' | 'fold' | 'language';
  readonly nullable: boolean;
  /** The expression of its default. */
  readonly default: string | undefined;
  /** Whether the database computes its values from others of the row. */
  readonly isGenerated: boolean;
  /** Who numbers the rows: the database alone, or the database unless a row gives its number. */
  readonly numbered: 'always' | 'by default' | undefined;
}

export interface FoundReference {
  readonly name: string | undefined;
  readonly columns: readonly string[];
  readonly table: string;
  /** The schema of the table; undefined if it is the same. */
  readonly schema: string | undefined;
  readonly targetColumns: readonly string[];
  readonly onDelete: 'restrict' | 'cascade' | 'null';
}

export interface FoundIndex {
  readonly name: string;
  readonly columns: readonly string[];
  readonly isUnique: boolean;
  /** Whether it has all rows, by the values of these columns alone and in their order. */
  readonly isPlain: boolean;
  /** The columns whose texts it has without the case of A to Z, as the indexes of Portico have them. */
  readonly folded: readonly string[];
}

/** A condition on rows, in the words of the database. */
export interface FoundCheck {
  readonly name: string | undefined;
  readonly expression: string;
  readonly columns: readonly string[];
}

/** A table or a view as the catalogue of its database has it. */
export interface FoundTable {
  readonly name: string;
  readonly isView: boolean;
  /** Whether its rows have no version that the engine knows. */
  readonly hasDigest: boolean;
  readonly columns: readonly FoundColumn[];
  readonly key: readonly string[];
  readonly indexes: readonly FoundIndex[];
  readonly references: readonly FoundReference[];
  readonly checks: readonly FoundCheck[];
  /** Whether it records changes for Portico. */
  readonly isRecorded: boolean;
}
