import type { Config } from '../../config/load.ts';
import type { BasicUser } from '../../http/auth/basic-auth.ts';

/** The users of the management door: the configured one has the required role (contract 5). */
export function managementUsers({ settings, code }: Config): readonly BasicUser[] {
  const { 'management.user': user, 'management.password': password, 'management.role': role } = settings;
  if (user === undefined || password === undefined) return code.users;
  return [{ user, password, roles: role === undefined ? [] : [role] }, ...code.users];
}
