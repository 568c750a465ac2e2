import { replayPlanOf } from '../../app/doors/webhook-door.ts';
import { isOpen, replayDelivery } from '../../inbox/replay-delivery.ts';
import { usages } from '../help/usages.ts';
import { bulkCommand } from './bulk-command.ts';

/** `portico deliveries replay`. Resolves to the exit code. */
export function replayDeliveries(argv: readonly string[]): Promise<number> {
  return bulkCommand(usages.replay, argv, (config) => {
    const plan = replayPlanOf(config);
    return {
      verb: 'Replay',
      done: 'replayed',
      eligible: (status) => !isOpen(status),
      act: (log, id) => replayDelivery(log, plan, id, Date.now()),
    };
  });
}
