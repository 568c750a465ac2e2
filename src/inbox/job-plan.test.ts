import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { newDelivery } from '../../test/support/new-delivery.ts';
import type { Condition, HandlerSpec } from './config.ts';
import type { ClaimedJob } from './delivery.ts';
import type { Target } from './dispatch/target.ts';
import type { ForwardSettings } from './forward/forward.ts';
import {
  AskedDelivery,
  compileCondition,
  createJobPlan,
  deliveryRules,
  guardedTarget,
  hasTarget,
} from './job-plan.ts';

type RulesConfig = Parameters<typeof deliveryRules>[0];

describe('guarded target', () => {
  const { signal } = new AbortController();
  const job: ClaimedJob = {
    job: 1,
    target: 't',
    attempt: 1,
    crashes: 0,
    ordered: false,
    delivery: newDelivery(),
  };

  /** Runs the job with these rules; says what became of it. */
  async function run(rules: RulesConfig): Promise<readonly string[]> {
    const said: string[] = [];
    const target: Target = {
      name: 't',
      run: () => void said.push('ran'),
      concurrency: 1,
      timeout: 1,
      maxAttempts: 1,
      keptAttempts: 1,
      backoff: { base: 0, cap: 0 },
    };
    await guardedTarget(target, rules, () => said.push('filtered')).run(job, signal, () => {});
    return said;
  }

  test('a function is asked again before an attempt: the attempt runs, is left out, or fails', async () => {
    const boom = () => {
      throw new Error('boom');
    };
    assert.deepEqual(await run({ when: ({ data }) => data === 1 }), ['ran']);
    assert.deepEqual(await run({ when: ({ data }) => data === 2 }), ['filtered']);
    assert.deepEqual(await run({ order: ({ id }) => id }), ['ran']);
    await assert.rejects(run({ when: boom }), /boom/);
    await assert.rejects(run({ order: boom }), /boom/);
    await assert.rejects(run({ when: () => true, order: boom }), /boom/);
  });

  test('a condition is not asked again: it decided when the delivery came', async () => {
    assert.deepEqual(await run({ when: { pointer: '/data', is: 2 }, order: '/data' }), ['ran']);
  });
});

