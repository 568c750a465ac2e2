import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AskedDelivery, type NumberRule, priorityRule, runAtRule } from './rules.ts';

const facts = { id: 'id-1', source: '', event: 'e', dataPointer: '/data', receivedAt: 1_700_000_000_000 };
const TIME = Date.UTC(2026, 0, 31, 14);

/** What a rule makes of a body, and what it says about it. */
function ask(rule: NumberRule, body: unknown): readonly (number | string | undefined)[] {
  const said: string[] = [];
  return [rule(new AskedDelivery(facts, body), ({ message }) => said.push(message)), ...said];
}

test('a time is an ISO 8601 text or in milliseconds, or a date of a function', () => {
  const times: readonly unknown[] = [
    TIME,
    TIME - 0.5,
    '2026-01-31T14:00Z',
    '2026-01-31T15:00:00.000+01:00',
    '2026-01-31T14:00:00',
  ];
  for (const time of times) {
    assert.deepEqual(ask(runAtRule('/at'), { at: time }), [TIME], String(time));
    assert.deepEqual(
      ask(
        runAtRule(() => time as number),
        {},
      ),
      [TIME],
      String(time),
    );
  }
  assert.deepEqual(ask(runAtRule('/at'), { at: '2026-01-31' }), [Date.UTC(2026, 0, 31)]);
  const later = runAtRule(({ receivedAt }) => new Date(receivedAt.getTime() + 7));
  assert.deepEqual(ask(later, {}), [facts.receivedAt + 7]);
});

test('without a time there is nothing to say, and what is none is told', () => {
  for (const at of [undefined, null]) {
    assert.deepEqual(ask(runAtRule('/at'), { at }), [undefined]);
    assert.deepEqual(
      ask(
        runAtRule(() => at),
        {},
      ),
      [undefined],
    );
  }
  for (const at of ['', 'tomorrow', '2026-02-31', '1700000000000', '15m', true, [], {}, 9e15]) {
    const [time, said] = ask(runAtRule('/at'), { at });
    assert.equal(time, undefined);
    assert.match(String(said), /^runAt is .+, not a time$/, String(at));
  }
  assert.deepEqual(
    ask(
      runAtRule(() => new Date('x')),
      {},
    ),
    [undefined, 'runAt is an object, not a time'],
  );
});

test('a priority is a whole number from 0 to 100', () => {
  const cases: readonly (readonly [unknown, ...unknown[]])[] = [
    [7, 7],
    [0, 0],
    [-1, 0],
    [1e9, 100],
    [undefined, undefined],
    [null, undefined],
    [1.5, undefined, 'priority is 1.5, not a whole number'],
    ['high', undefined, 'priority is a text, not a whole number'],
  ];
  for (const [priority, ...expected] of cases) {
    assert.deepEqual(ask(priorityRule('/priority'), { priority }), expected, String(priority));
    assert.deepEqual(
      ask(
        priorityRule(() => priority as number),
        {},
      ),
      expected,
      String(priority),
    );
  }
});

test('whatever a body says, the rules give a whole number or none, and never throw', () => {
  fc.assert(
    fc.property(fc.anything(), (at) => {
      for (const rule of [runAtRule('/at'), priorityRule('/at')]) {
        const [number] = ask(rule, { at });
        assert.ok(number === undefined || Number.isSafeInteger(number), String(number));
      }
    }),
  );
});
