import type { Codec, Present, Storage } from '../codec.ts';
import type { ColumnType } from '../relation.ts';

/**
 * How tables of other programs store values otherwise than Portico does. A form of PostgreSQL is the name of a type,
 * behind `enum` that of one with labels; a form of SQLite says what the values look like.
 */
type Form = (codec: Codec, type: ColumnType, name: string) => Partial<Storage>;

/** The codec of a type whose values are stored in another form. */
export function storedCodec(codec: Codec, type: ColumnType, stored: string): Codec {
  const [head = '', ...rest] = stored.split(' ');
  const sqlite = SQLITE_FORMS[stored];
  const form = sqlite ?? POSTGRES_FORMS[head] ?? castForm;
  const changed = form(codec, type, POSTGRES_FORMS[head] === undefined ? stored : rest.join(' '));
  return sqlite === undefined
    ? { ...codec, postgres: { ...codec.postgres, ...changed } }
    : { ...codec, sqlite: { ...codec.sqlite, ...changed } };
}

const asText = (column: string) => `${column}::text`;

/** A type that takes and shows values as the type of the codec does. */
const castForm: Form = (_codec, _type, name) => ({ type: name });

const ISO = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;

/** Times with more digits than clients see are compared without them, or a cursor would find a row again. */
const timeForm =
  (zone: string): Form =>
  (_codec, _type, digits) => ({
    type: zone === '' ? 'timestamp' : 'timestamptz',
    select: (column) => `floor(extract(epoch FROM ${column}) * 1000)::bigint`,
    json: (column) => `to_char(${column}${zone}, ${ISO})`,
    ...(digits === 'fine' && { compared: (time: string) => `date_trunc('milliseconds', ${time})` }),
  });

const POSTGRES_FORMS: Readonly<Record<string, Form>> = {
  /** A text that sorts by the collation of its column. */
  collated: () => ({ bytes: (text) => `${text} COLLATE "C"` }),
  /** Texts that are filled up with blanks, which a cast takes away. */
  blank: () => ({
    type: 'bpchar',
    select: asText,
    json: asText,
    bytes: (text) => `${text}::text COLLATE "C"`,
  }),
  enum: (_codec, _type, name) => ({ type: name, select: asText, json: asText }),
  jsonb: () => ({ type: 'jsonb' }),
  timestamp: timeForm(''),
  timestamptz: timeForm(` AT TIME ZONE 'UTC'`),
};

/** A time in the form of SQLite's functions: texts in any of theirs, and numbers as milliseconds. */
const sqliteTime = (time: string) =>
  `iif(typeof(${time}) = 'text', strftime('%Y-%m-%d %H:%M:%f', ${time}), strftime('%Y-%m-%d %H:%M:%f', ${time} / 1000.0, 'unixepoch'))`;

const SQLITE_FORMS: Readonly<Record<string, Form>> = {
  'decimal as number': ({ sqlite }, type) => {
    const scale = type.kind === 'decimal' ? type.scale : 0;
    const whole = (column: string) => `CAST(round(${column} * 1e${scale}) AS INTEGER)`;
    return {
      bind: (value) => (value === null ? null : Number(value)),
      select: (column) => sqlite.select(whole(column)),
      json: (column) => sqlite.json(whole(column)),
      compared: (number) => `round(${number}, ${scale})`,
      summed: whole,
    };
  },
  'date as text': () => {
    const date = (column: string) => `date(${column})`;
    return { select: date, json: date, compared: date };
  },
  'time as text': () => ({
    type: 'TEXT',
    bind: (value) =>
      value === null ? null : new Date(value as number).toISOString().replace('T', ' ').slice(0, -1),
    select: (column) => `CAST(round(unixepoch(${sqliteTime(column)}, 'subsec') * 1000) AS INTEGER)`,
    read: (stored) => (stored === null || stored === undefined ? null : Number(stored as Present)),
    json: (column) => `replace(${sqliteTime(column)}, ' ', 'T') || 'Z'`,
    compared: sqliteTime,
  }),
};
