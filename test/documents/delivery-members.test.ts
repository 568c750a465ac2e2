import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ClaimedJob, ForwardedDelivery, ReceivedDelivery } from '../../src/inbox/delivery.ts';
import { deliveryOf } from '../../src/inbox/event-names.ts';
import { transformer } from '../../src/inbox/forward/transform.ts';
import { createJobPlan } from '../../src/inbox/job-plan.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { ROOT } from './documents.ts';

/** The rows of the table of members: for each column of who gets it, the names. */
function documented(): readonly (readonly string[])[] {
  const guide = readFileSync(join(ROOT, 'docs/HANDLERS.md'), 'utf8');
  const [, table = ''] =
    /\| Member \| Handlers \| Rules \| Transformations \|.*\n\| --- .*\n((?:\| .*\n)+)/.exec(guide) ?? [];
  const rows = table
    .trimEnd()
    .split('\n')
    .map((row) => row.split('|').map((cell) => cell.trim()));
  assert.ok(rows.length > 5);
  return [2, 3, 4].map((column) =>
    rows.flatMap((row) => (row[column] === 'yes' ? [row[1]?.replaceAll('`', '') ?? ''] : [])),
  );
}

test('the table of members has those that handlers, rules and transformations get', async () => {
  const delivery = newDelivery();
  const job: ClaimedJob = { job: 1, target: 'handler:e', attempt: 1, crashes: 0, ordered: false, delivery };
  const got: object[] = [deliveryOf(job, 'e')];
  const when = (received: ReceivedDelivery) => got.push(received) > 0;
  createJobPlan(new Map([['e', { handler: () => {}, when }]]))(delivery, {});
  const transform = (forwarded: ForwardedDelivery) => {
    got.push(forwarded);
    return {};
  };
  const unchanged = { url: new URL('http://example.com'), headers: {}, body: delivery.body };
  await transformer(transform, 1_000)(job, unchanged, new AbortController().signal);
  assert.deepEqual(
    got.map((members) => Object.keys(members).toSorted()),
    documented().map((names) => names.toSorted()),
  );
});
