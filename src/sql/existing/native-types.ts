import type { ColumnData } from '../../config/schema/declaration.ts';
import type { ColumnType } from '../../relations/relation.ts';
import type { Engine } from '../schema/tables.ts';
import type { FoundColumn } from './found.ts';

/** The parts of a type in the words of PostgreSQL: `numeric(10,2)`. */
const PARTS = /^([a-z ]+?)(?:\((\d+)(?:,(-?\d+))?\))?( with(?:out)? time zone)?(\[\])*$/;

/** The most digits of a decimal that Portico serves, and those that a double keeps. */
const MAX_PRECISION = { postgres: 18, sqlite: 15 } as const;
/** The longest text that a declaration has. */
const MAX_TEXT = 65_536;

interface NativeType {
  /** The type without its size. */
  readonly base: string;
  readonly size: number | undefined;
  readonly scale: number | undefined;
}

function partsOf(type: string): NativeType {
  const [, base = type, size, scale, zone = '', array] = PARTS.exec(type.toLowerCase()) ?? [];
  return {
    base: `${base}${zone}${array ?? ''}`,
    size: size === undefined ? undefined : Number(size),
    scale: scale === undefined ? undefined : Number(scale),
  };
}

type Affinity = 'integer' | 'text' | 'bytes' | 'real' | 'numeric';

/** By the rules of sqlite.org/datatype3.html. */
function affinityOf(type: string): Affinity {
  const upper = type.toUpperCase();
  if (upper.includes('INT')) return 'integer';
  if (/CHAR|CLOB|TEXT/.test(upper)) return 'text';
  if (upper === '' || upper.includes('BLOB')) return 'bytes';
  return /REAL|FLOA|DOUB/.test(upper) ? 'real' : 'numeric';
}

const decimal = ({ size, scale = 0 }: NativeType, engine: Engine): ColumnData | undefined =>
  size !== undefined && size <= MAX_PRECISION[engine] && scale >= 0 && scale <= size
    ? { type: 'decimal', precision: size, scale }
    : undefined;

const text = ({ size }: NativeType, column: FoundColumn): ColumnData => ({
  type: 'text',
  ...(size !== undefined && size <= MAX_TEXT && { max: size }),
  ...(column.collation === 'fold' && { fold: true }),
});

/** The column of a declaration for a type of the database; undefined if there is none. */
export function declaredAs(engine: Engine, column: FoundColumn): ColumnData | undefined {
  const parts = partsOf(column.type);
  if (engine === 'sqlite') return sqliteData(parts, column);
  const { labels } = column;
  if (labels !== undefined)
    return labels.values.length === 0 ? undefined : { type: 'enum', values: labels.values };
  switch (parts.base) {
    case 'smallint':
    case 'integer':
      return { type: 'integer' };
    case 'bigint':
      return { type: 'bigint' };
    case 'numeric':
      return decimal(parts, engine);
    case 'real':
    case 'double precision':
      return { type: 'number' };
    case 'boolean':
    case 'date':
    case 'uuid':
      return { type: parts.base };
    case 'text':
    case 'character varying':
    case 'character':
      return text(parts, column);
    case 'timestamp with time zone':
    case 'timestamp without time zone':
      return { type: 'timestamp' };
    case 'json':
    case 'jsonb':
      return { type: 'json' };
    case 'bytea':
      return { type: 'bytes' };
    default:
      return undefined;
  }
}

function sqliteData(parts: NativeType, column: FoundColumn): ColumnData | undefined {
  switch (parts.base) {
    case 'boolean':
    case 'bool':
      return { type: 'boolean' };
    case 'date':
      return { type: 'date' };
    case 'datetime':
    case 'timestamp':
      return { type: 'timestamp' };
    case 'uuid':
    case 'json':
      return { type: parts.base };
    case 'bigint':
    case 'int8':
      return { type: 'bigint' };
    default:
  }
  switch (affinityOf(column.type)) {
    case 'integer':
      return { type: 'integer' };
    case 'real':
      return { type: 'number' };
    case 'text':
      return text(parts, column);
    case 'bytes':
      return column.type === '' ? undefined : { type: 'bytes' };
    case 'numeric':
      return /^(?:numeric|decimal)$/.test(parts.base)
        ? parts.size === undefined
          ? { type: 'number' }
          : decimal(parts, 'sqlite')
        : undefined;
  }
}

