import type { createListener } from '@portico/transport';
import { ANONYMOUS, type Audit, AuditLog, type OnRefused } from '../access/audit.ts';
import { parseBasicAuth } from '../access/basic.ts';
import { type DoorName, EXPOSED_AUDIT_DAYS, type Settings } from '../config/options/options.ts';
import { isExposed } from '../management/guard.ts';
import type { Database } from '../sql/database.ts';
import type { Loggers } from '../telemetry/loggers.ts';

const DAY = 86_400_000;

/** The audit log, if the configuration sets a retention or exposes the endpoint that shows it. */
export function openAudit(
  settings: Settings,
  database: Pick<Database, 'audit'> | undefined,
  loggers: Loggers,
): AuditLog | undefined {
  const days = auditDays(settings);
  if (database === undefined || days === 0) return undefined;
  const log = loggers.child('audit');
  const audit = new AuditLog({
    store: database.audit,
    maxAge: days * DAY,
    onError: (error) => log.error({ err: error }, 'audit events lost'),
  });
  audit.start();
  return audit;
}

/** Retention of audit events in days; 0 if none are recorded. */
export function auditDays(settings: Settings): number {
  return settings['audit.retention'] ?? (showsAudit(settings) ? EXPOSED_AUDIT_DAYS : 0);
}

function showsAudit(settings: Settings): boolean {
  const { interfaces, 'management.include': include, 'management.exclude': exclude } = settings;
  return interfaces.includes('management') && isExposed('auditevents', { include, exclude });
}

const TYPES: Readonly<Record<number, string>> = {
  401: 'AUTHENTICATION_FAILURE',
  403: 'AUTHORIZATION_FAILURE',
  429: 'LIMIT_REACHED',
};

export function auditRefusals(audit: Audit, door: DoorName): OnRefused {
  return ({ id, client, method, target, headers, status, code, caller }) => {
    // The query may hold secrets.
    const [path = ''] = target.split('?', 1);
    audit.record({
      principal: caller ?? parseBasicAuth(headers.authorization)?.user ?? ANONYMOUS,
      type: TYPES[status] ?? 'REFUSED',
      data: { door, method, path, status, code, client, request: id },
      isAction: false,
    });
  };
}

/** Records the client certificates that a door refuses. */
export function auditCertificates(
  audit: Audit | undefined,
  door: DoorName,
): Parameters<typeof createListener>[0]['onRefusedCertificate'] {
  if (audit === undefined) return undefined;
  return ({ client, code }) => {
    const data = { door, code, client };
    audit.record({ principal: ANONYMOUS, type: 'AUTHENTICATION_FAILURE', data, isAction: false });
  };
}
