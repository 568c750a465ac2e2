import { useState } from 'react';
import { useAbout } from '../../data/about.ts';
import { goTo, linkTo, type Route } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { Card, Empty, Page, Waiting } from '../../parts/parts.tsx';
import { useRemoval } from './use-removal.ts';
import { EditUser } from './users-edit.tsx';
import { FILTERS, UserFilters } from './users-filters.tsx';
import { type User, UsersTable } from './users-table.tsx';

interface UserList {
  readonly items: readonly User[];
  /** The cursors of the next and previous page. */
  readonly next: string | null;
  readonly prev: string | null;
}

/** The users that REST serves, with REST's filters and orders. */
export function Users({ route: { query } }: { route: Route }) {
  const mayAct = useAbout()?.actions === true;
  const [edited, setEdited] = useState<User | 'new'>();
  const { value, error, reload } = useData<UserList>(`users?${query}`);
  const { hidden, remove } = useRemoval(reload);

  const given = Object.fromEntries(query);
  const filter = FILTERS.find(([name]) => given[name] !== undefined)?.[0];
  const sort = given.sort ?? orderOf(filter);
  const isFirst = given.cursor === undefined;
  const page = (cursor: string | null | undefined) =>
    goTo(linkTo('users', '', { ...given, cursor: cursor ?? undefined }));
  const items = (value?.items ?? []).filter(({ id }) => !hidden.has(id));
  return (
    <Page
      title="Users"
      about="The users of the database. REST serves them, and GraphQL too if it is configured to."
      actions={
        mayAct && (
          <button type="button" className="button primary" onClick={() => setEdited('new')}>
            New user
          </button>
        )
      }
    >
      <UserFilters
        field={filter ?? 'q'}
        text={filter === undefined ? '' : (given[filter] ?? '')}
        onFind={(field, text) => goTo(linkTo('users', '', { [field]: text || undefined }))}
      />
      <Card>
        {value === undefined || error !== undefined ? (
          <Waiting error={error} what="The list of users" />
        ) : items.length === 0 && isFirst ? (
          <Empty icon="users" title={filter === undefined ? 'No users yet' : 'No matching users'}>
            {filter === undefined
              ? 'Create one here or at the REST door.'
              : `There is no user for “${given[filter]}”.`}
          </Empty>
        ) : (
          <UsersTable
            users={items}
            sort={sort}
            mayAct={mayAct}
            onSort={(picked) => goTo(linkTo('users', '', { ...given, sort: picked, cursor: undefined }))}
            onEdit={setEdited}
            onDelete={remove}
          />
        )}
        {value !== undefined && (!isFirst || value.next !== null) && (
          <footer className="table-foot">
            <div className="actions">
              <button type="button" className="button small" disabled={isFirst} onClick={() => page(null)}>
                First
              </button>
              <button
                type="button"
                className="button small"
                disabled={value.prev === null}
                onClick={() => page(value.prev)}
              >
                Previous
              </button>
              <button
                type="button"
                className="button small"
                disabled={value.next === null}
                onClick={() => page(value.next)}
              >
                Next
              </button>
            </div>
          </footer>
        )}
      </Card>
      {edited !== undefined && (
        <EditUser
          user={edited === 'new' ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onSaved={() => {
            setEdited(undefined);
            reload();
          }}
        />
      )}
    </Page>
  );
}

/** The service's default order for a filter. */
function orderOf(filter: string | undefined): string {
  if (filter === undefined) return '-id';
  return filter.endsWith(':prefix') ? filter.replace(':prefix', '') : 'id';
}
