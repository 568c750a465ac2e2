import assert from 'node:assert/strict';
import type { Reply, Subject } from '../check.ts';

export const base = '/actuator';

/** The header of HTTP Basic credentials. */
export function basic(user: string, password: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`, 'utf8').toString('base64')}` };
}

export function get(subject: Subject, path: string, headers: Record<string, string> = {}): Promise<Reply> {
  return subject.management.send('GET', path, { headers });
}

/** The JSON object of a reply of 200 (or of another status when one is given). */
export async function object(subject: Subject, path: string, status = 200): Promise<Record<string, unknown>> {
  const reply = await get(subject, path);
  assert.equal(reply.status, status, `${path}: ${reply.text}`);
  return asObject(reply.json());
}

/** The value as an object; fails when it is none. */
export function asObject(value: unknown): Record<string, unknown> {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `${JSON.stringify(value)}`);
  return value as Record<string, unknown>;
}

/** Whether `wanted` is the value of some member at any depth. */
export function holds(value: unknown, wanted: unknown): boolean {
  if (value === wanted) return true;
  return (
    typeof value === 'object' && value !== null && Object.values(value).some((inner) => holds(inner, wanted))
  );
}

/** What the reply of each standard endpoint must have (CONTRACT.md#management-bodies). */
const members = { health: 'status', info: 'build', metrics: 'names', env: 'propertySources' } as const;

/** Fails unless the reply is what the endpoint of that name reports. */
export function assertReport(reply: Reply, name: keyof typeof members): void {
  assert.equal(reply.status, 200, name);
  assert.ok(Object.hasOwn(asObject(reply.json()), members[name]), `${name} has ${members[name]}`);
}

export const standard = ['health', 'info', 'metrics', 'env'] as const;
