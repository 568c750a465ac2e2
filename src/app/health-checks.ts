import { dirname } from 'node:path';
import type { ConfiguredCheck } from '../config/schema/health-code.ts';
import { databaseCheck, writerCheck } from '../database/database-checks.ts';
import { backlogCheck } from '../inbox/backlog-check.ts';
import { codeCheck } from '../observability/health/code-check.ts';
import { diskSpaceCheck } from '../observability/health/disk-space-check.ts';
import { eventLoopCheck } from '../observability/health/event-loop-check.ts';
import type { HealthIndicator } from '../observability/health/health.ts';
import { EventLoopDelay } from '../observability/runtime/event-loop-delay.ts';
import type { Parts } from './parts.ts';

/** Everything that health is made of: what this process uses, what the doors have brought, and the user's own. */
export function healthChecks(parts: Parts): readonly HealthIndicator[] {
  const { settings, code } = parts.config;
  const database = parts.openedDatabase();
  const delay = parts.onStop(new EventLoopDelay());
  return [
    ...(database === undefined ? [] : [databaseCheck(database), writerCheck(database)]),
    diskSpaceCheck({
      path: dataFolder(settings['database.url'], database !== undefined),
      thresholdBytes: settings['management.diskThresholdBytes'],
    }),
    eventLoopCheck(delay, settings['management.eventLoopThreshold']),
    ...(database === undefined || !settings.interfaces.includes('webhook')
      ? []
      : [backlogCheck(database.inbox, { thresholdMs: settings['management.backlogThreshold'] })]),
    ...parts.healthChecks,
    ...[...code.healthChecks].map(([name, check]) => ownCheck(name, check)),
  ];
}

function ownCheck(name: string, { check, timeout, ttl, critical }: ConfiguredCheck): HealthIndicator {
  return codeCheck(name, check, { timeoutMs: timeout, ttlMs: ttl, critical });
}

/** The folder whose disk the process depends on: that of its data, or the working folder. */
function dataFolder(url: string, used: boolean): string {
  const [, file] = /^sqlite:(?!:memory:$)(.+)$/u.exec(url) ?? [];
  return used && file !== undefined ? dirname(file) : '.';
}
