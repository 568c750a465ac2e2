import { useState } from 'react';
import { useData } from '../data/use-data.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Card, Empty, Page, Status, Waiting } from '../parts/parts.tsx';

type Grant = 'anyone' | { readonly scope: string } | { readonly where: Readonly<Record<string, unknown>> };

/** Who may do something; nobody without a grant. */
type Rule = readonly Grant[];

const OPERATIONS = ['read', 'create', 'update', 'delete'] as const;

interface Field {
  readonly name: string;
  readonly read: Rule | null;
  readonly write: Rule | null;
  readonly fixed: 'immutable' | 'readonly' | null;
  readonly set: string | null;
}

interface Relation {
  readonly name: string;
  /** Null if its scopes hold instead. */
  readonly rules: Readonly<Record<(typeof OPERATIONS)[number], Rule>> | null;
  readonly columns: readonly Field[];
}

/** Who may do what with the rows and columns of the relations. */
export function Rules() {
  const { value, error } = useData<{ readonly relations: readonly Relation[] }>('rules');
  const [text, setText] = useState('');
  const found = (value?.relations ?? []).filter(({ name }) => name.includes(text.trim().toLowerCase()));
  return (
    <Page
      title="Rules"
      about="Who may do what with the rows of each relation. One of several grants is enough."
      actions={
        <input
          type="search"
          placeholder="Name of a relation"
          aria-label="Name of a relation"
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
      }
    >
      {value === undefined || error !== undefined ? (
        <Card>
          <Waiting error={error} what="The rules" />
        </Card>
      ) : found.length === 0 ? (
        <Card>
          <Empty icon="lock" title="Nothing matches">
            No relation's name contains this text.
          </Empty>
        </Card>
      ) : (
        found.map((relation) => <RelationCard key={relation.name} relation={relation} />)
      )}
    </Page>
  );
}

function RelationCard({ relation: { name, rules, columns } }: { relation: Relation }) {
  return (
    <Card title={name}>
      {rules === null ? (
        <p className="about">
          Callers need the scopes <code>{name}:read</code> and <code>{name}:write</code>, if the door asks for
          credentials.
        </p>
      ) : (
        <DataTable
          label={`Rules of ${name}`}
          rows={OPERATIONS}
          keyOf={(operation) => operation}
          columns={[
            { title: 'Operation', isRowHead: true, cell: (operation) => operation },
            { title: 'Who', cell: (operation) => <Grants rule={rules[operation]} /> },
          ]}
        />
      )}
      {columns.length > 0 && (
        <DataTable label={`Columns of ${name}`} rows={columns} keyOf={({ name }) => name} columns={COLUMNS} />
      )}
    </Card>
  );
}

const COLUMNS: readonly Column<Field>[] = [
  { title: 'Column', isRowHead: true, cell: ({ name }) => name },
  { title: 'Read', cell: ({ read }) => <Grants rule={read} /> },
  { title: 'Written', cell: (field) => <Written field={field} /> },
];

function Written({ field: { write, fixed, set } }: { field: Field }) {
  if (set !== null) {
    return (
      <>
        by the service, with the claim <code>{set}</code>
      </>
    );
  }
  if (fixed === 'readonly') return <>by the service only</>;
  return (
    <>
      {fixed === 'immutable' && 'in new rows, '}
      <Grants rule={write} />
    </>
  );
}

function Grants({ rule }: { rule: Rule | null }) {
  if (rule === null) return <>as the row</>;
  if (rule.length === 0) return <Status tone="quiet">nobody</Status>;
  const all = rule.map((grant, i) => (
    <span key={JSON.stringify(grant)}>
      {i > 0 && ' or '}
      {grant === 'anyone' ? (
        <Status tone="good">anyone</Status>
      ) : 'scope' in grant ? (
        <>
          scope <code>{grant.scope}</code>
        </>
      ) : (
        <>
          where <code>{JSON.stringify(grant.where)}</code>
        </>
      )}
    </span>
  ));
  return <>{all}</>;
}
