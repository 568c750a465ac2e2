import { parsePointer, valueAt } from '../core/json.ts';
import { isThenable } from '../core/scheduler.ts';
import { describeKind } from '../core/text.ts';
import type { Condition, DeliveryFilter, HandlerSpec, PointerCondition } from './config.ts';
import {
  type ClaimedJob,
  type DeliveryFacts,
  type DeliveryKey,
  type DeliveryPriority,
  type DeliveryTime,
  type EventNames,
  handlerTargetName,
  isCalled,
  isTenantSource,
  MAX_PRIORITY,
  type NewJob,
  OWN_SOURCES,
  parseIsoTime,
  type ReceivedDelivery,
  receivedDelivery,
} from './delivery.ts';
import { parseDeliveryBody } from './delivery-body.ts';
import type { Target } from './dispatch/target.ts';
import { handlerOf } from './event-names.ts';
import { type ForwardSettings, forwardTargetName } from './forward/forward.ts';

/**
 * Decides which jobs a delivery gets: one for the handler of its event, if any, and one for each forward
 * address of the event, under either name, unless the target's filter rejects it. `body` is the parsed body.
 * Never throws.
 */
export type JobPlan = (delivery: DeliveryFacts, body: unknown) => readonly NewJob[];

/** Called when a rule of a target throws. The delivery gets the job anyway, so that it is not lost. */
type RuleFailed = (delivery: DeliveryFacts, target: string, error: unknown) => void;

/** Called when a rule returns an invalid priority or time. The job then has none. */
type RuleIgnored = (delivery: DeliveryFacts, target: string, problem: TypeError) => void;

interface Route extends DeliveryRules {
  readonly target: string;
  /** The handler's name, which its rules get as the event. */
  readonly event?: string;
  /** The events of a forward address; undefined: all, or none if `users` or `changes` is set. */
  readonly events?: readonly string[] | undefined;
  /** The changes of users that it gets. */
  readonly users?: readonly string[] | undefined;
  /** The events of changes of relations that it gets. */
  readonly changes?: readonly string[] | undefined;
}

/** Creates the plan for these handlers, by event, and forward addresses. */
export function createJobPlan(
  handlers: ReadonlyMap<string, HandlerSpec>,
  forwards: readonly ForwardSettings[] = [],
  onRuleFailed: RuleFailed = () => {},
  onRuleIgnored: RuleIgnored = () => {},
): JobPlan {
  const ofHandlers = new Map<string, Route>(
    [...handlers].map(([event, spec]) => [
      event,
      { target: handlerTargetName(event), event, ...deliveryRules(spec) },
    ]),
  );
  const ofForwards = forwards.map((forward): Route => {
    const { name, events, users, changes } = forward;
    return { target: forwardTargetName(name), events, users, changes, ...deliveryRules(forward) };
  });

  function jobOf(route: Route, delivery: DeliveryFacts, asked: AskedDelivery): NewJob | undefined {
    const { target, wants, orderKey } = route;
    try {
      if (wants !== undefined && !wants(asked)) return undefined;
      const job = { target, orderKey: orderKey === undefined ? null : orderKey(asked) };
      return isTimed(route) ? { ...job, ...timingOf(route, delivery, asked) } : job;
    } catch (error) {
      onRuleFailed(delivery, target, error);
      return { target, orderKey: null };
    }
  }

  function timingOf({ target, priority, runAt }: Route, delivery: DeliveryFacts, asked: AskedDelivery) {
    const onInvalid = (problem: TypeError) => onRuleIgnored(delivery, target, problem);
    const time = runAt?.(asked, onInvalid);
    const level = priority?.(asked, onInvalid) ?? 0;
    return {
      ...(time !== undefined && time > delivery.receivedAt && { runAt: time }),
      ...(level > 0 && { priority: level }),
    };
  }

  return (delivery, body) => {
    const { event, source } = delivery;
    // Events for the endpoints of a tenant have their jobs already.
    if (isTenantSource(source)) return [];
    const asked = new AskedDelivery(delivery, body);
    const jobs: NewJob[] = [];
    const handler = source === OWN_SOURCES.users ? undefined : handlerOf(delivery, ofHandlers);
    const handled = handler && jobOf(handler, delivery, asked.calledBy(handler.event ?? event));
    if (handled !== undefined) jobs.push(handled);
    for (const route of ofForwards) {
      if (!isOf(route, delivery, source)) continue;
      const job = jobOf(route, delivery, asked);
      if (job !== undefined) jobs.push(job);
    }
    return jobs;
  };
}

/** Whether an event has a handler or forward address, regardless of their filters. */
export function hasTarget(
  names: EventNames,
  handlers: ReadonlyMap<string, HandlerSpec>,
  forwards: readonly ForwardSettings[],
): boolean {
  return handlerOf(names, handlers) !== undefined || forwards.some((forward) => isOf(forward, names, ''));
}

