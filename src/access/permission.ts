/**
 * The permission that an operation needs: `read` for GraphQL queries and subscriptions, `write` for
 * mutations.
 */
export type Permission = 'read' | 'write';

/** Which operations need credentials. */
export type Required = 'none' | 'write' | 'all';

/** The scope that grants each permission. */
export type PermissionScopes = Readonly<Record<Permission, string>>;

/** Whether an operation with this permission needs credentials. */
export function isRequired(required: Required, need: Permission): boolean {
  return required === 'all' || (required === 'write' && need === 'write');
}
