import assert from 'node:assert/strict';
import { waitFor } from '../../support/wait-for.ts';
import type { Reply, Subject } from '../check.ts';

type Entry = Record<string, unknown>;

/** Delivers a body as JSON, with a token when there is one. */
export function deliver(subject: Subject, body: unknown, token?: string): Promise<Reply> {
  return subject.webhook.send('POST', '/webhook', {
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { 'x-webhook-token': token }),
    },
    body: JSON.stringify(body),
  });
}

/** The acknowledgement: 200 and exactly these bytes (CONTRACT.md#webhook-receipt). */
export function assertReceived(reply: Reply): void {
  assert.equal(reply.text, 'Webhook received');
  assert.equal(reply.status, 200);
}

/** The refusal: 401 and exactly these bytes (CONTRACT.md#webhook-receipt). */
export function assertUnauthorized(reply: Reply): void {
  assert.equal(reply.text, 'Unauthorized');
  assert.equal(reply.status, 401);
}

/** Waits for an entry that comes after the first `after` ones and whose message matches. */
export function logged(subject: Subject, words: RegExp, after: number): Promise<Entry> {
  return waitFor(`a log entry that says ${words}`, () =>
    subject
      .logs()
      .slice(after)
      .find(({ msg }) => words.test(String(msg))),
  );
}

/** Waits for the entry that names `event` and calls it unhandled (CONTRACT.md#events). */
export function loggedAsUnhandled(subject: Subject, event: string): Promise<Entry> {
  return waitFor(`a log entry of the unhandled event ${event}`, () =>
    subject.logs().find((entry) => entry.event === event && /unhandled/i.test(String(entry.msg))),
  );
}

/** Fails if any log entry mentions `text` in any field. */
export function assertNeverLogged(subject: Subject, text: string): void {
  const found = subject.logs().find((entry) => JSON.stringify(entry).includes(text));
  assert.equal(found, undefined, `${text} is in the log`);
}

/** What a handler was called with, as `fullModule` shows it. */
export interface Call {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
  readonly receivedAt: string;
  readonly keys: readonly string[];
  readonly isDate: boolean;
}

/** The calls that the handlers of a check's own module have noted; they come out of a custom endpoint. */
export async function calls(subject: Subject): Promise<readonly Call[]> {
  const reply = await subject.management.send('GET', '/actuator/calls');
  assert.equal(reply.status, 200);
  return reply.json() as readonly Call[];
}

/** Waits until a handler was called with data that have this token. */
export function handled(subject: Subject, token: string): Promise<Call> {
  return waitFor(`a handler call with ${token}`, async () =>
    (await calls(subject)).find(({ data }) => JSON.stringify(data ?? null).includes(token)),
  );
}