const isTimed = ({ priority, runAt }: Route) => priority !== undefined || runAt !== undefined;

/** Only the source identifies changes, because a sender may name its events anything. */
function isOf(
  { events, users = [], changes = [] }: Pick<Route, 'events' | 'users' | 'changes'>,
  names: EventNames,
  source: string,
): boolean {
  if (source === OWN_SOURCES.users) return users.some((change) => names.event === `user.${change}`);
  if (source === OWN_SOURCES.changes) return changes.some((change) => names.event === change);
  const isForChanges = users.length > 0 || changes.length > 0;
  return events === undefined ? !isForChanges : events.some((event) => isCalled(names, event));
}

/**
 * Wraps a target so that it runs its rule functions again before each attempt. If a function threw when the
 * delivery arrived, the job was stored anyway, and its attempts fail until the function returns. If the
 * filter then rejects the delivery, the job ends without calling the target, and `onFiltered` is called.
 * `event` is the handler's name, which its rules get as the event.
 */
export function guardedTarget(
  target: Target,
  config: RulesConfig,
  onFiltered: (job: ClaimedJob) => void,
  event?: string,
): Target {
  const rules = functionRules(config);
  if (rules === undefined) return target;
  return {
    ...target,
    run(...given) {
      const [job] = given;
      const { delivery } = job;
      const received = new AskedDelivery(delivery, parseDeliveryBody(delivery));
      const asked = received.calledBy(event ?? delivery.event);
      if (rules.wants?.(asked) === false) return onFiltered(job);
      rules.orderKey?.(asked);
      // Called only because they may throw: their values were used when the delivery arrived.
      rules.priority?.(asked, () => {});
      rules.runAt?.(asked, () => {});
      return target.run(...given);
    },
  };
}

/** The rules of a handler or forward address: which deliveries it gets, in which order and when. */
interface RulesConfig {
  readonly when?: DeliveryFilter | undefined;
  readonly order?: string | DeliveryKey | undefined;
  /** A number is the priority of the target itself and no rule for its deliveries. */
  readonly priority?: number | string | DeliveryPriority | undefined;
  readonly runAt?: string | DeliveryTime | undefined;
}

/** The compiled rules of a target. Those given as functions may throw. */
interface DeliveryRules {
  /** Absent: it gets every delivery. */
  readonly wants: ((asked: AskedDelivery) => boolean) | undefined;
  /** Returns null for a delivery without an order; absent: no delivery has one. */
  readonly orderKey: ((asked: AskedDelivery) => string | null) | undefined;
  /** Absent: all deliveries have the same priority. */
  readonly priority: NumberRule | undefined;
  /** Returns milliseconds since the epoch; absent: due at once. */
  readonly runAt: NumberRule | undefined;
}

/** Compiles the rules of a target. */
export function deliveryRules({ when, order, priority, runAt }: RulesConfig): DeliveryRules {
  return {
    wants: when === undefined ? undefined : filterOf(when),
    orderKey: order === undefined ? undefined : keyOf(order),
    priority: priority === undefined || typeof priority === 'number' ? undefined : priorityRule(priority),
    runAt: runAt === undefined ? undefined : runAtRule(runAt),
  };
}

/** The rules given as functions, which may throw; undefined if there are none. */
function functionRules({ when, order, priority, runAt }: RulesConfig): DeliveryRules | undefined {
  const rules = {
    when: typeof when === 'function' ? when : undefined,
    order: typeof order === 'function' ? order : undefined,
    priority: typeof priority === 'function' ? priority : undefined,
    runAt: typeof runAt === 'function' ? runAt : undefined,
  };
  return Object.values(rules).every((rule) => rule === undefined) ? undefined : deliveryRules(rules);
}

/** Tests a value; undefined means that it is missing. */
type Test = (value: unknown) => boolean;

/** Compiles a valid condition to a test of a parsed body that never throws. */
export function compileCondition(condition: Condition): Test {
  if ('all' in condition) {
    const all = condition.all.map(compileCondition);
    return (body) => all.every((holds) => holds(body));
  }
  if ('any' in condition) {
    const any = condition.any.map(compileCondition);
    return (body) => any.some((holds) => holds(body));
  }
  if ('not' in condition) {
    const holds = compileCondition(condition.not);
    return (body) => !holds(body);
  }
  const pointer = parsePointer(condition.pointer) ?? [];
  const tests = testsOf(condition);
  return (body) => {
    const value = valueAt(body, pointer);
    return tests.every((holds) => holds(value));
  };
}

