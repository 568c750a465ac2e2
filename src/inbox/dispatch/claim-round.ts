import type { ClaimedJob } from '../delivery.ts';
import type { Inbox, TargetClaim } from '../inbox.ts';
import type { Attempt } from './attempt.ts';
import type { TargetGroup } from './target.ts';

/** If a claim leaves less than this of its share, in bytes, the next body may not have fit. */
const LARGE_BODY = 25 * 1024 * 1024;
/** The same for a group, whose bodies are smaller. */
const LARGE_IN_GROUP = 1024 * 1024;

interface ClaimRound {
  readonly inbox: Pick<Inbox, 'claim' | 'claimEach'>;
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

/** Claims jobs of one target, or of the next targets of a group together. Rejects as the store does. */
export async function claimRound(round: ClaimRound): Promise<Claimed> {
  const { inbox, target, group, limit, owner, lease, quarantined, maxBytes, events } = round;
  const held = Map.groupBy(round.held, ({ job }) => job.target);
  const heldOf = (target: string) => (held.get(target) ?? []).map(({ job }) => job.job);
  if (group === undefined || quarantined) {
    const options = { held: heldOf(target), quarantined, maxBytes };
    const jobs = await inbox.claim(target, limit, owner, lease, options);
    for (const job of jobs) group?.took(job.target);
    return { jobs, mayHaveMore: mayHaveMore(jobs, limit, maxBytes, LARGE_BODY) };
  }
  const claims = group.next(limit);
  const share = Math.floor(maxBytes / Math.max(1, claims.length));
  const claimEach = async () => {
    if (inbox.claimEach !== undefined) {
      const all = claims.flatMap(({ target }) => heldOf(target));
      return await inbox.claimEach(claims, owner, lease, { held: all, maxBytes: share });
    }
    const claimOne = ({ target, limit }: TargetClaim) =>
      inbox
        .claim(target, limit, owner, lease, { held: heldOf(target), maxBytes: share })
        .catch((error: Error) => error);
    return await Promise.all(claims.map(claimOne));
  };
  const results = await claimEach();
  const jobs = claims.flatMap(({ target, limit }, i) => {
    const found = results[i] ?? [];
    // The jobs of the other claims are kept; the next poll finds this target again.
    if (found instanceof Error) events.storeFailed(found);
    const own = found instanceof Error ? [] : found;
    group.claimed(target, own.length, mayHaveMore(own, limit, share, LARGE_IN_GROUP));
    return own;
  });
  return { jobs, mayHaveMore: group.isReady };
}

/** Whether another claim may find further jobs of a target after one for `limit` jobs and `maxBytes`. */
function mayHaveMore(jobs: readonly ClaimedJob[], limit: number, maxBytes: number, large: number): boolean {
  const taken = jobs.reduce((sum, job) => sum + sizeOf(job), 0);
  const mayBeCut = jobs.length > 0 && maxBytes - taken < large;
  // Jobs blocked by their order may have hidden others.
  const mayHide = jobs.some(({ ordered }) => ordered);
  return jobs.length === limit || mayBeCut || mayHide;
}

/** The size of a job's body in bytes. */
export function sizeOf({ delivery: { body } }: ClaimedJob): number {
  return body.byteLength;
}
