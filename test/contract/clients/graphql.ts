import assert from 'node:assert/strict';
import type { Reply, Subject } from '../check.ts';

/** The members of a GraphQL request. */
export interface Operation {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>>;
  readonly operationName?: string;
}

/** A user as the GraphQL door shows it (CONTRACT.md#graphql-user). */
export interface GraphUser {
  readonly id: string;
  readonly name: string;
  readonly email: string;
}

export const path = '/graphql';

export const createMutation =
  'mutation Create($name: String!, $email: String!) { createUser(name: $name, email: $email) { id name email } }';

/** Sends an operation as JSON, the way every client library does. */
export function ask(subject: Subject, operation: Operation, accept = 'application/json'): Promise<Reply> {
  return subject.graphql.send('POST', path, {
    headers: { 'content-type': 'application/json', accept },
    body: JSON.stringify(operation),
  });
}

/** The data of a reply that has nothing but data. */
export function dataOf(reply: Reply): Record<string, unknown> {
  assert.equal(reply.status, 200);
  const body = reply.json() as { data: Record<string, unknown> };
  assert.deepEqual(Object.keys(body), ['data'], reply.text.slice(0, 500));
  return body.data;
}

/** Sends an operation that must succeed and gives its data. */
export async function data(
  subject: Subject,
  query: string,
  variables?: Operation['variables'],
): Promise<Record<string, unknown>> {
  return dataOf(await ask(subject, variables === undefined ? { query } : { query, variables }));
}

/** A reply to a request that was not executed: errors with a message each, and no data. */
export function assertRefused(reply: Reply): void {
  assert.ok(reply.status < 500, `status ${reply.status}`);
  const body = reply.json() as { errors?: readonly { message?: unknown }[] };
  assert.ok(!Object.hasOwn(body, 'data'), `no data in ${reply.text.slice(0, 200)}`);
  assert.ok(Array.isArray(body.errors) && body.errors.length > 0, `errors in ${reply.text.slice(0, 200)}`);
  for (const { message } of body.errors) assert.equal(typeof message, 'string');
}

export async function users(subject: Subject): Promise<readonly GraphUser[]> {
  const answer = await data(subject, '{ users { id name email } }');
  return answer.users as readonly GraphUser[];
}

export async function create(subject: Subject, name: string, email: string): Promise<GraphUser> {
  const answer = await data(subject, createMutation, { name, email });
  return answer.createUser as GraphUser;
}

/** Runs `action` and fails if the users are not the same afterwards. */
export async function changesNothing<T>(subject: Subject, action: () => Promise<T>): Promise<T> {
  const before = await users(subject);
  const result = await action();
  assert.deepEqual(await users(subject), before, 'the users are as before');
  return result;
}
