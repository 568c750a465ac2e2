import type { ClaimedJob } from '../../inbox/delivery.ts';
import { parseDeliveryBody } from '../../inbox/delivery-body.ts';
import type { Target } from '../../inbox/dispatch/target.ts';
import { AskedDelivery } from './asked-delivery.ts';
import { functionRules, type RulesConfig } from './delivery-rules.ts';

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
