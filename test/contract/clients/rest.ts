import assert from 'node:assert/strict';
import type { Reply, Subject } from '../check.ts';
import { unique } from './unique.ts';

/** A user as the REST door shows it (CONTRACT.md#rest-user). */
export interface UserRecord {
  readonly id: number;
  readonly name: string;
  readonly email: string;
}

export const jsonBody = { 'content-type': 'application/json' };

/** A valid body that occurs nowhere else. */
export function person(): { name: string; email: string } {
  const name = unique('Ada');
  return { name, email: `${name.toLowerCase()}@example.org` };
}

export function post(subject: Subject, body: unknown): Promise<Reply> {
  return subject.rest.send('POST', '/users', { headers: jsonBody, body: JSON.stringify(body) });
}

export function put(subject: Subject, id: number | string, body: unknown): Promise<Reply> {
  return subject.rest.send('PUT', `/update/${id}`, { headers: jsonBody, body: JSON.stringify(body) });
}

export function remove(subject: Subject, id: number | string): Promise<Reply> {
  return subject.rest.send('DELETE', `/delete/${id}`);
}

/** All users; fails unless the reply is the success envelope of a read, with its keys and no more. */
export async function list(subject: Subject): Promise<readonly UserRecord[]> {
  const reply = await subject.rest.send('GET', '/users');
  return dataOf<readonly UserRecord[]>(reply);
}

/** The user with this id; fails unless the read succeeds. */
export async function read(subject: Subject, id: number | string): Promise<UserRecord> {
  return dataOf<UserRecord>(await subject.rest.send('GET', `/users/${id}`));
}

/** Creates a user and finds it in the list by its unique name. */
export async function created(subject: Subject, user = person()): Promise<UserRecord> {
  assertMessage(await post(subject, user), 'success', 'User created successfully');
  const found = (await list(subject)).filter(({ name }) => name === user.name);
  assert.equal(found.length, 1, `one user is named ${user.name}`);
  const [record] = found;
  assert.ok(record !== undefined);
  return record;
}

/** An id above every id in the store. */
export async function unknownId(subject: Subject): Promise<number> {
  return Math.max(0, ...(await list(subject)).map(({ id }) => id)) + 100_000;
}

/** The media type without parameters. */
export function mediaType(reply: Reply): string {
  return String(reply.headers['content-type'] ?? '')
    .replace(/;.*/s, '')
    .trim()
    .toLowerCase();
}

/** The envelope of a reply without data: exactly status and message, as application/json (CONTRACT.md#rest-envelope). */
export function assertMessage(reply: Reply, status: 'success' | 'error', message: string): void {
  assert.equal(mediaType(reply), 'application/json');
  assert.deepEqual(reply.json(), { status, message });
}

/** Runs `action` and fails if the list of users is not the same afterwards. */
export async function changesNothing<T>(subject: Subject, action: () => Promise<T>): Promise<T> {
  const before = await list(subject);
  const result = await action();
  assert.deepEqual(await list(subject), before, 'the users are as before');
  return result;
}

function dataOf<T>(reply: Reply): T {
  assert.equal(mediaType(reply), 'application/json');
  const envelope = reply.json() as { status: unknown; data: T };
  assert.deepEqual(Object.keys(envelope).sort(), ['data', 'status']);
  assert.equal(envelope.status, 'success');
  return envelope.data;
}
