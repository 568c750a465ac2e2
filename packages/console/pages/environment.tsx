import { useState } from 'react';
import { useAbout } from '../data/about.ts';
import { useData } from '../data/use-data.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Card, Empty, Notice, Page, Status, Waiting } from '../parts/parts.tsx';

interface Property {
  readonly value: unknown;
  readonly origin?: string;
  readonly overriddenBy?: string;
}

interface Env {
  readonly activeProfiles: readonly string[];
  readonly propertySources: readonly {
    readonly name: string;
    readonly properties: Readonly<Record<string, Property>>;
  }[];
}

/** The source of each setting, strongest source first. */
export function Environment() {
  const { value, error } = useData<Env>('env');
  const about = useAbout();
  const [text, setText] = useState('');
  const wanted = text.trim().toLowerCase();
  const sources = (value?.propertySources ?? [])
    .map(({ name, properties }) => {
      const entries = Object.entries(properties);
      return {
        name,
        all: entries.length,
        found: entries.filter(([key]) => key.toLowerCase().includes(wanted)),
      };
    })
    .filter(({ found }) => found.length > 0);
  return (
    <Page
      title="Environment"
      about={
        <>
          The source of each setting, strongest source first.
          {value !== undefined &&
            value.activeProfiles.length > 0 &&
            ` Profiles: ${value.activeProfiles.join(', ')}.`}
        </>
      }
      actions={
        <input
          type="search"
          placeholder="Name of a setting"
          aria-label="Name of a setting"
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
      }
    >
      {about !== undefined && (
        <Notice tone="quiet">
          Secrets are never shown.{' '}
          {about.showValues === 'never' ? (
            <>
              Other variables than the service's own are masked too:{' '}
              <code>MANAGEMENT_SHOW_VALUES=always</code> shows them, here and in <code>env</code> and{' '}
              <code>configprops</code>.
            </>
          ) : (
            <>
              <code>MANAGEMENT_SHOW_VALUES={about.showValues}</code> shows all other values.
            </>
          )}
        </Notice>
      )}
      {value === undefined || error !== undefined ? (
        <Card>
          <Waiting error={error} what="The environment" />
        </Card>
      ) : sources.length === 0 ? (
        <Card>
          <Empty icon="environment" title="Nothing matches">
            No setting's name contains this text.
          </Empty>
        </Card>
      ) : (
        sources.map(({ name, all, found }) => (
          <Card
            key={name}
            title={name}
            note={found.length === all ? `${all} settings` : `${found.length} of ${all} settings`}
          >
            <DataTable
              label={name}
              rows={found}
              keyOf={([key]) => key}
              rowClass={([, { overriddenBy }]) => (overriddenBy === undefined ? '' : 'overridden')}
              columns={COLUMNS}
            />
          </Card>
        ))
      )}
    </Page>
  );
}

/** What the service shows instead of a hidden value. */
const MASK = '******';

const COLUMNS: readonly Column<readonly [string, Property]>[] = [
  { title: 'Name', className: 'mono break', isRowHead: true, cell: ([name]) => name },
  { title: 'Value', className: 'mono break', cell: ([, { value }]) => shownValue(value) },
  {
    title: 'Origin',
    className: 'break quiet',
    cell: ([, { origin, overriddenBy }]) => (
      <>
        {origin} {overriddenBy !== undefined && <Status tone="quiet">overridden by {overriddenBy}</Status>}
      </>
    ),
  },
];

function shownValue(value: unknown) {
  if (value === MASK) return <span className="quiet">hidden</span>;
  if (value === null || value === '')
    return <span className="quiet">{value === null ? 'not set' : 'empty'}</span>;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
