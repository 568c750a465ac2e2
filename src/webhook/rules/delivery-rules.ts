import type { DeliveryFilter } from '../../config/schema/webhook-condition.ts';
import { parsePointer, valueAt } from '../../core/json-pointer.ts';
import { isThenable } from '../../core/maybe-promise.ts';
import type { DeliveryKey } from '../../inbox/rules/delivery-rule.ts';
import type { AskedDelivery } from './asked-delivery.ts';
import { compileCondition } from './compile-condition.ts';

/** Which deliveries a handler or forward address wants, and in which order, as it is configured. */
export interface RulesConfig {
  readonly when?: DeliveryFilter | undefined;
  readonly order?: string | DeliveryKey | undefined;
}

/** The rules of a target. Those that are functions of the configuration may throw. */
export interface DeliveryRules {
  /** Absent: it wants every delivery. */
  readonly wants: ((asked: AskedDelivery) => boolean) | undefined;
  /** Gives null for a delivery that is not ordered; absent: none is. */
  readonly orderKey: ((asked: AskedDelivery) => string | null) | undefined;
}

/** Prepares the rules of a target. */
export function deliveryRules({ when, order }: RulesConfig): DeliveryRules {
  return {
    wants: when === undefined ? undefined : filterOf(when),
    orderKey: order === undefined ? undefined : keyOf(order),
  };
}

/** The rules that may throw; undefined when none can. */
export function functionRules({ when, order }: RulesConfig): DeliveryRules | undefined {
  const rules = {
    when: typeof when === 'function' ? when : undefined,
    order: typeof order === 'function' ? order : undefined,
  };
  return rules.when === undefined && rules.order === undefined ? undefined : deliveryRules(rules);
}

function filterOf(when: DeliveryFilter): (asked: AskedDelivery) => boolean {
  if (typeof when === 'function') {
    return ({ received }) => Boolean(synchronous(when(received), 'when'));
  }
  const holds = compileCondition(when);
  return ({ body }) => holds(body);
}

function keyOf(order: string | DeliveryKey): (asked: AskedDelivery) => string | null {
  if (typeof order === 'function') return ({ received }) => keyText(synchronous(order(received), 'order'));
  const pointer = parsePointer(order) ?? [];
  return ({ body }) => keyText(valueAt(body, pointer));
}

function keyText(key: unknown): string | null {
  if (key === undefined || key === null) return null;
  const text: string | undefined = JSON.stringify(key);
  if (text === undefined) throw new TypeError('order gave no JSON value');
  return text;
}

/** A promise would be true, and one key for all deliveries. */
function synchronous(result: unknown, name: string): unknown {
  if (!isThenable(result)) return result;
  // Nobody awaits it.
  result.then(undefined, () => {});
  throw new TypeError(`${name} returned a promise; it has to be synchronous`);
}
