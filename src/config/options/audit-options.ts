import { count } from './option.ts';

/** The options of the audit log. */
export const auditOptions = {
  'audit.retention': count({
    env: 'AUDIT_RETENTION',
    unset: '90 where the endpoint auditevents is exposed, otherwise nothing is recorded',
    description:
      'Time after which audit events are removed, in days; 0 to record none. They are kept in the database, at most 50000 refusals and 50000 actions.',
  }),
} as const;