function testsOf(condition: PointerCondition): readonly Test[] {
  const { is, isNot, in: values, includes, exists, startsWith, above, below } = condition;
  const tests: Test[] = [];
  if (is !== undefined) tests.push((value) => value === is);
  if (isNot !== undefined) tests.push((value) => value !== isNot);
  if (values !== undefined) {
    const set = new Set<unknown>(values);
    tests.push((value) => set.has(value));
  }
  if (includes !== undefined) tests.push((value) => Array.isArray(value) && value.includes(includes));
  if (exists !== undefined) tests.push((value) => (value !== undefined) === exists);
  if (startsWith !== undefined) {
    tests.push((value) => typeof value === 'string' && value.startsWith(startsWith));
  }
  if (above !== undefined) tests.push((value) => typeof value === 'number' && value > above);
  if (below !== undefined) tests.push((value) => typeof value === 'number' && value < below);
  return tests;
}

function filterOf(when: DeliveryFilter): (asked: AskedDelivery) => boolean {
  if (typeof when === 'function') {
    const wants = ruleValue(when, 'when');
    return (asked) => Boolean(wants(asked));
  }
  const holds = compileCondition(when);
  return ({ body }) => holds(body);
}

function keyOf(order: string | DeliveryKey): (asked: AskedDelivery) => string | null {
  const keyValue = ruleValue(order, 'order');
  return (asked) => keyText(keyValue(asked));
}

function keyText(key: unknown): string | null {
  if (key === undefined || key === null) return null;
  const text: string | undefined = JSON.stringify(key);
  if (text === undefined) throw new TypeError('order did not return a JSON value');
  return text;
}

/** A delivery for the rules of targets; the argument of rule functions is built once, on first use. */
export class AskedDelivery {
  /** The parsed body. */
  readonly body: unknown;
  readonly #facts: DeliveryFacts;
  #received: ReceivedDelivery | undefined;

  constructor(facts: DeliveryFacts, body: unknown) {
    this.#facts = facts;
    this.body = body;
  }

  /** The delivery with its event called `event`, for the rules of a handler. */
  calledBy(event: string | null): AskedDelivery {
    return event === this.#facts.event ? this : new AskedDelivery({ ...this.#facts, event }, this.body);
  }

  get received(): ReceivedDelivery {
    this.#received ??= receivedDelivery(this.#facts, this.body);
    return this.#received;
  }
}

/** Returns the value that a JSON pointer into the body, or a function, gives for a delivery. */
function ruleValue(
  rule: string | ((delivery: ReceivedDelivery) => unknown),
  name: string,
): (asked: AskedDelivery) => unknown {
  if (typeof rule === 'function') return ({ received }) => synchronous(rule(received), name);
  const pointer = parsePointer(rule) ?? [];
  return ({ body }) => valueAt(body, pointer);
}

/** Rejects a promise: it would count as true, and as the same key for all deliveries. */
function synchronous(result: unknown, name: string): unknown {
  if (!isThenable(result)) return result;
  // Its rejection would otherwise be unhandled.
  result.then(undefined, () => {});
  throw new TypeError(`${name} returned a promise; it must be synchronous`);
}

/** Returns a number, or undefined if the rule does not apply or its value is invalid (`onInvalid`). */
type NumberRule = (asked: AskedDelivery, onInvalid: (problem: TypeError) => void) => number | undefined;

/** A rule that returns the priority of a delivery, from 0 to MAX_PRIORITY. */
function priorityRule(rule: string | DeliveryPriority): NumberRule {
  const given = ruleValue(rule, 'priority');
  return (asked, onInvalid) => {
    const value = given(asked);
    if (value === undefined || value === null) return undefined;
    if (Number.isInteger(value)) return Math.min(MAX_PRIORITY, Math.max(0, Number(value)));
    onInvalid(new TypeError(`priority is ${describeKind(value)}, not a whole number`));
    return undefined;
  };
}

/** A rule that returns the time before which a delivery is not due, in milliseconds since the epoch. */
function runAtRule(rule: string | DeliveryTime): NumberRule {
  const given = ruleValue(rule, 'runAt');
  return (asked, onInvalid) => {
    const value = given(asked);
    if (value === undefined || value === null) return undefined;
    const time = timeOf(value);
    if (time === undefined) onInvalid(new TypeError(`runAt is ${describeKind(value)}, not a time`));
    return time;
  };
}

function timeOf(value: unknown): number | undefined {
  const time = typeof value === 'string' ? parseIsoTime(value, 'Z') : value;
  if (typeof time !== 'number' && !(time instanceof Date)) return undefined;
  // Rounded up to a whole millisecond, so that it is never early. `Date` limits the range.
  const ms = new Date(Math.ceil(Number(time))).getTime();
  return Number.isNaN(ms) ? undefined : ms;
}
