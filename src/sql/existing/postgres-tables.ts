import { isOwnTrigger } from '../changes/change-triggers.ts';
import { foldedColumn } from '../schema/postgres-catalogue.ts';
import type { SchemaSession } from '../schema/steps.ts';
import { textLiteral } from '../schema/tables.ts';
import type { FoundColumn, FoundIndex, FoundReference, FoundTable } from './found.ts';

const namesOf = (table: string, numbers: string) => `
  (SELECT array_agg(attname::text ORDER BY nth) FROM unnest(${numbers}) WITH ORDINALITY AS of (number, nth)
    JOIN pg_attribute ON attrelid = ${table} AND attnum = number)`;

/** The statements that read the catalogue; each returns the name of the table first. */
function statements(schema: string) {
  const shown = `t.relnamespace = ${schema}::regnamespace AND t.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT t.relispartition
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = t.oid AND deptype = 'e')`;
  return {
    tables: `SELECT t.relname::text, t.relkind::text FROM pg_class AS t WHERE ${shown} ORDER BY t.relname`,
    columns: `
      SELECT t.relname::text, attname::text, format_type(coalesce(base.oid, typ.oid), CASE WHEN base.oid IS NULL THEN atttypmod ELSE typ.typtypmod END),
        attnotnull OR typ.typnotnull, attidentity::text, attgenerated::text, pg_get_expr(adbin, adrelid),
        (SELECT CASE WHEN collname IN ('C', 'POSIX') OR collname = 'default' AND datcollate IN ('C', 'POSIX') THEN 'bytes' ELSE 'language' END
          FROM pg_collation, pg_database WHERE pg_collation.oid = attcollation AND datname = current_database()),
        CASE WHEN coalesce(base.typtype, typ.typtype) = 'e' THEN array(SELECT enumlabel::text FROM pg_enum
          WHERE enumtypid = coalesce(base.oid, typ.oid) ORDER BY enumsortorder) END,
        (SELECT quote_ident(nspname) || '.' || quote_ident(coalesce(base.typname, typ.typname)) FROM pg_namespace
          WHERE oid = coalesce(base.typnamespace, typ.typnamespace))
      FROM pg_attribute JOIN pg_class AS t ON t.oid = attrelid JOIN pg_type AS typ ON typ.oid = atttypid
      LEFT JOIN pg_type AS base ON typ.typtype = 'd' AND base.oid = typ.typbasetype
      LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
      WHERE attnum > 0 AND NOT attisdropped AND ${shown} ORDER BY t.oid, attnum`,
    constraints: `
      SELECT t.relname::text, conname::text, contype::text, ${namesOf('conrelid', 'conkey')},
        other.relname::text, nullif(other.relnamespace, t.relnamespace)::regnamespace::text,
        ${namesOf('confrelid', 'confkey')}, confdeltype::text, pg_get_expr(conbin, conrelid)
      FROM pg_constraint JOIN pg_class AS t ON t.oid = conrelid LEFT JOIN pg_class AS other ON other.oid = confrelid
      WHERE contype IN ('p', 'c', 'f') AND ${shown} ORDER BY conname`,
    indexes: `
      SELECT t.relname::text, i.relname::text, indisunique, indisvalid AND indpred IS NULL AND amname = 'btree'
          AND NOT EXISTS (SELECT FROM unnest(indoption) AS option WHERE option <> 0)
          AND NOT EXISTS (SELECT FROM generate_series(0, indnkeyatts - 1) AS n JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[n]
            WHERE attnum > 0 AND attcollation <> indcollation[n]),
        array(SELECT attname::text FROM generate_series(0, indnkeyatts - 1) AS n
          LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[n] AND attnum > 0 ORDER BY n),
        array(SELECT pg_get_indexdef(indexrelid, n, false) FROM generate_series(1, indnkeyatts::int) AS n ORDER BY n)
      FROM pg_index JOIN pg_class AS t ON t.oid = indrelid JOIN pg_class AS i ON i.oid = indexrelid JOIN pg_am ON pg_am.oid = i.relam
      WHERE NOT indisprimary AND ${shown} ORDER BY i.relname`,
    triggers: `
      SELECT t.relname::text, tgname::text FROM pg_trigger JOIN pg_class AS t ON t.oid = tgrelid
      WHERE NOT tgisinternal AND ${shown}`,
  };
}

