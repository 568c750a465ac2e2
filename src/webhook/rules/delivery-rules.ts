import type { DeliveryFilter } from '../../config/schema/webhook-condition.ts';
import type { DeliveryKey, DeliveryPriority, DeliveryTime } from '../../inbox/rules/delivery-rule.ts';
import type { AskedDelivery } from './asked-delivery.ts';
import { compileCondition } from './compile-condition.ts';
import { ruleValue } from './rule-value.ts';
import { type NumberRule, priorityRule, runAtRule } from './timing-rules.ts';

/** Which deliveries a handler or forward address wants, in which order and when, as it is configured. */
export interface RulesConfig {
  readonly when?: DeliveryFilter | undefined;
  readonly order?: string | DeliveryKey | undefined;
  /** A number is that of the target, and no rule about its deliveries. */
  readonly priority?: number | string | DeliveryPriority | undefined;
  readonly runAt?: string | DeliveryTime | undefined;
}

/** The rules of a target. Those that are functions of the configuration may throw. */
export interface DeliveryRules {
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
export function deliveryRules({ when, order, priority, runAt }: RulesConfig): DeliveryRules {
  return {
    wants: when === undefined ? undefined : filterOf(when),
    orderKey: order === undefined ? undefined : keyOf(order),
    priority: priority === undefined || typeof priority === 'number' ? undefined : priorityRule(priority),
    runAt: runAt === undefined ? undefined : runAtRule(runAt),
  };
}

/** The rules that may throw; undefined when none can. */
export function functionRules({ when, order, priority, runAt }: RulesConfig): DeliveryRules | undefined {
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
