import assert from 'node:assert/strict';
import type { Reply, Subject } from '../check.ts';
import { users as graphUsers } from './graphql.ts';
import { created, list as listUsers } from './rest.ts';
import { unique } from './unique.ts';
import { assertReceived, deliver, loggedAsUnhandled } from './webhook.ts';

/** A way to write something through one of the doors. */
export interface Writing {
  readonly name: 'create' | 'update' | 'createUser' | 'webhook';
  /** A body that would be accepted; what it writes carries the mark. */
  readonly body: string;
  readonly mark: string;
  readonly send: (body: string | Uint8Array) => Promise<Reply>;
}

/** The four ways to write. Their bodies carry `mark`. */
export async function writings(subject: Subject, mark: string): Promise<readonly Writing[]> {
  const { id } = await created(subject);
  const headers = { 'content-type': 'application/json' };
  const user = `{"name":"${mark}","email":"${mark}@example.org"}`;
  const query = 'mutation($n: String!) { createUser(name: $n, email: "x@example.org") { id } }';
  return [
    {
      name: 'create',
      mark,
      body: user,
      send: (body) => subject.rest.send('POST', '/users', { headers, body }),
    },
    {
      name: 'update',
      mark,
      body: user,
      send: (body) => subject.rest.send('PUT', `/update/${id}`, { headers, body }),
    },
    {
      name: 'createUser',
      mark,
      body: `{"query":"${query.replaceAll('"', '\\"')}","variables":{"n":"${mark}"}}`,
      send: (body) => subject.graphql.send('POST', '/graphql', { headers, body }),
    },
    {
      name: 'webhook',
      mark,
      body: `{"event":"${mark}","data":{"a":1}}`,
      send: (body) => subject.webhook.send('POST', '/webhook', { headers, body }),
    },
  ];
}

/** Fails unless all four doors do their ordinary work. */
export async function assertAlive(subject: Subject): Promise<void> {
  await created(subject);
  assert.ok((await graphUsers(subject)).length >= 2);
  assert.equal((await subject.management.send('GET', '/actuator/health')).status, 200);
  assertReceived(await deliver(subject, { event: unique('alive'), data: {} }));
}

/**
 * Sends what `spoil` makes of each body that would be accepted. Every reply must be a 4xx (this `status` when one
 * is given) without a trace of the insides, nothing may be written, and all doors must work afterwards.
 */
export async function refusesAll(
  subject: Subject,
  spoil: (writing: Writing) => Iterable<string | Uint8Array>,
  status?: number,
): Promise<void> {
  const mark = unique('hostile');
  const ways = await writings(subject, mark);
  const before = [await listUsers(subject), await graphUsers(subject)];
  for (const writing of ways) {
    for (const body of spoil(writing)) {
      const reply = await writing.send(body);
      const what = `${writing.name} ${Buffer.from(body).toString('latin1').slice(0, 120)}`;
      if (status !== undefined) assert.equal(reply.status, status, what);
      assert.ok(reply.status >= 400 && reply.status < 500, `${reply.status}: ${what}`);
      assertNoInsides(reply);
    }
  }
  assert.deepEqual([await listUsers(subject), await graphUsers(subject)], before, 'the users are as before');
  const last = unique('after');
  await deliver(subject, { event: last, data: {} });
  await loggedAsUnhandled(subject, last);
  for (const entry of subject.logs()) {
    assert.notEqual(entry.event, mark, 'a refused event is not processed');
  }
  await assertAlive(subject);
}

/** No stack, no file name, no package in a reply. */
export function assertNoInsides(reply: Reply): void {
  assert.doesNotMatch(reply.text, /node_modules|\.[jt]s:\d+|"stack"|\bat .+:\d+:\d+|SQLITE_/);
}
