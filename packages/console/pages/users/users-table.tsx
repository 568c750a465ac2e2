import { Table } from '../../parts/parts.tsx';

export interface User {
  readonly id: number;
  readonly name: string;
  readonly email: string;
}

const COLUMNS = [
  ['id', 'Id'],
  ['name', 'Name'],
  ['email', 'Email'],
] as const;

export function UsersTable({
  users,
  sort,
  mayAct,
  onSort,
  onEdit,
  onDelete,
}: {
  users: readonly User[];
  /** The order as in the request: `name`, or `-name` for descending. */
  sort: string;
  mayAct: boolean;
  onSort: (sort: string) => void;
  onEdit: (user: User) => void;
  onDelete: (user: User) => void;
}) {
  return (
    <Table label="Users">
      <thead>
        <tr>
          {COLUMNS.map(([field, title]) => (
            <SortHead key={field} field={field} title={title} sort={sort} onSort={onSort} />
          ))}
          {mayAct && (
            <th scope="col">
              <span className="unseen">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {users.map((user) => (
          <tr key={user.id}>
            <td className="number quiet">{user.id}</td>
            <th scope="row" className="break">
              {user.name}
            </th>
            <td className="break">{user.email}</td>
            {mayAct && (
              <td className="row-actions">
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
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** The head of a column. A click sorts by it, another click reverses the order. */
function SortHead({
  field,
  title,
  sort,
  onSort,
}: {
  field: string;
  title: string;
  sort: string;
  onSort: (sort: string) => void;
}) {
  const order = sort === field ? 'ascending' : sort === `-${field}` ? 'descending' : undefined;
  return (
    <th scope="col" aria-sort={order} className={field === 'id' ? 'number' : undefined}>
      <button
        type="button"
        className="sort"
        onClick={() => onSort(order === 'ascending' ? `-${field}` : field)}
      >
        {title}
        <span aria-hidden="true">{order === undefined ? '' : order === 'ascending' ? ' ↑' : ' ↓'}</span>
      </button>
    </th>
  );
}
