import { useState } from 'react';
import { useAbout } from '../../data/about.ts';
import { type Relation, rowLink } from '../../data/relations.ts';
import type { Route } from '../../data/route.ts';
import { goTo } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Card, Empty, Page, Waiting } from '../../parts/parts.tsx';
import { ExportRows } from './export-rows.tsx';
import { ImportRows } from './import-rows.tsx';
import { NewRow } from './new-row.tsx';
import { filtersIn } from './row-filters.tsx';
import { RowPage } from './row-page.tsx';
import { RowTable } from './row-table.tsx';

/** The relations, the rows of one, or a row, as the URL says. */
export function Relations({ route: { item, query } }: { route: Route }) {
  const { value, error } = useData<{ readonly relations: readonly Relation[] }>('relations');
  const mayAct = useAbout()?.actions === true;
  const [name = '', key = ''] = item.split(/\/(.*)/s, 2);
  if (value === undefined || error !== undefined) {
    return (
      <Page title="Relations">
        <Card>
          <Waiting error={error} what="The relations" />
        </Card>
      </Page>
    );
  }
  const relations = value.relations.map((each) => ({
    ...each,
    // Tables of other programs often have names in the singular.
    one: each.one === `${each.name}Row` ? each.name : each.one,
    isWritable: each.isWritable && mayAct,
  }));
  const relation = relations.find((each) => each.name === name);
  if (name === '') return <Index relations={relations} />;
  if (relation === undefined) {
    return (
      <Page title="Relations">
        <Card>
          <Empty icon="search" title="There is no such relation">
            <a href={rowLink('')}>All relations</a>
          </Empty>
        </Card>
      </Page>
    );
  }
  if (key !== '') return <RowPage key={item} relation={relation} relations={relations} rowKey={key} />;
  return <Rows key={name} relation={relation} relations={relations} query={Object.fromEntries(query)} />;
}

function Index({ relations }: { relations: readonly Relation[] }) {
  const [text, setText] = useState('');
  const found = relations.filter(({ name }) => name.toLowerCase().includes(text.trim().toLowerCase()));
  return (
    <Page
      title="Relations"
      about="The relations of the database, whose rows REST and GraphQL serve."
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
      <Card>
        {found.length === 0 ? (
          <Empty icon="search" title="Nothing matches">
            No relation's name contains this text.
          </Empty>
        ) : (
          <DataTable
            label="Relations"
            rows={found}
            keyOf={({ name }) => name}
            columns={[
              { title: 'Relation', isRowHead: true, cell: ({ name }) => <a href={rowLink(name)}>{name}</a> },
              { title: 'Columns', className: 'number', cell: ({ columns }) => columns.length },
              { title: 'Key', cell: ({ key }) => key.join(', ') },
              {
                title: 'Refers to',
                cell: ({ references }) => [...new Set(references.map(({ to }) => to))].join(', '),
              },
              { title: 'Rows', cell: ({ isWritable }) => (isWritable ? 'can be changed' : 'are only read') },
            ]}
          />
        )}
      </Card>
    </Page>
  );
}

/** The rows of a relation; the URL keeps filters, order and position. */
function Rows({
  relation,
  relations,
  query,
}: {
  relation: Relation;
  relations: readonly Relation[];
  query: Readonly<Record<string, string>>;
}) {
  const [dialog, setDialog] = useState<'new' | 'import' | 'export'>();
  const [version, setVersion] = useState(0);
  const { name, one, isWritable } = relation;
  const close = () => setDialog(undefined);
  const again = () => {
    close();
    setVersion((before) => before + 1);
  };
  return (
    <Page
      title={name}
      about={
        <a href={rowLink('')}>
          <Icon name="back" /> All relations
        </a>
      }
      actions={
        <>
          <button type="button" className="button" onClick={() => setDialog('export')}>
            Export
          </button>
          {isWritable && (
            <>
              <button type="button" className="button" onClick={() => setDialog('import')}>
                Import
              </button>
              <button type="button" className="button primary" onClick={() => setDialog('new')}>
                New {one}
              </button>
            </>
          )}
        </>
      }
    >
      <RowTable
        relation={relation}
        relations={relations}
        query={query}
        version={version}
        onQuery={(changed) => goTo(rowLink(name, '', changed))}
      />
      {dialog === 'new' && (
        <NewRow relation={relation} relations={relations} onClose={close} onCreated={again} />
      )}
      {dialog === 'import' && <ImportRows relation={relation} onClose={close} onImported={again} />}
      {dialog === 'export' && <ExportRows relation={relation} filters={filtersIn(query)} onClose={close} />}
    </Page>
  );
}
