import { jobPlanOf } from '../../app/webhook-door.ts';
import { isOpen, replayDelivery } from '../../inbox/replay-delivery.ts';
import { bulkCommand } from './bulk-command.ts';
import { replayUsage } from './usages.ts';

/** `portico deliveries replay` */
export function replayDeliveries(argv: readonly string[]): Promise<number> {
  return bulkCommand(replayUsage, argv, (config) => {
    const plan = jobPlanOf(config);
    return {
      verb: 'Replay',
      doing: 'Replaying',
      done: 'replayed',
      eligible: (status) => !isOpen(status),
      async act(log, id) {
        const result = await replayDelivery(log, plan, id, Date.now());
        return result === 'replayed' ? undefined : result;
      },
    };
  });
}
