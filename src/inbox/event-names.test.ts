import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { defaultLayout, type SourceSettings } from '../signatures/sources.ts';
import type { HandlerSpec } from './config.ts';
import type { ClaimedJob, Delivery, DeliveryFacts, HandlerContext, NewJob } from './delivery.ts';
import {
  contractHandlers,
  handlerTarget,
  planOfReplay,
  sentName,
  unreachableHandlers,
  withContractHandlers,
} from './event-names.ts';

describe('handler target', () => {
  const defaults = { concurrency: 16, timeout: 30_000, maxAttempts: 10, backoff: { base: 1, cap: 2 } };
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const target = (spec: HandlerSpec) => handlerTarget('paid', spec, defaults, () => silent);

  function job(body: string, dataPointer: string, changes: Partial<ClaimedJob['delivery']> = {}): ClaimedJob {
    const delivery = {
      id: 'id-1',
      source: 'shop',
      event: 'orders/paid',
      dataPointer,
      contentType: null,
      body: Buffer.from(body),
      receivedAt: 1_700_000_000_000,
      ...changes,
    };
    return { job: 1, target: 'handler:paid', attempt: 3, crashes: 0, ordered: false, delivery };
  }

  /** What the handler of a job is given. */
  async function given(claimed: ClaimedJob): Promise<Delivery> {
    const got: Delivery[] = [];
    const handler = (delivery: Delivery) => void got.push(delivery);
    await target({ handler }).run(claimed, new AbortController().signal, () => {});
    return got[0] ?? assert.fail('it was not called');
  }

  test('a handler has the limits that it names, and those of the door for the rest', () => {
    const handler = () => {};
    const { name, concurrency, timeout, maxAttempts } = target({ handler });
    assert.deepEqual([name, concurrency, timeout, maxAttempts], ['handler:paid', 16, 30_000, 10]);
    const own = target({ handler, concurrency: 2, timeout: 5, attempts: 1 });
    assert.deepEqual([own.concurrency, own.timeout, own.maxAttempts], [2, 5, 1]);
  });

  test('it gets its delivery under its own name for the event, with the data that the pointer finds and the whole body', async () => {
    const { data, body, ...rest } = await given(job('{"data":{"a/b":[1,{"n":7}]}}', '/data/a~1b/1'));
    assert.deepEqual([data, body], [{ n: 7 }, { data: { 'a/b': [1, { n: 7 }] } }]);
    const receivedAt = new Date(1_700_000_000_000);
    const names = { event: 'paid', senderEvent: 'paid' };
    assert.deepEqual(rest, { id: 'id-1', source: 'shop', ...names, headers: {}, receivedAt, attempt: 3 });
    const sent = await given(job('{}', '', { event: 'paid', senderEvent: 'orders/paid' }));
    assert.deepEqual([sent.event, sent.senderEvent], ['paid', 'orders/paid']);
    const headers = '{"x-event":"paid"}';
    assert.deepEqual((await given(job('{}', '', { headers }))).headers, { 'x-event': 'paid' });
    assert.deepEqual((await given(job('[1]', ''))).data, [1]);
    assert.equal((await given(job('{}', '/data'))).data, undefined);
    assert.equal((await given(job('null', '/data'))).data, undefined);
  });

  test('the data of a form are those of its payload, or its fields', async () => {
    const contentType = 'application/x-www-form-urlencoded';
    const form = `payload=${encodeURIComponent('{"data":{"n":7}}')}`;
    assert.deepEqual((await given(job(form, '/data', { contentType }))).data, { n: 7 });
    assert.deepEqual((await given(job('a=1&b=2', '', { contentType }))).data, { a: '1', b: '2' });
  });

  test('it gets the signal and the log, and its failure is that of the attempt', async () => {
    const { signal } = new AbortController();
    let context: HandlerContext | undefined;
    const spec: HandlerSpec = {
      handler: (_delivery, got) => {
        context = got;
        return Promise.reject(new Error('not now'));
      },
    };
    await assert.rejects(async () => target(spec).run(job('{}', ''), signal, () => {}), /not now/);
    assert.deepEqual([context?.signal, context?.log], [signal, silent]);
  });
});

describe('contract handlers', () => {
  test('they say what they did, and leave naming the delivery to their log, which does it', () => {
    const said: unknown[][] = [];
    const note = (...args: unknown[]) => void said.push(args);
    const context = {
      log: { info: note, warn: note, error: note },
      attempt: 1,
      signal: new AbortController().signal,
    };
    for (const handler of Object.values(contractHandlers)) {
      void handler({ id: '1' } as never, context as never);
    }
    assert.deepEqual(said, [['commit notification processed'], ['payment notification processed']]);
  });
});

