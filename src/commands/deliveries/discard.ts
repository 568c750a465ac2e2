import { discardDelivery, isDiscardable } from '../../inbox/replay-delivery.ts';
import { discardUsage } from '../help/deliveries-usages.ts';
import type { BulkAction } from './bulk-action.ts';
import { bulkCommand } from './bulk-command.ts';

const discard: BulkAction = {
  verb: 'Discard',
  doing: 'Discarding',
  done: 'discarded',
  eligible: isDiscardable,
  async act(log, id) {
    const result = await discardDelivery(log, id, Date.now());
    return result === 'discarded' ? undefined : result;
  },
};

/** `portico deliveries discard`. Resolves to the exit code. */
export function discardDeliveries(argv: readonly string[]): Promise<number> {
  return bulkCommand(discardUsage, argv, () => discard);
}
