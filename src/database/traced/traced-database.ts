import type { InSpan } from '../../observability/opentelemetry/in-span.ts';
import type { Database } from '../database.ts';

/** The operation of each method of the users that has a span. */
const USER_OPERATIONS: Readonly<Record<string, string>> = {
  read: 'SELECT',
  readJson: 'SELECT',
  page: 'SELECT',
  all: 'SELECT',
  byId: 'SELECT',
  add: 'INSERT',
  create: 'INSERT',
  createOnce: 'INSERT',
  update: 'UPDATE',
  change: 'UPDATE',
  remove: 'DELETE',
  removeIf: 'DELETE',
};
const LIST_OPERATIONS: Readonly<Record<string, string>> = { read: 'SELECT', page: 'SELECT', list: 'SELECT' };
const INBOX_OPERATIONS: Readonly<Record<string, string>> = { append: 'INSERT', appendAndClaim: 'INSERT' };

/** The same database, whose reads and commits for a request that is recorded are spans of it. */
export function tracedDatabase(
  database: Database,
  system: 'sqlite' | 'postgresql',
  inSpan: InSpan,
): Database {
  const traced = <T extends object>(store: T, table: string, operations: Readonly<Record<string, string>>) =>
    tracedStore(store, operations, (operation, work) => {
      const attributes = {
        'db.system.name': system,
        'db.operation.name': operation,
        'db.collection.name': table,
      };
      return inSpan(`${operation} ${table}`, attributes, work);
    });
  const users = traced(database.users, 'users', USER_OPERATIONS);
  const lists = traced(database.users.lists, 'users', LIST_OPERATIONS);
  const usersWithLists = new Proxy(users, {
    get: (target, name) => (name === 'lists' ? lists : Reflect.get(target, name)),
  });
  const inbox = traced(database.inbox, 'deliveries', INBOX_OPERATIONS);
  return new Proxy(database, {
    get(target, name) {
      if (name === 'users') return usersWithLists;
      if (name === 'inbox') return inbox;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** A store whose methods are known to nobody but itself: each is called on it, in a span where it has an operation. */
function tracedStore<T extends object>(
  store: T,
  operations: Readonly<Record<string, string>>,
  run: <R>(operation: string, work: () => R) => R,
): T {
  const methods = new Map<string | symbol, unknown>();
  return new Proxy(store, {
    get(target, name) {
      const known = methods.get(name);
      if (known !== undefined) return known;
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const operation = typeof name === 'string' ? operations[name] : undefined;
      const method =
        operation === undefined
          ? value.bind(target)
          : (...args: readonly unknown[]) => run(operation, () => Reflect.apply(value, target, args));
      methods.set(name, method);
      return method;
    },
  });
}
