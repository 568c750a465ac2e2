import type { AuditData, AuditEvent } from '../../observability/audit/audit.ts';

/** Maximum number of events that a step removes by their age, and as many by their number. */
export const PRUNE_WINDOW = 500;

/** An event as it is stored, in the order of the columns at, action, principal, type, data. */
export type AuditRow = readonly [at: number, action: number, principal: string, type: string, data: string];

export function rowOf({ at, isAction, principal, type, data }: AuditEvent): AuditRow {
  return [at, isAction ? 1 : 0, principal, type, JSON.stringify(data)];
}

export function eventOf([at, action, principal, type, data]: readonly unknown[]): AuditEvent {
  return {
    at: Number(at),
    isAction: Number(action) === 1,
    principal: String(principal),
    type: String(type),
    data: JSON.parse(String(data)) as AuditData,
  };
}
