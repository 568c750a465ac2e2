import { describeKind } from '../../core/quote.ts';
import { parseIsoTime } from '../../inbox/moment.ts';
import { MAX_PRIORITY } from '../../inbox/priority.ts';
import type { DeliveryPriority, DeliveryTime } from '../../inbox/rules/delivery-rule.ts';
import type { AskedDelivery } from './asked-delivery.ts';
import { ruleValue } from './rule-value.ts';

/**
 * Gives a number; undefined for a delivery to which the rule does not apply. `onInvalid` is told of a value that makes no
 * sense, which is taken for none.
 */
export type NumberRule = (
  asked: AskedDelivery,
  onInvalid: (problem: TypeError) => void,
) => number | undefined;

/** The priority of a delivery, from 0 to MAX_PRIORITY. */
export function priorityRule(rule: string | DeliveryPriority): NumberRule {
  const given = ruleValue(rule, 'priority');
  return (asked, onInvalid) => {
    const value = given(asked);
    if (value === undefined || value === null) return undefined;
    if (Number.isInteger(value)) return Math.min(MAX_PRIORITY, Math.max(0, Number(value)));
    onInvalid(new TypeError(`priority is ${describeKind(value)}, not a whole number`));
    return undefined;
  };
}

/** The time before which a delivery is not due, in milliseconds since the epoch. */
export function runAtRule(rule: string | DeliveryTime): NumberRule {
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
  // Not before the time: up to a whole millisecond. A date has an end of its own.
  const ms = new Date(Math.ceil(Number(time))).getTime();
  return Number.isNaN(ms) ? undefined : ms;
}
