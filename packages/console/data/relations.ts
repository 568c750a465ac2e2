import { ApiError, type Fault, send } from './api.ts';
import { linkTo } from './route.ts';

/** A column of a relation. */
export interface Field {
  readonly name: string;
  readonly kind: string;
  readonly nullable: boolean;
  /** The values of an enum. */
  readonly values?: readonly string[];
  readonly max?: string;
  /** What a new row has that does not say it, as text. */
  readonly default: string | null;
  /** Whether the service gives a new row its value. */
  readonly isAssigned: boolean;
  /** Whether the engine computes it. */
  readonly isComputed: boolean;
}

export interface Reference {
  readonly name: string;
  readonly to: string;
  readonly columns: readonly string[];
  readonly targetColumns: readonly string[];
}

export interface Relation {
  readonly name: string;
  readonly one: string;
  readonly key: readonly string[];
  readonly columns: readonly Field[];
  readonly references: readonly Reference[];
  /** Rows of other relations that refer to a row of this one: their columns, and those here. */
  readonly inverses: readonly {
    readonly name: string;
    readonly relation: string;
    readonly there: readonly string[];
    readonly here: readonly string[];
  }[];
  readonly isWritable: boolean;
  readonly isFollowed: boolean;
  readonly isRuled: boolean;
}

export type Row = Readonly<Record<string, unknown>>;

/** The service has refused a request for rows. */
export class RowsError extends ApiError {
  readonly code: string;

  constructor(status: number, { code = '', detail, title, message, errors = [] }: Problem) {
    super(status, detail ?? message ?? title ?? `The service answered with ${status}`, errors);
    this.code = code;
  }
}

interface Problem {
  readonly code?: string;
  readonly detail?: string;
  readonly title?: string;
  readonly message?: string;
  readonly errors?: readonly Fault[];
}

/** Sends a request below /rows. Throws ApiError, and RowsError for a refusal. */
export async function askRows(path: string, init: RequestInit = {}): Promise<Response> {
  const isWrite = init.method !== undefined;
  const headers = { ...(isWrite && { 'x-portico-console': '1' }), ...init.headers };
  const response = await send(`rows/${path}`, { ...init, headers });
  if (response.ok) return response;
  throw new RowsError(response.status, problemIn(await response.text()));
}

function problemIn(text: string): Problem {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** A page of rows, and the cursors of its neighbours. */
export interface RowPage {
  readonly rows: readonly Row[];
  readonly next: string | undefined;
  readonly prev: string | undefined;
}

export async function readPage(path: string, signal: AbortSignal): Promise<RowPage> {
  const response = await askRows(path, { signal });
  const cursorOf = (rel: string) => {
    const [, address] =
      new RegExp(`<([^>]*)>; *rel="?${rel}\\b`).exec(response.headers.get('link') ?? '') ?? [];
    return address && (new URL(address, location.href).searchParams.get('cursor') ?? undefined);
  };
  return { rows: await response.json(), next: cursorOf('next'), prev: cursorOf('prev') };
}

/** The number of rows that a list has; undefined if there are too many to count. */
export async function readCount(path: string, signal: AbortSignal): Promise<number | undefined> {
  try {
    const response = await askRows(path, { signal, headers: { prefer: 'count=exact' } });
    await response.text();
    return Number(response.headers.get('x-total-count') ?? Number.NaN);
  } catch (error) {
    if (error instanceof RowsError) return undefined;
    throw error;
  }
}

/** The columns that name a row for people: its name or title, its first and last name, or its first text. */
export function labelsOf({ columns, key }: Relation): readonly string[] {
  const texts = columns.filter(({ kind, name }) => kind === 'text' && !key.includes(name));
  const named = (pattern: RegExp) => texts.find(({ name }) => pattern.test(name))?.name;
  const [first, last] = [named(/^first_?name$/i), named(/^last_?name$/i)];
  if (first !== undefined && last !== undefined) return [first, last];
  const found = named(/^(?:name|title|label)$/i) ?? named(/(?:name|title|label)$/i) ?? texts[0]?.name;
  return found === undefined ? [] : [found];
}

/** The label of a row; empty if it has none. */
export function labelOf(relation: Relation, row: Row): string {
  return labelsOf(relation)
    .flatMap((name) => (row[name] === null || row[name] === undefined ? [] : [String(row[name])]))
    .join(' ');
}

/** The key of a row as it stands in paths. */
export function keyOf({ key }: Pick<Relation, 'key'>, row: Row): string {
  return key.map((name) => encodeURIComponent(textOf(row[name]))).join();
}

/** A value of a row as text: as people read it, and as fields of forms have it. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

export function rowLink(relation: string, key = '', query: Readonly<Record<string, string>> = {}): string {
  return linkTo('relations', key === '' ? relation : `${relation}/${key}`, query);
}

/** Whether lists sort by a column. */
export const isSorted = ({ kind }: Field) => kind !== 'json' && kind !== 'bytes';
