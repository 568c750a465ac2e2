import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { captureLog } from '../../test/support/log-capture.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { openLog } from './log.ts';
import { LOG_LEVELS, Loggers, LogTail } from './loggers.ts';

type LogLevel = (typeof LOG_LEVELS)[number];

const ROOT = 'ROOT';

describe('loggers', () => {
  async function open(level: LogLevel = 'info') {
    const capture = captureLog();
    const root = await openLog({ level, stream: capture.stream });
    return { ...capture, root, loggers: new Loggers(root) };
  }

  test('a child names itself in its entries, and is the same for the same name', async () => {
    const { loggers, entries } = await open();
    const rest = loggers.child('rest');
    assert.equal(loggers.child('rest'), rest);
    rest.info('hello');
    assert.equal(entries[0]?.logger, 'rest');
    assert.deepEqual(loggers.names(), [ROOT, 'rest']);
    assert.throws(() => loggers.add('rest', { level: 'info' }), TypeError);
  });

  test('a level of its own lets entries through that others do not write', async () => {
    const { root, loggers, entries } = await open();
    const [rest, graphql] = [loggers.child('rest'), loggers.child('graphql')];
    loggers.setLevel('rest', 'debug');
    rest.debug('seen');
    graphql.debug('unseen');
    root.debug('unseen');
    assert.deepEqual(
      entries.map(({ msg }) => msg),
      ['seen'],
    );
    assert.deepEqual(loggers.state('rest'), { configured: 'debug', effective: 'debug', until: undefined });
    assert.deepEqual(loggers.state('graphql'), {
      configured: undefined,
      effective: 'info',
      until: undefined,
    });
  });

  test('the level of ROOT is that of all without one of their own, and without one that of the start', async () => {
    const { root, loggers } = await open('warn');
    const rest = loggers.child('rest');
    loggers.child('graphql');
    loggers.setLevel('graphql', 'error');
    loggers.setLevel(ROOT, 'trace');
    assert.deepEqual([root.level, rest.level, loggers.child('graphql').level], ['trace', 'trace', 'error']);
    // Who comes later takes it too.
    assert.equal(loggers.child('late').level, 'trace');
    loggers.setLevel(ROOT, undefined);
    assert.deepEqual([root.level, rest.level, loggers.child('graphql').level], ['warn', 'warn', 'error']);
    assert.equal(loggers.state(ROOT)?.configured, 'warn');
    loggers.setLevel('graphql', undefined);
    assert.equal(loggers.child('graphql').level, 'warn');
  });

  test('an unknown name has no state, and setting its level does nothing', async () => {
    const { loggers } = await open();
    assert.equal(loggers.state('nope'), undefined);
    loggers.setLevel('nope', 'debug');
    assert.deepEqual(loggers.names(), [ROOT]);
  });

  test('a temporary level ends, and what held before holds again', async () => {
    const { loggers } = await open();
    loggers.child('rest');
    loggers.setLevel('rest', 'error');
    const before = Date.now();
    loggers.setLevel('rest', 'trace', 20);
    const { effective, until } = loggers.state('rest') ?? {};
    assert.equal(effective, 'trace');
    assert.ok(until !== undefined && until >= before + 20 && until <= Date.now() + 20);
    await waitFor('the level to fall back', () => loggers.state('rest')?.effective === 'error');
    assert.deepEqual(loggers.state('rest'), { configured: 'error', effective: 'error', until: undefined });
    assert.equal(loggers.child('rest').level, 'error');
  });

  test('of two temporary levels the last one counts, and both fall back to what was meant to last', async () => {
    const { loggers } = await open();
    loggers.child('rest');
    loggers.setLevel('rest', 'warn');
    loggers.setLevel('rest', 'debug', 60_000);
    loggers.setLevel('rest', 'trace', 20);
    await waitFor('the level to fall back', () => loggers.state('rest')?.effective === 'warn');
    // A level that is meant to last ends a temporary one.
    loggers.setLevel('rest', 'debug', 20);
    loggers.setLevel('rest', 'fatal');
    await new Promise((resolve) => setTimeout(resolve, 40));
    assert.equal(loggers.state('rest')?.effective, 'fatal');
    loggers.setLevel(ROOT, 'debug', 60_000);
    loggers[Symbol.dispose]();
  });

  test('whatever is set and taken away, a logger has its own level or that of ROOT', async () => {
    const names = [ROOT, 'a', 'b'];
    const level = fc.constantFrom(undefined, ...LOG_LEVELS);
    const root = await openLog({ level: 'info', stream: captureLog().stream });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom(...names), level)), (changes) => {
        root.level = 'info';
        const loggers = new Loggers(root);
        const model = new Map<string, LogLevel | undefined>();
        for (const name of names.slice(1)) loggers.child(name);
        for (const [name, to] of changes) {
          loggers.setLevel(name, to);
          model.set(name, to);
          const ofRoot = model.get(ROOT) ?? 'info';
          for (const each of names) {
            const logger = each === ROOT ? root : loggers.child(each);
            assert.equal(logger.level, model.get(each) ?? ofRoot);
            assert.equal(loggers.state(each)?.effective, logger.level);
          }
        }
      }),
    );
  });
});

describe('log tail', () => {
  test('the last thousand entries are kept, with their numbers', () => {
    const tail = new LogTail();
    for (let i = 1; i <= 5_000; i++) assert.equal(tail.add(`${i}`), `${i}`);
    const kept = tail.after(0);
    assert.deepEqual([kept.length, kept[0]?.line, kept.at(-1)?.number], [1_000, '4001', 5_000]);
    assert.deepEqual(
      tail.after(4_998).map(({ line }) => line),
      ['4999', '5000'],
    );
  });

  test('long entries leave fewer of them', () => {
    const tail = new LogTail();
    for (let i = 0; i < 100; i++) tail.add('x'.repeat(100_000));
    assert.equal(tail.after(0).length, 5);
    tail.add('y'.repeat(1_000_000));
    assert.equal(tail.after(0).length, 0, 'one that is too long itself is not kept');
    assert.equal(tail.latest, 101);
  });
});
