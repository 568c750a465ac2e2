import { linkTo, type Route } from '../data/route.ts';
import { useData } from '../data/use-data.ts';
import { DataTable, Loaded } from '../parts/data-table.tsx';
import { Icon } from '../parts/icon.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Card, Empty, Page, Waiting } from '../parts/parts.tsx';
import { type EventType, useAll } from './data.ts';

/** The event types, or one of them. */
export function EventTypes({ route }: { route: Route }) {
  return route.item === '' ? <TypeList /> : <Type name={route.item} />;
}

function TypeList() {
  const list = useAll<EventType>('event-types');
  return (
    <Page title="Event types" about="The kinds of events that endpoints can get.">
      <Card>
        <Loaded data={list} what="The list of event types">
          {(types) =>
            types.length === 0 ? (
              <Empty icon="log" title="No event types are described">
                Endpoints can still get events by the names of their types.
              </Empty>
            ) : (
              <DataTable
                label="Event types"
                rows={types}
                keyOf={({ name }) => name}
                hrefOf={({ name }) => linkTo('event-types', name)}
                columns={[
                  {
                    title: 'Name',
                    isRowHead: true,
                    className: 'break',
                    cell: ({ name }) => <a href={linkTo('event-types', name)}>{name}</a>,
                  },
                  { title: 'Description', className: 'break', cell: ({ description }) => description },
                  {
                    title: 'Described by',
                    cell: ({ schema, example }) =>
                      [...(schema == null ? [] : ['schema']), ...(example == null ? [] : ['example'])].join(
                        ', ',
                      ),
                  },
                ]}
              />
            )
          }
        </Loaded>
      </Card>
    </Page>
  );
}

function Type({ name }: { name: string }) {
  const { value, error } = useData<EventType>(`event-types/${encodeURIComponent(name)}`);
  return (
    <Page
      title={name}
      about={value?.description}
      actions={
        <a className="button" href="#/event-types">
          <Icon name="back" />
          All event types
        </a>
      }
    >
      {value === undefined ? (
        <Card>
          {error?.status === 404 ? (
            <Empty icon="search" title="There is no such event type" />
          ) : (
            <Waiting error={error} what="The event type" />
          )}
        </Card>
      ) : (
        <div className="grid two">
          <Document title="Example" of={value.example} none="This event type has no example." />
          <Document title="JSON Schema of the data" of={value.schema} none="This event type has no schema." />
        </div>
      )}
    </Page>
  );
}

function Document({ title, of, none }: { title: string; of: unknown; none: string }) {
  return (
    <Card title={title}>
      <div className="card-body">
        {of == null ? (
          <p className="note">{none}</p>
        ) : (
          <div className="body">
            <JsonTree value={of} />
          </div>
        )}
      </div>
    </Card>
  );
}
