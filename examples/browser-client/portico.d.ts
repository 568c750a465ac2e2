// Written by "portico types" from the declaration of the relations; do not edit.
export {};

type ColumnTest<T> =
  | T
  | null
  | {
      readonly eq?: T | null;
      readonly ne?: T | null;
      readonly in?: readonly T[];
      readonly lt?: T;
      readonly lte?: T;
      readonly gt?: T;
      readonly gte?: T;
      readonly isNull?: boolean;
    };

type TextTest = ColumnTest<string> | { readonly prefix?: string; readonly contains?: string };

/** A row of notes. */
export interface Note {
  readonly id: number;
  readonly text: string;
  readonly done: boolean;
}

/** A new row of notes. */
export interface NoteCreate {
  readonly text: string;
  readonly done?: boolean;
}

/** A change of a row of notes. */
export interface NotePatch {
  readonly text?: string;
  readonly done?: boolean;
}

/** Conditions on notes. */
export interface NoteWhere {
  readonly id?: ColumnTest<number>;
  readonly text?: TextTest;
  readonly done?: ColumnTest<boolean>;
  readonly and?: readonly NoteWhere[];
  readonly or?: readonly NoteWhere[];
  readonly not?: NoteWhere;
}

export interface NoteRelation {
  readonly row: Note;
  readonly create: NoteCreate;
  readonly nested: NoteCreate;
  readonly put: NoteCreate;
  readonly patch: NotePatch;
  readonly where: NoteWhere;
  readonly key: number;
  readonly embeds: Record<never, never>;
}

/** The relations by name, for portico/client. */
export interface Relations {
  readonly notes: NoteRelation;
}
