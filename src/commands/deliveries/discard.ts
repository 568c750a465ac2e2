import { discardDelivery, isDiscardable } from '../../inbox/replay-delivery.ts';
import { usages } from '../help/usages.ts';
import { bulkCommand } from './bulk-command.ts';

/** `portico deliveries discard`. Resolves to the exit code. */
export function discardDeliveries(argv: readonly string[]): Promise<number> {
  return bulkCommand(usages.discard, argv, () => ({
    verb: 'Discard',
    done: 'discarded',
    eligible: isDiscardable,
    act: (log, id) => discardDelivery(log, id, Date.now()),
  }));
}