describe('job plan', () => {
  const handler = () => {};
  const forward = (name: string, events?: readonly string[]): ForwardSettings => ({
    name,
    url: new URL('https://example.com'),
    secrets: [],
    events,
    allowPrivate: false,
  });
  const facts = (event: string | null) => ({
    id: 'id-1',
    source: 'shop',
    event,
    dataPointer: '/data',
    receivedAt: 1_700_000_000_000,
  });
  const handlers = new Map<string, HandlerSpec>([
    ['paid', { handler }],
    ['invoice', { handler, order: '/data/customer' }],
    ['whole', { handler, order: '' }],
  ]);

  test('the handler of the event, and every forward address that wants it', () => {
    const plan = createJobPlan(handlers, [
      forward('all'),
      forward('some', ['paid', 'other']),
      forward('none', []),
    ]);
    const targets = (event: string | null) => plan(facts(event), {}).map(({ target }) => target);
    assert.deepEqual(targets('paid'), ['handler:paid', 'forward:all', 'forward:some']);
    assert.deepEqual(targets('other'), ['forward:all', 'forward:some']);
    assert.deepEqual(targets(null), ['forward:all']);
    for (const name of ['toString', 'constructor', '__proto__', '']) {
      assert.deepEqual(createJobPlan(handlers)(facts(name), {}), [], name);
    }
  });

  test('the key of an order is what stands in the body, told apart by its type', () => {
    const plan = createJobPlan(handlers);
    const key = (customer: unknown) => plan(facts('invoice'), { data: { customer } })[0]?.orderKey;
    assert.deepEqual([key('1'), key(1), key(true), key({ a: [1] })], ['"1"', '1', 'true', '{"a":[1]}']);
    assert.deepEqual([key(undefined), key(null)], [null, null]);
    assert.equal(plan(facts('paid'), { data: { customer: 1 } })[0]?.orderKey, null);
    for (const body of [undefined, null, 1, 'text', [], {}])
      assert.equal(plan(facts('invoice'), body)[0]?.orderKey, null);
  });

  test('deliveries with the same value have the same key, others another one', () => {
    const plan = createJobPlan(handlers);
    const key = (body: unknown) => plan(facts('whole'), body)[0]?.orderKey;
    const value = fc.jsonValue().filter((body) => body !== null);
    fc.assert(
      fc.property(value, value, (one, other) => {
        assert.equal(key(one), key(structuredClone(one)));
        assert.equal(key(one) === key(other), JSON.stringify(one) === JSON.stringify(other));
      }),
    );
  });

  test('a filter decides whether there is a job, of a handler and of each address by itself', () => {
    const opened = { pointer: '/action', is: 'opened' };
    const plan = createJobPlan(new Map<string, HandlerSpec>([['issues', { handler, when: opened }]]), [
      { ...forward('all'), when: { not: opened } },
      { ...forward('code', ['issues']), when: ({ source, data }) => source === 'shop' && data === 7 },
    ]);
    const targets = (body: unknown) => plan(facts('issues'), body).map(({ target }) => target);
    assert.deepEqual(targets({ action: 'opened' }), ['handler:issues']);
    assert.deepEqual(targets({ action: 'closed', data: 7 }), ['forward:all', 'forward:code']);
    assert.deepEqual(targets({ action: 'opened', data: 8 }), ['handler:issues']);
  });

  test('functions get the whole delivery, made once', () => {
    const got: unknown[] = [];
    const see = (delivery: unknown) => {
      got.push(delivery);
      return true;
    };
    const plan = createJobPlan(new Map([['e', { handler, when: see, order: see }]]), [
      { ...forward('f'), when: see },
    ]);
    const body = { data: { n: 1 } };
    plan(facts('e'), body);
    const receivedAt = new Date(1_700_000_000_000);
    const names = { event: 'e', senderEvent: 'e' };
    assert.deepEqual(got[0], { id: 'id-1', source: 'shop', ...names, body, data: { n: 1 }, receivedAt });
    assert.deepEqual([got.length, new Set(got).size], [3, 1]);
  });

  test("a handler is found by either name, the sender's own first, and its rules get the delivery by its name", () => {
    const got: unknown[] = [];
    const see = ({ event, senderEvent }: { event: string | null; senderEvent: string | null }) =>
      void got.push(`${event} of ${senderEvent}`);
    const rules = {
      when: (...[delivery]: Parameters<typeof see>) => {
        see(delivery);
        return true;
      },
      order: see,
      runAt: see,
      priority: see,
    };
    const both = new Map<string, HandlerSpec>([
      ['new_commit', { handler }],
      ['push', { handler, ...rules }],
    ]);
    const jobsOf = (handlers: ReadonlyMap<string, HandlerSpec>, senderEvent?: string | null) =>
      createJobPlan(handlers, [
        { ...forward('f', ['push']), when: rules.when },
        forward('g', ['new_commit', 'push']),
      ])({ ...facts('new_commit'), senderEvent }, {}).map(({ target }) => target);
    assert.deepEqual(jobsOf(both, 'push'), ['handler:push', 'forward:f', 'forward:g']);
    assert.deepEqual(got, [...Array(4).fill('push of push'), 'new_commit of push']);
    assert.deepEqual(jobsOf(both), ['handler:new_commit', 'forward:g']);
    assert.deepEqual(jobsOf(both, 'tag'), ['handler:new_commit', 'forward:g']);
    both.delete('new_commit');
    assert.deepEqual(jobsOf(both), ['forward:g']);
    assert.deepEqual(jobsOf(new Map(), 'push'), ['forward:f', 'forward:g']);
    const known = (senderEvent: string | null, ...forwards: readonly ForwardSettings[]) =>
      hasTarget({ event: 'new_commit', senderEvent }, both, forwards);
    assert.deepEqual([known('push'), known('tag'), known('tag', forward('f', ['tag']))], [true, false, true]);
  });

  test('forward addresses have an order as handlers do, by pointer or function', () => {
    const plan = createJobPlan(new Map([['e', { handler, order: ({ data }) => data }]]), [
      { ...forward('pointer'), order: '/data' },
      { ...forward('code'), order: ({ id }) => [id] },
    ]);
    const keys = (body: unknown) => plan(facts('e'), body).map(({ orderKey }) => orderKey);
    assert.deepEqual(keys({ data: 'a' }), ['"a"', '"a"', '["id-1"]']);
    assert.deepEqual(keys({}), [null, null, '["id-1"]']);
  });

  test('times and priorities are those of each target, and only what means something is kept', () => {
    const { receivedAt } = facts('e');
    const told: unknown[] = [];
    const plan = createJobPlan(
      new Map<string, HandlerSpec>([
        ['e', { handler, priority: '/level', runAt: '/at' }],
        ['fixed', { handler, priority: 7 }],
      ]),
      [
        {
          ...forward('f', ['e']),
          runAt: ({ receivedAt }) => new Date(receivedAt.getTime() + 5),
          priority: () => 3,
        },
      ],
      () => assert.fail(),
      (...about) => told.push(about.slice(1).map(String)),
    );
    const job = { target: 'handler:e', orderKey: null };
    const forwarded = { target: 'forward:f', orderKey: null, runAt: receivedAt + 5, priority: 3 };
    const at = receivedAt + 1;
    assert.deepEqual(plan(facts('e'), { level: 2, at }), [{ ...job, runAt: at, priority: 2 }, forwarded]);
    for (const body of [{}, { level: 0, at: receivedAt }, { level: -1, at: 7 }, null]) {
      assert.deepEqual(plan(facts('e'), body), [job, forwarded]);
    }
    assert.deepEqual(told, []);
    assert.deepEqual(plan(facts('e'), { level: 'high', at: 'soon' }), [job, forwarded]);
    assert.deepEqual(told, [
      ['handler:e', 'TypeError: runAt is a text, not a time'],
      ['handler:e', 'TypeError: priority is a text, not a whole number'],
    ]);
    assert.deepEqual(plan(facts('fixed'), {}), [{ target: 'handler:fixed', orderKey: null }]);
  });

  test('when a function throws or is asynchronous, the delivery gets its job and the failure is told', () => {
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    const boom = () => {
      throw new Error('boom');
    };
    const cases: readonly (readonly [Partial<HandlerSpec>, RegExp])[] = [
      [{ when: boom }, /boom/],
      [{ order: boom }, /boom/],
      [{ when: (async () => false) as unknown as () => boolean }, /when returned a promise/],
      [{ order: async () => Promise.reject(new Error('unseen')) }, /order returned a promise/],
      [{ order: () => cyclic }, /circular/],
      [{ order: () => () => {} }, /order did not return a JSON value/],
      [{ runAt: boom }, /boom/],
      [{ priority: boom }, /boom/],
      [{ runAt: (async () => 1) as unknown as () => number }, /runAt returned a promise/],
      [{ priority: (async () => 1) as unknown as () => number }, /priority returned a promise/],
    ];
    for (const [rules, message] of cases) {
      const told: unknown[] = [];
      const plan = createJobPlan(new Map([['e', { handler, ...rules }]]), [forward('all')], (...about) =>
        told.push(about),
      );
      const jobs = plan(facts('e'), {});
      assert.deepEqual(jobs, [
        { target: 'handler:e', orderKey: null },
        { target: 'forward:all', orderKey: null },
      ]);
      const [[delivery, target, error] = []] = told as [unknown, string, Error][];
      assert.deepEqual([delivery, target, told.length], [facts('e'), 'handler:e', 1]);
      assert.match(String(error), message);
    }
  });

  test('an event with a target is told from one without, whatever the filters say', () => {
    const never = { when: () => false };
    const known = (event: string | null, ...forwards: readonly ForwardSettings[]) =>
      hasTarget({ event }, new Map([['e', { handler, ...never }]]), forwards);
    assert.deepEqual([known('e'), known('x'), known(null)], [true, false, false]);
    assert.deepEqual([known('x', forward('f', ['x'])), known('y', forward('f', ['x']))], [true, false]);
    assert.equal(known(null, { ...forward('f'), ...never }), true);
  });
});

