import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import type { ForwardSettings } from './forward/read-forwards.ts';
import { createJobPlan, hasTarget } from './job-plan.ts';

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
    [{ order: () => () => {} }, /order gave no JSON value/],
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
