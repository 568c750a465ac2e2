import { useState } from 'react';
import { act } from '../../data/api.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Notice } from '../../parts/parts.tsx';
import { say } from '../../parts/toasts.tsx';
import type { User } from './users-table.tsx';

/** Creates or edits a user. */
export function EditUser({
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
      onClose={onClose}
      foot={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button type="button" className="button primary" onClick={() => void save()}>
            {user === undefined ? 'Create' : 'Save'}
          </button>
        </>
      }
    >
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
      {field('Name', name, setName)}
      {field('Email', email, setEmail)}
    </Dialog>
  );
}
