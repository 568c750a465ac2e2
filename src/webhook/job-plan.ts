import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import { type EventNames, handlerTargetName, isCalled, type NewJob } from '../inbox/delivery.ts';
import { USERS_SOURCE } from '../inbox/own-sources.ts';
import type { DeliveryFacts } from '../inbox/rules/received-delivery.ts';
import { handlerOf } from './event-names.ts';
import { forwardTargetName } from './forward/forward-target.ts';
import type { ForwardSettings } from './forward/read-forwards.ts';
import { AskedDelivery } from './rules/asked-delivery.ts';
import { type DeliveryRules, deliveryRules } from './rules/delivery-rules.ts';

/**
 * Decides which jobs a delivery gets: one for its event's handler, if any, and one for each forward address of the event,
 * by either name of the event, unless their filters do not want it. `body` is the parsed one. Never throws.
 */
export type JobPlan = (delivery: DeliveryFacts, body: unknown) => readonly NewJob[];

/** Called when a rule of a target throws; the delivery then gets the job, so that it is not lost. */
export type RuleFailed = (delivery: DeliveryFacts, target: string, error: unknown) => void;

/** Called when a target's rule gives a priority or a time that makes no sense; the delivery then has none. */
export type RuleIgnored = (delivery: DeliveryFacts, target: string, problem: TypeError) => void;

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
