import type { NewJob } from './delivery.ts';
import { parseDeliveryBody } from './delivery-body.ts';
import type { DeliveryDetail, DeliveryLog, DeliveryStatus } from './delivery-log.ts';

/** Which jobs a delivery would get now, from its event and its parsed body. */
export type ReplayPlan = (event: string | null, body: unknown) => readonly NewJob[];

/** `open`: it is being handled already; `no-handler`: nothing of what handled it, or would, is there now. */
export type ReplayResult = 'replayed' | 'not-found' | 'open' | 'no-handler';

/** `settled`: nothing of it is open or dead. */
export type DiscardResult = 'discarded' | 'not-found' | 'settled';

/** Whether something of a delivery is still to be done. */
export function isOpen(status: DeliveryStatus): boolean {
  return status === 'pending' || status === 'processing';
}

/** Whether something of a delivery can be given up. */
export function isDiscardable(status: DeliveryStatus): boolean {
  return isOpen(status) || status === 'dead';
}

/** Has a delivery handled again: what died of it, or all of it when nothing did. A running service does the rest. */
export async function replayDelivery(
  log: Pick<DeliveryLog, 'find' | 'replay'>,
  plan: ReplayPlan,
  id: string,
  now: number,
): Promise<ReplayResult> {
  const found = await log.find(id);
  if (found === undefined) return 'not-found';
  if (isOpen(found.status)) return 'open';
  const jobs = jobsToOpen(found, plan);
  if (jobs.length === 0) return 'no-handler';
  return (await log.replay(id, jobs, now)) ? 'replayed' : 'open';
}

/** Gives up what is open or dead of a delivery. */
export async function discardDelivery(
  log: Pick<DeliveryLog, 'find' | 'discard'>,
  id: string,
  now: number,
): Promise<DiscardResult> {
  if (await log.discard(id, now)) return 'discarded';
  return (await log.find(id)) === undefined ? 'not-found' : 'settled';
}

/** A job whose handler or forward address is gone would stay open for ever, so it is left alone. */
function jobsToOpen(delivery: DeliveryDetail, plan: ReplayPlan): readonly NewJob[] {
  const { jobs } = delivery;
  const planned = plan(delivery.event, parsed(delivery));
  if (jobs.length === 0) return planned;
  const dead = jobs.filter(({ status }) => status === 'dead');
  const targets = new Set((dead.length > 0 ? dead : jobs).map(({ target }) => target));
  return planned.filter(({ target }) => targets.has(target));
}

function parsed(delivery: DeliveryDetail): unknown {
  try {
    return parseDeliveryBody(delivery);
  } catch {
    // Only the key of an order is looked for in it.
    return undefined;
  }
}
