import { randomUUID } from 'node:crypto';

/** A text that occurs nowhere else, so that checks can share a service. */
export function unique(prefix: string): string {
  return `${prefix}-${randomUUID()}`;
}