/** How a column of the database stores the values of a type; undefined if it does not. */
export function storedAs(engine: Engine, column: FoundColumn, type: ColumnType): ColumnType | undefined {
  return engine === 'sqlite' ? inSqlite(column, type) : inPostgres(column, type);
}

const SMALL_INTEGERS: Readonly<Record<string, number>> = { smallint: 2 ** 15, integer: 2 ** 31 };

function inPostgres(column: FoundColumn, type: ColumnType): ColumnType | undefined {
  const { base, size, scale } = partsOf(column.type);
  const stored = (form: string): ColumnType => ({ ...type, stored: form });
  switch (type.kind) {
    case 'serial':
    case 'integer': {
      const limit = SMALL_INTEGERS[base];
      if (limit === undefined) return base === 'bigint' ? type : undefined;
      if (type.kind === 'serial') return stored(base);
      const min = Math.max(type.min ?? -limit, -limit);
      return { ...type, min, max: Math.min(type.max ?? limit - 1, limit - 1), stored: base };
    }
    case 'bigint':
      return base === 'bigint' ? type : undefined;
    case 'decimal':
      return base === 'numeric' && size !== undefined && size >= type.precision && (scale ?? 0) === type.scale
        ? type
        : undefined;
    case 'number':
      if (base === 'real') return stored('real');
      return base === 'double precision' ? type : undefined;
    case 'text':
      if (type.fold || (size !== undefined && type.max > size)) return undefined;
      if (base === 'character') return stored('blank');
      if (base !== 'text' && base !== 'character varying') return undefined;
      return column.collation === 'language' ? stored('collated') : type;
    case 'enum':
      if (column.labels === undefined)
        return base === 'text' || base === 'character varying' ? type : undefined;
      return type.values.every((value) => column.labels?.values.includes(value))
        ? stored(`enum ${column.labels.type}`)
        : undefined;
    case 'timestamp': {
      const [, zone] = /^timestamp (with|without) time zone$/.exec(base) ?? [];
      if (zone === undefined) return undefined;
      const isFine = size === undefined || size > 3;
      if (!isFine && zone === 'with') return type;
      return stored(`timestamp${zone === 'with' ? 'tz' : ''}${isFine ? ' fine' : ''}`);
    }
    case 'json':
      if (base === 'jsonb') return stored('jsonb');
      return base === 'json' ? type : undefined;
    case 'bytes':
      return base === 'bytea' ? type : undefined;
    default:
      return base === type.kind ? type : undefined;
  }
}

function inSqlite(column: FoundColumn, type: ColumnType): ColumnType | undefined {
  const affinity = affinityOf(column.type);
  const isText = affinity === 'text' || affinity === 'numeric';
  switch (type.kind) {
    case 'serial':
    case 'integer':
    case 'bigint':
      return affinity === 'integer' ? type : undefined;
    case 'decimal':
      return type.precision <= MAX_PRECISION.sqlite && (affinity === 'numeric' || affinity === 'real')
        ? { ...type, stored: 'decimal as number' }
        : undefined;
    case 'number':
      return affinity === 'real' || affinity === 'numeric' ? type : undefined;
    case 'boolean':
      return affinity === 'integer' || affinity === 'numeric' ? type : undefined;
    case 'text':
      // SQLite ignores the size.
      return affinity === 'text' && type.fold === (column.collation === 'fold') ? type : undefined;
    case 'enum':
      return affinity === 'text' ? type : undefined;
    case 'date':
      return isText ? { ...type, stored: 'date as text' } : undefined;
    case 'timestamp':
      if (affinity === 'integer') return type;
      return isText ? { ...type, stored: 'time as text' } : undefined;
    case 'uuid':
    case 'json':
      return isText ? type : undefined;
    case 'bytes':
      return affinity === 'bytes' ? type : undefined;
  }
}

/** Whether lists cannot use an index of a column, since its values are compared in another form. */
export function isUnordered({ stored }: ColumnType): boolean {
  return stored !== undefined && (/ fine$/.test(stored) || stored.includes(' as '));
}
