import { useState } from 'react';
import { useData } from '../../data/use-data.ts';
import { Card, Empty, Page, Status, Table, Waiting } from '../../parts/parts.tsx';

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
            <Table label={name}>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Value</th>
                  <th scope="col">Origin</th>
                </tr>
              </thead>
              <tbody>
                {found.map(([key, property]) => (
                  <tr key={key} className={property.overriddenBy === undefined ? '' : 'overridden'}>
                    <th scope="row" className="mono break">
                      {key}
                    </th>
                    <td className="mono break">{shownValue(property.value)}</td>
                    <td className="break quiet">
                      {property.origin}
                      {property.overriddenBy !== undefined && (
                        <>
                          {' '}
                          <Status tone="quiet">overridden by {property.overriddenBy}</Status>
                        </>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </Table>
          </Card>
        ))
      )}
    </Page>
  );
}

function shownValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
