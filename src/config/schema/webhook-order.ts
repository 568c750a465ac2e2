import * as v from 'valibot';
import { parsePointer } from '../../core/json-pointer.ts';
import type { DeliveryKey } from '../../inbox/rules/delivery-rule.ts';

/**
 * The key whose deliveries are handled or forwarded one after the other, in order of arrival: a JSON pointer (RFC 6901)
 * into the body, or a function.
 */
export const orderField = v.custom<string | DeliveryKey>(
  (value) => typeof value === 'function' || (typeof value === 'string' && parsePointer(value) !== undefined),
  'must be a JSON pointer such as /data/id, or a function',
);
