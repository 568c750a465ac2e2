import * as v from 'valibot';
import { parsePointer } from '../../core/json-pointer.ts';
import { MAX_PRIORITY } from '../../inbox/priority.ts';
import type { DeliveryKey, DeliveryPriority, DeliveryTime } from '../../inbox/rules/delivery-rule.ts';

/** Whether a value is a JSON pointer (RFC 6901), or a function. */
const isRule = (value: unknown) =>
  typeof value === 'function' || (typeof value === 'string' && parsePointer(value) !== undefined);
const isPriority = (value: unknown) =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_PRIORITY;

/**
 * The key whose deliveries are handled or forwarded one after the other, in order of arrival: a JSON pointer into the
 * body, or a function.
 */
export const orderField = v.custom<string | DeliveryKey>(
  isRule,
  'must be a JSON pointer such as /data/id, or a function',
);

/** Which deliveries come first: an integer for all of them, a JSON pointer into the body, or a function. */
export const priorityField = v.custom<number | string | DeliveryPriority>(
  (value) => isRule(value) || isPriority(value),
  `must be a whole number from 0 to ${MAX_PRIORITY}, a JSON pointer such as /data/priority, or a function`,
);

/** The time before which a delivery is not handled or forwarded: a JSON pointer into the body, or a function. */
export const runAtField = v.custom<string | DeliveryTime>(
  isRule,
  'must be a JSON pointer such as /data/runAt, or a function',
);
