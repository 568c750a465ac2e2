import type { HandlerSpec } from '../config/schema/code.ts';
import type { Condition, DeliveryFilter, PointerCondition } from '../config/schema/webhook.ts';
import { parsePointer, valueAt } from '../core/json.ts';
import {
  type ClaimedJob,
  type DeliveryFacts,
  type EventNames,
  handlerTargetName,
  isCalled,
  type NewJob,
  parseDeliveryBody,
  USERS_SOURCE,
} from './delivery.ts';
import type { Target } from './dispatch/target.ts';
import { handlerOf } from './event-names.ts';
import { type ForwardSettings, forwardTargetName } from './forward/forward.ts';
import {
  AskedDelivery,
  type DeliveryKey,
  type DeliveryPriority,
  type DeliveryTime,
  type NumberRule,
  priorityRule,
  ruleValue,
  runAtRule,
} from './rules.ts';

/** Whether a value holds; undefined stands for one that is missing. */
type Test = (value: unknown) => boolean;

/** Prepares a valid condition: the result says whether it holds for a parsed body, and never throws. */
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

/** Which deliveries a handler or forward address wants, in which order and when, as it is configured. */
export interface RulesConfig {
  readonly when?: DeliveryFilter | undefined;
  readonly order?: string | DeliveryKey | undefined;
  /** A number is that of the target, and no rule about its deliveries. */
  readonly priority?: number | string | DeliveryPriority | undefined;
  readonly runAt?: string | DeliveryTime | undefined;
}

/** The rules of a target. Those that are functions of the configuration may throw. */
interface DeliveryRules {
  /** Absent: it wants every delivery. */
  readonly wants: ((asked: AskedDelivery) => boolean) | undefined;
  /** Gives null for a delivery that is not ordered; absent: none is. */
  readonly orderKey: ((asked: AskedDelivery) => string | null) | undefined;
  /** Absent: all deliveries have the same. */
  readonly priority: NumberRule | undefined;
  /** In milliseconds since the epoch; absent: at once. */
  readonly runAt: NumberRule | undefined;
}

/** Prepares the rules of a target. */
function deliveryRules({ when, order, priority, runAt }: RulesConfig): DeliveryRules {
  return {
    wants: when === undefined ? undefined : filterOf(when),
    orderKey: order === undefined ? undefined : keyOf(order),
    priority: priority === undefined || typeof priority === 'number' ? undefined : priorityRule(priority),
    runAt: runAt === undefined ? undefined : runAtRule(runAt),
  };
}

/** The rules that may throw; undefined when none can. */
function functionRules({ when, order, priority, runAt }: RulesConfig): DeliveryRules | undefined {
  const rules = {
    when: typeof when === 'function' ? when : undefined,
    order: typeof order === 'function' ? order : undefined,
    priority: typeof priority === 'function' ? priority : undefined,
    runAt: typeof runAt === 'function' ? runAt : undefined,
  };
  return Object.values(rules).every((rule) => rule === undefined) ? undefined : deliveryRules(rules);
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
  if (text === undefined) throw new TypeError('order gave no JSON value');
  return text;
}

/**
 * A target that asks the functions of its rules again before each attempt: one that threw when the delivery came has
 * left a job whose attempts fail until it gives an answer. A job that is not wanted then ends without an attempt at its
 * target; `onFiltered` is told. `event` is the name of a handler, which its rules get the delivery by.
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
      // What they say has decided when the delivery came.
      rules.priority?.(asked, () => {});
      rules.runAt?.(asked, () => {});
      return target.run(...given);
    },
  };
}

/**
 * Decides which jobs a delivery gets: one for its event's handler, if any, and one for each forward address of the event,
 * by either name of the event, unless their filters do not want it. `body` is the parsed one. Never throws.
 */
export type JobPlan = (delivery: DeliveryFacts, body: unknown) => readonly NewJob[];

/** Called when a rule of a target throws; the delivery then gets the job, so that it is not lost. */
type RuleFailed = (delivery: DeliveryFacts, target: string, error: unknown) => void;

/** Called when a target's rule gives a priority or a time that makes no sense; the delivery then has none. */
type RuleIgnored = (delivery: DeliveryFacts, target: string, problem: TypeError) => void;

interface Route extends DeliveryRules {
  readonly target: string;
  /** The name of a handler, by which its rules get the delivery. */
  readonly event?: string;
  /** The events; undefined: all, or none where `users` names changes. */
  readonly events?: readonly string[] | undefined;
  /** The changes of users. */
  readonly users?: readonly string[] | undefined;
}

/** Creates the plan of these handlers, by event, and forward addresses. */
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
    const { name, events, users } = forward;
    return { target: forwardTargetName(name), events, users, ...deliveryRules(forward) };
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
    const asked = new AskedDelivery(delivery, body);
    const jobs: NewJob[] = [];
    const handler = source === USERS_SOURCE ? undefined : handlerOf(delivery, ofHandlers);
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

/** Whether an event has a handler or forward address, whatever their filters say of a delivery. */
export function hasTarget(
  names: EventNames,
  handlers: ReadonlyMap<string, HandlerSpec>,
  forwards: readonly ForwardSettings[],
): boolean {
  return handlerOf(names, handlers) !== undefined || forwards.some((forward) => isOf(forward, names, ''));
}

const isTimed = ({ priority, runAt }: Route) => priority !== undefined || runAt !== undefined;

/** A sender may name its events as it likes: only the source tells changes of users. */
function isOf(
  { events, users = [] }: Pick<Route, 'events' | 'users'>,
  names: EventNames,
  source: string,
): boolean {
  if (source === USERS_SOURCE) return users.some((change) => names.event === `user.${change}`);
  return events === undefined ? users.length === 0 : events.some((event) => isCalled(names, event));
}
