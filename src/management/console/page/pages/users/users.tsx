import { useEffect, useRef, useState } from 'react';
import { useAbout } from '../../data/about.ts';
import { act } from '../../data/api.ts';
import { goTo, linkTo, type Route } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { Icon } from '../../parts/icon.tsx';
import { Card, Empty, Page, Waiting } from '../../parts/parts.tsx';
import { say } from '../../parts/toasts.tsx';
import { EditUser } from './users-edit.tsx';
import { type User, UsersTable } from './users-table.tsx';

interface UserList {
  readonly items: readonly User[];
  readonly next: number | null;
}

/** A deletion can be taken back for so long, in milliseconds. */
const UNDO = 6_000;

/** The users that REST serves. */
export function Users({ route: { query } }: { route: Route }) {
  const about = useAbout();
  const mayAct = about?.actions === true;
  const [q, sort, cursor] = ['q', 'sort', 'cursor'].map((name) => query.get(name) ?? undefined);
  const [text, setText] = useState(q ?? '');
  const [edited, setEdited] = useState<User | 'new'>();
  const search = new URLSearchParams({ sort: sort ?? '-id', ...(q && { q }), ...(cursor && { cursor }) });
  const { value, error, reload } = useData<UserList>(`users?${search}`);
  const { hidden, remove } = useRemoval(reload);

  const go = (changed: Readonly<Record<string, string | undefined>>) =>
    goTo(linkTo('users', '', { q, sort, cursor: undefined, ...changed }));
  const items = (value?.items ?? []).filter(({ id }) => !hidden.has(id));
  return (
    <Page
      title="Users"
      about="The users of the database, which REST serves, and GraphQL too where it is set up so."
      actions={
        mayAct && (
          <button type="button" className="button primary" onClick={() => setEdited('new')}>
            New user
          </button>
        )
      }
    >
      <form
        className="filters"
        aria-label="Search"
        onSubmit={(event) => {
          event.preventDefault();
          go({ q: text.trim() || undefined });
        }}
      >
        <label className="field wide">
          <span>Name or email</span>
          <input
            type="search"
            placeholder="ada"
            value={text}
            onChange={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        <label className="field">
          <span>Order</span>
          <select
            value={sort ?? '-id'}
            onChange={({ currentTarget }) =>
              go({ sort: currentTarget.value === '-id' ? undefined : currentTarget.value })
            }
          >
            <option value="-id">newest first</option>
            <option value="id">oldest first</option>
          </select>
        </label>
        <button type="submit" className="button">
          <Icon name="search" />
          Search
        </button>
      </form>
      <Card>
        {value === undefined || error !== undefined ? (
          <Waiting error={error} what="The list of users" />
        ) : items.length === 0 ? (
          <Empty icon="users" title={q === undefined ? 'No users yet' : 'Nobody matches'}>
            {q === undefined
              ? 'Users appear here once somebody creates one, here or at the REST door.'
              : `No name and no email has “${q}” in it.`}
          </Empty>
        ) : (
          <UsersTable users={items} mayAct={mayAct} onEdit={setEdited} onDelete={remove} />
        )}
        {value !== undefined && (cursor !== undefined || value.next !== null) && (
          <footer className="table-foot">
            <button
              type="button"
              className="button small"
              disabled={cursor === undefined}
              onClick={() => go({})}
            >
              First page
            </button>
            <button
              type="button"
              className="button small"
              disabled={value.next === null}
              onClick={() => go({ cursor: String(value.next) })}
            >
              Next page
            </button>
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

/** Removes a user a few seconds after it is asked for, so that it can be taken back; at once when the page is left. */
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
