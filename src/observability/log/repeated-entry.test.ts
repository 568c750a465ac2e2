import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { captureLog } from '../../../test/support/log-capture.ts';
import { LineTap } from './line-tap.ts';
import { openLog } from './log.ts';
import { repeatedEntry } from './repeated-entry.ts';

async function open(texts: readonly string[] = []) {
  const capture = captureLog();
  const secrets = { texts };
  const tap = new LineTap(secrets);
  const root = await openLog({ level: 'info', stream: capture.stream, secrets, tap });
  const log = root.child({ logger: 'inbox' });
  const repeated = repeatedEntry(log, tap, 'delivery', 'unhandled event');
  const say = (id: string, fixed: Readonly<Record<string, string | null>>) =>
    repeated(id, JSON.stringify(fixed), fixed);
  return { ...capture, log, secrets, say };
}

const withoutTime = (entries: readonly Record<string, unknown>[]) =>
  entries.map(({ time, ...rest }) => {
    assert.ok(Number.isFinite(Date.parse(String(time))));
    return rest;
  });

test('entries are those that the log itself makes, whatever their fields hold', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.constantFrom('"delivery":"id-1"', ',"time":"x"', '\\'),
  );
  const fixed = fc.record({ source: text, event: fc.option(text) }, { noNullPrototype: true });
  await fc.assert(
    fc.asyncProperty(fc.array(fixed, { minLength: 1, maxLength: 4 }), async (all) => {
      const repeated = await open();
      const plain = await open();
      for (const id of ['id-1', 'id-2', 'id-3']) {
        for (const each of all) {
          repeated.say(id, each);
          plain.log.info({ delivery: id, ...each }, 'unhandled event');
        }
      }
      assert.deepEqual(repeated.broken, []);
      assert.deepEqual(withoutTime(repeated.entries), withoutTime(plain.entries));
    }),
  );
});

test('a level that is changed holds at once', async () => {
  const { log, say, entries } = await open();
  say('1', { event: 'a' });
  log.level = 'warn';
  say('2', { event: 'a' });
  log.level = 'info';
  say('3', { event: 'a' });
  assert.deepEqual(
    entries.map(({ delivery }) => delivery),
    ['1', '3'],
  );
});

test('what becomes secret is in no later entry', async () => {
  const { secrets, say, entries } = await open(['other-secret']);
  say('1', { event: 'canary-1' });
  say('2', { event: 'canary-1' });
  secrets.texts = ['canary-1'];
  say('3', { event: 'canary-1' });
  say('4', { event: 'canary-1' });
  assert.deepEqual(
    entries.map(({ delivery, event }) => [delivery, event]),
    [
      ['1', 'canary-1'],
      ['2', 'canary-1'],
      ['3', '******'],
      ['4', '******'],
    ],
  );
});

test('an id that is a known secret is hidden each time', async () => {
  const { say, entries } = await open(['secret-id']);
  say('secret-id', { event: 'a' });
  say('secret-id', { event: 'a' });
  assert.deepEqual(
    entries.map(({ delivery }) => delivery),
    ['******', '******'],
  );
});

test('any number of names can be logged', async () => {
  const { say, entries } = await open();
  for (let i = 0; i < 300; i++) say('1', { event: `event-${i % 150}` });
  assert.deepEqual(
    entries.map(({ event }) => event),
    Array.from({ length: 300 }, (_, i) => `event-${i % 150}`),
  );
});
