import { parsePointer, valueAt } from '../../core/json-pointer.ts';
import { isThenable } from '../../core/maybe-promise.ts';
import type { ReceivedDelivery } from '../../inbox/rules/received-delivery.ts';
import type { AskedDelivery } from './asked-delivery.ts';

/** What a JSON pointer into the body, or a function, gives for a delivery. */
export function ruleValue(
  rule: string | ((delivery: ReceivedDelivery) => unknown),
  name: string,
): (asked: AskedDelivery) => unknown {
  if (typeof rule === 'function') return ({ received }) => synchronous(rule(received), name);
  const pointer = parsePointer(rule) ?? [];
  return ({ body }) => valueAt(body, pointer);
}

/** A promise would be true, and one key for all deliveries. */
function synchronous(result: unknown, name: string): unknown {
  if (!isThenable(result)) return result;
  // Nobody awaits it.
  result.then(undefined, () => {});
  throw new TypeError(`${name} returned a promise; it has to be synchronous`);
}
