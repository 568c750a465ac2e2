import { Table } from '../../parts/parts.tsx';

export interface User {
  readonly id: number;
  readonly name: string;
  readonly email: string;
}

export function UsersTable({
  users,
  mayAct,
  onEdit,
  onDelete,
}: {
  users: readonly User[];
  mayAct: boolean;
  onEdit: (user: User) => void;
  onDelete: (user: User) => void;
}) {
  return (
    <Table label="Users">
      <thead>
        <tr>
          <th scope="col" className="number">
            Id
          </th>
          <th scope="col">Name</th>
          <th scope="col">Email</th>
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
