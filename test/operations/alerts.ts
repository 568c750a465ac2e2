import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ALERTS = join(import.meta.dirname, '../../deploy/prometheus/alerts.yml');

/** The names of all alerts, in their order. */
export function alertNames(): readonly string[] {
  return [...readFileSync(ALERTS, 'utf8').matchAll(/^ +- alert: (\w+)$/gm)].map(([, name = '']) => name);
}
