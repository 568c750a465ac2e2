import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import type { NewJob } from '../inbox/delivery.ts';
import type { DeliveryFacts } from '../inbox/rules/received-delivery.ts';
import { contractHandlers, withContractHandlers } from './contract-handlers.ts';
import { planOfReplay, sentName, unreachableHandlers } from './event-names.ts';
import { defaultLayout } from './sources/defaults.ts';
import type { SourceSettings } from './sources/source.ts';

const source = (name: string, scheme: 'github' | 'stripe' | 'hmac', events: Record<string, string> = {}) => {
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
  assert.match(problems(['push', 'new_commit'], [github])[0] ?? '', /^m: webhook\.handlers\.new_commit gets/);
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
