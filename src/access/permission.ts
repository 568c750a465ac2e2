/** What an operation does: GraphQL's queries and subscriptions read, its mutations write. */
export type Permission = 'read' | 'write';

/** Which operations need credentials. */
export type Required = 'none' | 'write' | 'all';

/** The scopes that operations need. */
export type PermissionScopes = Readonly<Record<Permission, string>>;

/** Whether an operation needs credentials. */
export function isRequired(required: Required, need: Permission): boolean {
  return required === 'all' || (required === 'write' && need === 'write');
}
