import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutStrace } from '../support/broken-machine.ts';
import { seededRandom } from '../support/random.ts';
import { control, earlyAcknowledgement, type SourceEdit } from '../support/source-copy.ts';
import { type Recording, record } from './power-cut/recording.ts';

const skip = withoutStrace();

/**
 * Fails unless the log was written with each delivery in it and then synced, and the sync had returned, before the
 * first byte of the delivery's reply was written. Resolves to how many deliveries there were.
 */
function checkOrder({ steps, history }: Recording): number {
  const calls = [...new Set(steps.map(({ call }) => call))];
  const begins = new Map(steps.flatMap(({ phase, call }, i) => (phase === 'begin' ? [[call, i]] : [])));
  const ends = new Map(steps.flatMap(({ phase, call }, i) => (phase === 'end' ? [[call, i]] : [])));
  const at = (times: typeof begins, call: (typeof calls)[number]) => times.get(call) ?? Number.NaN;

  for (const [token, { acknowledgedBy }] of history.deliveries) {
    const reply = calls.find((call) => call.kind === 'reply' && call.requestId === acknowledgedBy);
    const write = calls.find(
      (call) => call.kind === 'write' && call.path.endsWith('-wal') && call.data.includes(`"${token}"`),
    );
    assert.ok(reply !== undefined && write !== undefined, token);
    const isBetween = calls.some(
      (call) =>
        call.kind === 'sync' &&
        call.path.endsWith('-wal') &&
        !call.failed &&
        at(ends, write) < at(begins, call) &&
        at(ends, call) < at(begins, reply),
    );
    assert.ok(isBetween, `no sync of the log between the write of ${token} and its reply`);
  }
  return history.deliveries.size;
}

const LIFE = [{ writes: 60, end: 'SIGTERM' }] as const;

test('the sync of the log has returned before the reply to a delivery is written', { skip }, async () => {
  assert.ok(checkOrder(await record(LIFE, seededRandom(1))) > 10);
});

const sabotages: Readonly<Record<string, SourceEdit>> = {
  'acknowledges before it commits': earlyAcknowledgement,
  'commits without a sync': {
    file: 'src/sql/sqlite/connection.ts',
    from: 'PRAGMA synchronous=FULL',
    to: 'PRAGMA synchronous=NORMAL',
  },
};

for (const [name, edit] of Object.entries(sabotages)) {
  control(`a program that ${name} is found out`, {
    edits: [edit],
    skip,
    async find(main) {
      const recording = await record(LIFE, seededRandom(1), main);
      assert.throws(() => checkOrder(recording), /no sync of the log/);
    },
  });
}