const facts = { id: 'id-1', source: '', event: 'e', dataPointer: '/data', receivedAt: 1_700_000_000_000 };
const TIME = Date.UTC(2026, 0, 31, 14);

type Rule = ReturnType<typeof runAtRule>;
const runAtRule = (runAt: RulesConfig['runAt']) => deliveryRules({ runAt }).runAt;
const priorityRule = (priority: string | (() => number)) => deliveryRules({ priority }).priority;

/** What a rule returns for a body, followed by the problems that it reports. */
function ask(rule: Rule, body: unknown): readonly (number | string | undefined)[] {
  const said: string[] = [];
  return [rule?.(new AskedDelivery(facts, body), ({ message }) => said.push(message)), ...said];
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

describe('compile condition', () => {
  const holds = (condition: Condition, body: unknown) => compileCondition(condition)(body);
  /** The values among these, at /x, for which a test holds. */
  const VALUES = [undefined, null, true, false, 0, 5, -1, '', '5', 'opened', [], ['opened'], {}];
  const chosen = (tests: object) =>
    VALUES.filter((x) => holds({ pointer: '/x', ...tests }, x === undefined ? {} : { x }));

  test('each test tells values apart by their type', () => {
    assert.deepEqual(chosen({ is: 'opened' }), ['opened']);
    assert.deepEqual(chosen({ is: 5 }), [5]);
    assert.deepEqual(chosen({ is: null }), [null]);
    assert.deepEqual(chosen({ is: false }), [false]);
    assert.deepEqual(
      chosen({ isNot: 5 }),
      VALUES.filter((value) => value !== 5),
    );
    assert.deepEqual(chosen({ in: ['5', true] }), [true, '5']);
    assert.deepEqual(
      chosen({ exists: true }),
      VALUES.filter((value) => value !== undefined),
    );
    assert.deepEqual(chosen({ exists: false }), [undefined]);
    assert.deepEqual(chosen({ includes: 'opened' }), [['opened']]);
    assert.deepEqual(chosen({ includes: 'open' }), []);
    assert.deepEqual(chosen({ startsWith: 'open' }), ['opened']);
    assert.deepEqual(chosen({ startsWith: '' }), ['', '5', 'opened']);
    assert.deepEqual(chosen({ above: 0 }), [5]);
    assert.deepEqual(chosen({ below: 0 }), [-1]);
    assert.deepEqual(chosen({ above: -1, below: 5 }), [0], 'all tests must hold');
  });

  test('the pointer goes into the body as RFC 6901 says', () => {
    const body = { 'a/b': [{ '~': 'x' }], length: 1 };
    assert.ok(holds({ pointer: '/a~1b/0/~0', is: 'x' }, body));
    assert.ok(holds({ pointer: '/a~1b/1', exists: false }, body));
    assert.ok(holds({ pointer: '/toString', exists: false }, body));
    assert.ok(holds({ pointer: '', is: 7 }, 7));
  });

  test('conditions are combined as in logic', () => {
    const leaf = fc.record({ pointer: fc.constantFrom('/a', '/b', '/c'), is: fc.constantFrom(1, 2) });
    const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
      condition: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        leaf,
        fc.record({ all: fc.array(tie('condition'), { minLength: 1, maxLength: 3 }) }),
        fc.record({ any: fc.array(tie('condition'), { minLength: 1, maxLength: 3 }) }),
        fc.record({ not: tie('condition') }),
      ),
    }));
    const body = fc.record({ a: fc.constantFrom(1, 2), b: fc.constantFrom(1, 2) }, { requiredKeys: [] });
    /** The same by the book, read anew at each body. */
    function expected(given: Condition, of: Readonly<Record<string, unknown>>): boolean {
      if ('all' in given) return given.all.reduce((so, each) => so && expected(each, of), true);
      if ('any' in given) return given.any.reduce((so, each) => so || expected(each, of), false);
      if ('not' in given) return !expected(given.not, of);
      return of[given.pointer.slice(1)] === given.is;
    }
    fc.assert(
      fc.property(condition, body, (given, of) => assert.equal(holds(given, of), expected(given, of))),
    );
  });

  test('it never throws, whatever the body is', () => {
    const tests = {
      is: 1,
      isNot: 2,
      in: ['a'],
      includes: 1,
      exists: true,
      startsWith: 'a',
      above: 1,
      below: 2,
    };
    for (const [name, value] of Object.entries(tests)) {
      const check = compileCondition({ pointer: '/a/0', [name]: value });
      fc.assert(
        fc.property(fc.jsonValue(), (body) => assert.equal(typeof check(body), 'boolean')),
        { numRuns: 50 },
      );
    }
  });
});
