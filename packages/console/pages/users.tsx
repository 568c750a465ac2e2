import { useEffect, useRef, useState } from 'react';
import { useAbout } from '../data/about.ts';
import { act } from '../data/api.ts';
import type { Route } from '../data/route.ts';
import { usePaged } from '../data/use-data.ts';
import { DataTable, Loaded, Pager } from '../parts/data-table.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Filters } from '../parts/filters.tsx';
import { Card, Empty, Notice, Page } from '../parts/parts.tsx';
import { say } from '../parts/toasts.tsx';

interface User {
  readonly id: number;
  readonly name: string;
  readonly email: string;
}

interface UserList {
  readonly items: readonly User[];
  /** The cursors of the next and previous page. */
  readonly next: string | null;
  readonly prev: string | null;
}

/** The parameters of REST that find users, with labels. */
const FIND_BY = [
  ['q', 'Name or email contains'],
  ['name:prefix', 'Name begins with'],
  ['name', 'Name is'],
  ['email:prefix', 'Email begins with'],
  ['email', 'Email is'],
  ['id', 'Id is'],
] as const;

const FILTERS = [
  { kind: 'choice', name: 'by', label: 'Find by', options: FIND_BY, isDeferred: true },
  { kind: 'text', name: 'text', label: 'Search for', hint: 'ada', isWide: true },
] as const;

/** The users that REST serves, with REST's filters and orders. */
export function Users({ route }: { route: Route }) {
  const mayAct = useAbout()?.actions === true;
  const [edited, setEdited] = useState<User | 'new'>();
  const list = usePaged<UserList>(route, 'cursor', (query) => `users?${query}`);
  const { hidden, remove } = useRemoval(list.reload);

  const { filters, isFirst, turnTo, apply } = list;
  const by = FIND_BY.find(([name]) => filters[name] !== undefined)?.[0];
  const text = by === undefined ? '' : (filters[by] ?? '');
  const turn = (cursor: string | null) => (cursor === null ? undefined : () => turnTo(cursor));
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
      <Filters
        filters={FILTERS}
        values={{ by: by ?? 'q', text }}
        submit="Search"
        onApply={({ by: picked = 'q', text: typed = '' }) => apply({ [picked]: typed })}
      />
      <Card>
        <Loaded data={list} what="The list of users">
          {({ items: all, next, prev }) => {
            const items = all.filter(({ id }) => !hidden.has(id));
            return (
              <>
                {items.length === 0 && isFirst ? (
                  <Empty icon="users" title={by === undefined ? 'No users yet' : 'No matching users'}>
                    {by === undefined
                      ? 'Create one here or at the REST door.'
                      : `There is no user for “${text}”.`}
                  </Empty>
                ) : (
                  <DataTable
                    label="Users"
                    rows={items}
                    keyOf={({ id }) => id}
                    columns={[...COLUMNS, mayAct && actionsOf(setEdited, remove)]}
                    sort={filters.sort ?? orderOf(by)}
                    onSort={(sort) => apply({ ...filters, sort })}
                  />
                )}
                {(!isFirst || next !== null) && (
                  <Pager
                    pages={[
                      { title: 'First', onGo: isFirst ? undefined : () => turnTo() },
                      { title: 'Previous', onGo: turn(prev) },
                      { title: 'Next', onGo: turn(next) },
                    ]}
                  />
                )}
              </>
            );
          }}
        </Loaded>
      </Card>
      {edited !== undefined && (
        <EditUser
          user={edited === 'new' ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onSaved={() => {
            setEdited(undefined);
            list.reload();
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

const COLUMNS = [
  { title: 'Id', sort: 'id', className: 'number quiet', cell: ({ id }: User) => id },
  { title: 'Name', sort: 'name', className: 'break', isRowHead: true, cell: ({ name }: User) => name },
  { title: 'Email', sort: 'email', className: 'break', cell: ({ email }: User) => email },
] as const;

function actionsOf(onEdit: (user: User) => void, onDelete: (user: User) => void) {
  return {
    title: 'Actions',
    isTitleHidden: true,
    className: 'row-actions',
    cell: (user: User) => (
      <>
        <button
          type="button"
          className="button small"
          aria-label={`Edit ${user.name}`}
          onClick={() => onEdit(user)}
        >
          Edit
        </button>
        <button
          type="button"
          className="button small danger"
          aria-label={`Delete ${user.name}`}
          onClick={() => onDelete(user)}
        >
          Delete
        </button>
      </>
    ),
  };
}

/** Creates or edits a user. */
function EditUser({
  user,
  onClose,
  onSaved,
}: {
  user: User | undefined;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [name, setName] = useState(user?.name ?? '');
  const [email, setEmail] = useState(user?.email ?? '');
  const [problem, setProblem] = useState('');

  async function save(): Promise<void> {
    try {
      await act('POST', user === undefined ? 'users' : `users/${user.id}`, { name, email });
      say('good', `${name} is ${user === undefined ? 'created' : 'changed'}`);
      onSaved();
    } catch (error) {
      setProblem((error as Error).message);
    }
  }

  const field = (label: string, value: string, set: (value: string) => void) => (
    <label className="field">
      <span>{label}</span>
      <input type="text" value={value} onChange={({ currentTarget }) => set(currentTarget.value)} />
    </label>
  );
  return (
    <Dialog
      title={user === undefined ? 'New user' : 'Edit user'}
      submit={user === undefined ? 'Create' : 'Save'}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
      {field('Name', name, setName)}
      {field('Email', email, setEmail)}
    </Dialog>
  );
}

/** Time in which a deletion can be undone, in milliseconds. */
const UNDO = 6_000;

/** Deletes a user after a few seconds, so that it can be undone; at once if the user leaves the page. */
function useRemoval(onRemoved: () => void) {
  const [hidden, setHidden] = useState<ReadonlySet<number>>(new Set());
  const waiting = useRef(new Map<number, ReturnType<typeof setTimeout>>());

  const show = (id: number) => setHidden((before) => new Set([...before].filter((each) => each !== id)));
  async function removeNow(id: number): Promise<void> {
    clearTimeout(waiting.current.get(id));
    waiting.current.delete(id);
    try {
      await act('DELETE', `users/${id}`);
    } catch (error) {
      say('bad', (error as Error).message);
      show(id);
    }
    onRemoved();
  }
  const now = useRef(removeNow);
  now.current = removeNow;

  useEffect(() => {
    const finish = () => {
      for (const id of waiting.current.keys()) void now.current(id);
    };
    addEventListener('pagehide', finish);
    return () => {
      removeEventListener('pagehide', finish);
      finish();
    };
  }, []);

  function remove({ id, name }: User): void {
    setHidden((before) => new Set([...before, id]));
    waiting.current.set(
      id,
      setTimeout(() => void now.current(id), UNDO),
    );
    say('info', `${name} is deleted`, () => {
      clearTimeout(waiting.current.get(id));
      waiting.current.delete(id);
      show(id);
    });
  }
  return { hidden, remove };
}