describe('event names', () => {
  const source = (
    name: string,
    scheme: 'github' | 'stripe' | 'hmac',
    events: Record<string, string> = {},
  ) => {
    const layout = defaultLayout(scheme);
    return { name, scheme, ...layout, events: new Map([...layout.events, ...Object.entries(events)]) };
  };
  const github = source('github', 'github');
  const stripe = source('stripe', 'stripe');
  const handlers = (...names: readonly string[]) =>
    new Map<string, HandlerSpec>(names.map((name) => [name, { handler: () => {} }]));
  const payments = [
    'payment_intent.succeeded',
    'charge.succeeded',
    'invoice.paid',
    'invoice.payment_succeeded',
  ];

  test('a handler is unreachable when each event that has its name by a source has a handler of its own', () => {
    const problems = (
      names: readonly string[],
      sources: readonly ReturnType<typeof source>[],
      schedules: readonly { readonly event: string }[] = [],
    ) => unreachableHandlers(handlers(...names), sources, schedules, 'm: webhook.handlers');
    assert.match(
      problems(['push', 'new_commit'], [github])[0] ?? '',
      /^m: webhook\.handlers\.new_commit gets/,
    );
    assert.equal(problems([...payments, 'payment_received'], [stripe]).length, 1);
    // One of the four is left.
    assert.deepEqual(problems([...payments.slice(1), 'payment_received'], [stripe]), []);
    // Without a source, or without a handler that wins, nothing takes its events.
    assert.deepEqual(problems(['push', 'new_commit'], []), []);
    assert.deepEqual(problems(['push', 'new_commit'], [stripe]), []);
    assert.deepEqual(problems(['push'], [github]), []);
    assert.deepEqual(problems(['new_commit'], [github]), []);
    // Another way to the name: a schedule, another event of a source, the name itself.
    assert.deepEqual(problems(['push', 'new_commit'], [github], [{ event: 'new_commit' }]), []);
    const shop = source('shop', 'hmac', { pushed: 'new_commit' });
    assert.deepEqual(problems(['push', 'new_commit'], [github, shop]), []);
    const direct = source('shop', 'hmac', { new_commit: 'new_commit' });
    assert.deepEqual(problems(['push', 'new_commit'], [github, direct]), []);
    assert.deepEqual(problems(['push', 'new_commit'], [source('github', 'github', { push: 'push' })]), []);
    // Of several sources all are named, each with what keeps the names apart.
    const [problem = ''] = problems(['push', 'pushed', 'new_commit'], [github, shop]);
    assert.match(problem, /"push" of webhook\.sources\.github and "pushed" of webhook\.sources\.shop/);
    assert.match(
      problem,
      /github\.events: \{ "push": "push" \} and webhook\.sources\.shop\.events: \{ "pushed": "pushed" \}$/,
    );
    assert.deepEqual(problems(['a b', 'push'], [source('g', 'github', { push: 'a b' })]).length, 1);
  });

  test('an event is sent by its own name, whichever is given', () => {
    assert.deepEqual(
      ['push', 'new_commit', 'issues'].map((name) => sentName(github, name)),
      ['push', 'push', 'issues'],
    );
    assert.equal(sentName(stripe, 'payment_received'), 'payment_intent.succeeded');
    assert.equal(sentName(stripe, 'invoice.paid'), 'invoice.paid');
    assert.equal(sentName(defaultLayout('token'), 'new_commit'), 'new_commit');
    // A sender's own name that is also the name of another one.
    const swapped = source('shop', 'hmac', { a: 'b', b: 'c' });
    assert.deepEqual([sentName(swapped, 'b'), sentName(swapped, 'c')], ['b', 'b']);
  });

  test("the contract's handlers are there, but for events that the user handles under either name", () => {
    const names = (own: readonly string[], sources: readonly ReturnType<typeof source>[]) =>
      [...withContractHandlers(handlers(...own), sources as unknown as SourceSettings[]).keys()].toSorted();
    assert.deepEqual(names([], [github, stripe]), ['new_commit', 'payment_received']);
    assert.deepEqual(names(['push'], [github, stripe]), ['payment_received', 'push']);
    assert.deepEqual(names(['push', 'invoice.paid'], [github, stripe]), ['invoice.paid', 'push']);
    assert.deepEqual(names(['push', 'invoice.paid'], []), [
      'invoice.paid',
      'new_commit',
      'payment_received',
      'push',
    ]);
    const own = handlers('new_commit');
    assert.equal(withContractHandlers(own, []).get('new_commit'), own.get('new_commit'));
    assert.deepEqual(Object.keys(contractHandlers), ['new_commit', 'payment_received']);
  });

  test("a replay asks the request for the sender's own name where none is stored", () => {
    const asked: (string | null | undefined)[] = [];
    const plan = planOfReplay(
      ({ senderEvent }: DeliveryFacts): readonly NewJob[] => {
        asked.push(senderEvent);
        return [];
      },
      [github, stripe] as unknown as SourceSettings[],
    );
    const stored = { id: 'i', dataPointer: '', receivedAt: 1, event: 'new_commit', source: 'github' };
    plan({ ...stored, headers: '{"x-github-event":"push"}' }, {});
    plan({ ...stored, senderEvent: 'push', headers: '{"x-github-event":"other"}' }, {});
    plan({ ...stored, event: 'payment_received', source: 'stripe' }, { type: 'charge.succeeded' });
    assert.deepEqual(asked.splice(0), ['push', 'push', 'charge.succeeded']);
    // It was not renamed so, came without that header or from elsewhere.
    plan({ ...stored, headers: '{"x-github-event":"new_commit"}' }, {});
    plan({ ...stored, headers: null }, {});
    plan({ ...stored, source: '' }, { type: 'charge.succeeded' });
    plan({ ...stored, event: null }, {});
    assert.deepEqual(asked, [null, null, null, null]);
  });
});
