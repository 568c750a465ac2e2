import type { Check } from './check.ts';
import { allBodyChecks } from './checks/all-body-checks.ts';
import { allDoorChecks } from './checks/all-door-checks.ts';
import { graphqlHttpChecks } from './checks/graphql-http-checks.ts';
import { graphqlLimitChecks } from './checks/graphql-limit-checks.ts';
import { graphqlSchemaChecks } from './checks/graphql-schema-checks.ts';
import { graphqlUserChecks } from './checks/graphql-user-checks.ts';
import { managementExposureChecks } from './checks/management-exposure-checks.ts';
import { managementHealthChecks } from './checks/management-health-checks.ts';
import { managementReportChecks } from './checks/management-report-checks.ts';
import { managementSecurityChecks } from './checks/management-security-checks.ts';
import { restIdChecks } from './checks/rest-id-checks.ts';
import { restInvalidChecks } from './checks/rest-invalid-checks.ts';
import { restReadChecks } from './checks/rest-read-checks.ts';
import { restRoutingChecks } from './checks/rest-routing-checks.ts';
import { restTextChecks } from './checks/rest-text-checks.ts';
import { restWriteChecks } from './checks/rest-write-checks.ts';
import { webhookHandlerChecks } from './checks/webhook-handler-checks.ts';
import { webhookReceiptChecks } from './checks/webhook-receipt-checks.ts';
import { webhookSecretChecks } from './checks/webhook-secret-checks.ts';

/** Every check that talks to a running service. */
export const checks: readonly Check[] = [
  ...restWriteChecks,
  ...restRoutingChecks,
  ...restInvalidChecks,
  ...restIdChecks,
  ...restTextChecks,
  // One of them creates so many users that those behind it would read for long.
  ...restReadChecks,
  ...graphqlSchemaChecks,
  ...graphqlUserChecks,
  ...graphqlHttpChecks,
  ...graphqlLimitChecks,
  ...managementHealthChecks,
  ...managementReportChecks,
  ...managementExposureChecks,
  ...managementSecurityChecks,
  ...webhookReceiptChecks,
  ...webhookSecretChecks,
  ...webhookHandlerChecks,
  ...allBodyChecks,
  ...allDoorChecks,
];
