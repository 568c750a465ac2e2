import { isHandlerTarget, type NewJob, type StoredDelivery } from './delivery.ts';
import { parseDeliveryBody } from './delivery-body.ts';
import type { DeliveryDetail, DeliveryLog, DeliveryStatus, ReplayedJob } from './delivery-log.ts';
import type { DeliveryFacts } from './rules/received-delivery.ts';

/** Decides which jobs a delivery gets with the current handlers; `body` is the parsed one. */
export type ReplayPlan = (
  delivery: DeliveryFacts & Pick<StoredDelivery, 'headers'>,
  body: unknown,
) => readonly NewJob[];

/** `open`: a job is still open; `no-handler`: none of its targets exists any more. */
export type ReplayResult = 'replayed' | 'not-found' | 'open' | 'no-handler';

/** `settled`: no job is open or dead. */
export type DiscardResult = 'discarded' | 'not-found' | 'settled';

/** Whether a delivery has an open job. */
export function isOpen(status: DeliveryStatus): boolean {
  return status === 'pending' || status === 'processing';
}

/** Whether a delivery has a job that can be discarded. */
export function isDiscardable(status: DeliveryStatus): boolean {
  return isOpen(status) || status === 'dead';
}

/** Reopens the dead jobs of a delivery, or all of them when none is dead. A running service then runs them. */
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

/** Discards the open and dead jobs of a delivery. */
export async function discardDelivery(
  log: Pick<DeliveryLog, 'find' | 'discard'>,
  id: string,
  now: number,
): Promise<DiscardResult> {
  if (await log.discard(id, now)) return 'discarded';
  return (await log.find(id)) === undefined ? 'not-found' : 'settled';
}

/**
 * Jobs of removed handlers and forward addresses are left out, because nothing would run them. A delivery has one handler:
 * where that is another one now, under the other name of the event, it takes over the job of the one before.
 */
function jobsToOpen(delivery: DeliveryDetail, plan: ReplayPlan): readonly ReplayedJob[] {
  const { jobs } = delivery;
  const planned = plan(delivery, parsed(delivery));
  if (jobs.length === 0) return planned;
  const dead = jobs.filter(({ status }) => status === 'dead');
  const targets = new Set((dead.length > 0 ? dead : jobs).map(({ target }) => target));
  const former = jobs.findLast(({ target }) => isHandlerTarget(target))?.target;
  return planned.flatMap((job) => {
    if (targets.has(job.target)) return [job];
    const takesOver = isHandlerTarget(job.target) && former !== undefined && targets.has(former);
    return takesOver ? [{ ...job, replaces: former }] : [];
  });
}

function parsed(delivery: DeliveryDetail): unknown {
  try {
    return parseDeliveryBody(delivery);
  } catch {
    // The plan needs the body only for its rules.
    return undefined;
  }
}
