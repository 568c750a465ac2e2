import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../test/support/random.ts';
import { type AuditEvent, AuditLog, boundedEntry } from './audit.ts';

type AuditEntry = Parameters<AuditLog['record']>[0];

const refusal = (code: string): AuditEntry => ({
  principal: 'somebody',
  type: 'AUTHENTICATION_FAILURE',
  data: { door: 'rest', code, status: 401 },
  isAction: false,
});

async function recorded(work: (log: AuditLog) => void, append?: () => Promise<void>) {
  const stored: AuditEvent[][] = [];
  const errors: unknown[] = [];
  {
    await using log = new AuditLog({
      store: {
        async append(events) {
          await append?.();
          stored.push([...events]);
        },
        prune: async () => 0,
      },
      maxAge: 1_000,
      onError: (error) => errors.push(error),
      now: () => 7,
    });
    work(log);
  }
  return { stored, errors };
}

test('a flood of refusals becomes a hundred events and one for each kind with its number', async () => {
  const { stored } = await recorded((log) => {
    for (let i = 0; i < 50_000; i++) log.record(refusal(i % 2 === 0 ? 'A' : 'B'));
    log.record({ ...refusal('A'), type: 'LOGGER_LEVEL_CHANGED', isAction: true });
  });
  assert.equal(stored.length, 1, 'one write');
  const [events = []] = stored;
  // On a slow machine, the next refusals have their turn meanwhile.
  const single = events.length - 1 - 2;
  assert.ok(single >= 100 && single < 200, `${single}`);
  assert.ok(events.some(({ type, isAction }) => type === 'LOGGER_LEVEL_CHANGED' && isAction));
  const counts = events.slice(-2).map(({ principal, data }) => [principal, data.code]);
  assert.deepEqual(counts, [
    ['*', 'A'],
    ['*', 'B'],
  ]);
  const counted = events.slice(-2).reduce((sum, { data }) => sum + Number(data.count), 0);
  assert.equal(counted, 50_000 - single);
});

test('kinds that clients could invent are counted together', async () => {
  const { stored } = await recorded((log) => {
    for (let i = 0; i < 10_000; i++) log.record(refusal(String(i)));
  });
  const counted = stored.flat().filter(({ data }) => data.count !== undefined);
  assert.ok(counted.length <= 51);
  assert.equal(
    counted.reduce((sum, { data }) => sum + Number(data.count), 0),
    9_900,
  );
});

test('a database that fails costs the events, and nobody waits', async () => {
  const { stored, errors } = await recorded(
    (log) => log.record(refusal('A')),
    () => Promise.reject(new Error('gone')),
  );
  assert.deepEqual([stored.length, errors.length], [0, 1]);
});

test('texts of clients are short, well-formed and without control characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 400 }), (text) => {
      const entry = boundedEntry({ ...refusal('A'), principal: text, data: { path: text, n: 1 } });
      for (const shown of [entry.principal, String(entry.data.path)]) {
        assert.ok(shown.length <= 200 && shown.isWellFormed() && !/\p{Cc}/u.test(shown));
      }
      assert.equal(entry.data.n, 1);
    }),
  );
});
