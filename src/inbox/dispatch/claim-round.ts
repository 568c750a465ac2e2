import type { ClaimedJob } from '../delivery.ts';
import type { Inbox } from '../inbox.ts';
import type { Attempt } from './attempt.ts';
import type { TargetGroup } from './target.ts';

/** If a claim leaves less than this of its share, in bytes, the next body may not have fit. */
const LARGE_BODY = 25 * 1024 * 1024;
/** The same for a group, whose bodies are smaller. */
const LARGE_IN_GROUP = 1024 * 1024;

interface ClaimRound {
  readonly inbox: Pick<Inbox, 'claim' | 'claimsAtOnce'>;
  readonly owner: string;
  /** In milliseconds. */
  readonly lease: number;
  /** The target to claim from, unless a group chooses several. */
  readonly target: string;
  readonly group: TargetGroup | undefined;
  /** Maximum number of jobs. */
  readonly limit: number;
  readonly quarantined: boolean;
  /** The attempts that the owner is still running. */
  readonly held: Iterable<Attempt>;
  /** Maximum size of the bodies, except the first of each target. */
  readonly maxBytes: number;
  readonly events: { storeFailed(error: unknown): void };
}

/** The jobs of a round of claims, and whether another round may find more. */
interface Claimed {
  readonly jobs: readonly ClaimedJob[];
  readonly mayHaveMore: boolean;
}

/** Claims jobs of one target, or at the same time of the next targets of a group. Rejects as the store does. */
export async function claimRound(round: ClaimRound): Promise<Claimed> {
  const { target, group, limit, maxBytes, events } = round;
  const held = Map.groupBy(round.held, ({ job }) => job.target);
  const claim = async (target: string, limit: number, share: number): Promise<Claimed> => {
    const { inbox, owner, lease, quarantined } = round;
    const running = (held.get(target) ?? []).map(({ job }) => job.job);
    const jobs = await inbox.claim(target, limit, owner, lease, {
      held: running,
      quarantined,
      maxBytes: share,
    });
    const taken = jobs.reduce((sum, job) => sum + sizeOf(job), 0);
    const mayBeCut = jobs.length > 0 && share - taken < (group === undefined ? LARGE_BODY : LARGE_IN_GROUP);
    // Jobs blocked by their order may have hidden others.
    const mayHide = jobs.some(({ ordered }) => ordered);
    return { jobs, mayHaveMore: jobs.length === limit || mayBeCut || mayHide };
  };
  if (group === undefined || round.quarantined) {
    const claimed = await claim(target, limit, maxBytes);
    for (const job of claimed.jobs) group?.took(job.target);
    return claimed;
  }
  const claims = group.next(limit);
  const share = Math.floor(maxBytes / Math.max(1, claims.length));
  const queue = claims.values();
  const jobs: ClaimedJob[] = [];
  const claimNext = async () => {
    for (const each of queue) {
      try {
        const found = await claim(each.target, each.limit, share);
        group.claimed(each.target, found.jobs.length, found.mayHaveMore);
        jobs.push(...found.jobs);
      } catch (error) {
        // The jobs of the other claims are kept; the next poll finds this target again.
        group.claimed(each.target, 0, false);
        events.storeFailed(error);
      }
    }
  };
  const { claimsAtOnce = claims.length } = round.inbox;
  await Promise.all(Array.from({ length: Math.min(claimsAtOnce, claims.length) }, claimNext));
  return { jobs, mayHaveMore: group.isReady };
}

/** The size of a job's body in bytes. */
export function sizeOf({ delivery: { body } }: ClaimedJob): number {
  return body.byteLength;
}
