import { userInfo } from 'node:os';
import { auditDays } from '../app/observe/audit.ts';
import type { Settings } from '../config/options/options.ts';
import type { Database } from '../database/database.ts';
import { ANONYMOUS, type AuditData } from '../observability/audit/audit.ts';
import { boundedEntry } from '../observability/audit/bounded-entry.ts';

/** Records what a command has done to the database of a service, where the service records such things. */
export async function auditCommand(
  settings: Settings,
  { audit }: Pick<Database, 'audit'>,
  type: string,
  data: AuditData,
): Promise<void> {
  if (auditDays(settings) === 0) return;
  const entry = boundedEntry({
    principal: userName(),
    type,
    data: { by: 'command line', ...data },
    isAction: true,
  });
  await audit.append([{ ...entry, at: Date.now() }]);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container the user often has no name.
    return ANONYMOUS;
  }
}
