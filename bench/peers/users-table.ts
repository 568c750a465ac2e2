import { openDatabase } from './sqlite.ts';

/** A typical table of users in SQLite: prepared statements, rows, one commit per write. */
export async function openUsers() {
  const db = await openDatabase('users.db');
  db.exec(`CREATE TABLE IF NOT EXISTS users (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, email TEXT NOT NULL) STRICT`);
  const one = db.prepare('SELECT id, name, email FROM users WHERE id = ?');
  const all = db.prepare('SELECT id, name, email FROM users ORDER BY id');
  const insert = db.prepare('INSERT INTO users (name, email) VALUES (?, ?)');
  return {
    find: (id: number) => one.get(id),
    list: () => all.all(),
    create: (name: string, email: string) => insert.run(name, email),
  };
}

export const CREATED = { status: 'success', message: 'User created successfully' } as const;
export const NOT_CREATED = { status: 'error', message: 'Failed to create user' } as const;
export const NOT_FOUND = { status: 'error', message: 'User not found' } as const;

/** A user in a parsed body, or undefined. */
export function readUser(body: unknown): { readonly name: string; readonly email: string } | undefined {
  const { name, email } = Object(body) as Readonly<Record<string, unknown>>;
  return typeof name === 'string' && typeof email === 'string' && name !== '' && email.includes('@')
    ? { name, email }
    : undefined;
}