type Rows = readonly (readonly unknown[])[];

/** Reads the tables and views of a schema, but those of extensions and partitions of others. */
export async function readPostgresTables(
  session: Pick<SchemaSession, 'rows'>,
  schema: string | undefined,
): Promise<readonly FoundTable[]> {
  const place = schema === undefined ? 'current_schema()' : `quote_ident(${textLiteral(schema)})`;
  const text = statements(place);
  const tables = await session.rows(text.tables);
  const grouped = async (sql: string) => Map.groupBy(await session.rows(sql), ([table]) => table);
  const columns = await grouped(text.columns);
  const constraints = await grouped(text.constraints);
  const indexes = await grouped(text.indexes);
  const triggers = await grouped(text.triggers);
  return tables.map(([name, kind]): FoundTable => {
    const of = constraints.get(name) ?? [];
    const isView = kind === 'v' || kind === 'm';
    return {
      name: String(name),
      isView,
      hasDigest: kind !== 'r',
      columns: (columns.get(name) ?? []).map(columnOf),
      key: ofKind(of, 'p').flatMap((row) => row[3] as readonly string[]),
      indexes: (indexes.get(name) ?? []).map(indexOf),
      references: ofKind(of, 'f').map(referenceOf),
      checks: ofKind(of, 'c').map((row) => ({
        name: String(row[1]),
        expression: String(row[8]),
        columns: (row[3] ?? []) as readonly string[],
      })),
      isRecorded: (triggers.get(name) ?? []).some(([, trigger]) => isOwnTrigger(String(trigger))),
    };
  });
}

const ofKind = (rows: Rows, kind: string) => rows.filter((row) => row[2] === kind);

function columnOf(row: readonly unknown[]): FoundColumn {
  const [, name, type, isRequired, identity, generated, expression, collation, labels, typeName] = row;
  const isNumbered = /^nextval\(/.test(String(expression));
  return {
    name: String(name),
    type: String(type),
    ...(labels !== null && { labels: { type: String(typeName), values: labels as readonly string[] } }),
    collation: collation === 'language' ? 'language' : 'bytes',
    nullable: isRequired !== true,
    default: expression === null || generated !== '' || isNumbered ? undefined : String(expression),
    isGenerated: generated !== '',
    numbered: identity === 'a' ? 'always' : identity === 'd' || isNumbered ? 'by default' : undefined,
  };
}

function indexOf([, name, isUnique, isPlain, columns, definitions]: readonly unknown[]): FoundIndex {
  const folded: string[] = [];
  const names = (columns as readonly (string | null)[]).map((column, i) => {
    const fold = foldedColumn((definitions as readonly string[])[i] ?? '');
    if (column === null && fold !== undefined) folded.push(fold);
    return column ?? fold;
  });
  const known = names.filter((column) => column !== undefined);
  return {
    name: String(name),
    columns: known,
    isUnique: isUnique === true,
    isPlain: isPlain === true && known.length === names.length,
    folded,
  };
}

const ON_DELETE: Readonly<Record<string, FoundReference['onDelete']>> = { c: 'cascade', n: 'null' };

function referenceOf(row: readonly unknown[]): FoundReference {
  return {
    name: String(row[1]),
    columns: row[3] as readonly string[],
    table: String(row[4]),
    schema: row[5] === null ? undefined : String(row[5]),
    targetColumns: row[6] as readonly string[],
    onDelete: ON_DELETE[String(row[7])] ?? 'restrict',
  };
}
