import { ENDPOINT_PREFIX } from '../inbox/delivery.ts';
import type { ClaimRateLimit } from '../inbox/dispatch/claim-rate.ts';
import type { TargetGroup } from '../inbox/dispatch/target.ts';
import type { Outcome } from '../inbox/inbox.ts';

export function endpointTargetName(tenant: string, id: string): string {
  return `${ENDPOINT_PREFIX}${tenant}/${id}`;
}

/** The tenant and the id of an endpoint's target. */
export function endpointOfTarget(target: string): { readonly tenant: string; readonly id: string } {
  const slash = target.lastIndexOf('/');
  return { tenant: target.slice(ENDPOINT_PREFIX.length, slash), id: target.slice(slash + 1) };
}

/** Limits of the attempts in this process. */
interface LaneLimits {
  /** Maximum attempts at one endpoint at a time. */
  readonly perEndpoint: number;
  /** Maximum attempts at the endpoints of one tenant at a time. */
  readonly perTenant: number;
  /** Maximum attempts at a time at failing endpoints. */
  readonly failing: number;
}

interface LanesOptions extends LaneLimits {
  /** The limit of the rate of an endpoint, if it has one and is known. */
  rateOf?(target: string): ClaimRateLimit | undefined;
  /** A monotonic clock in milliseconds. */
  now?(): number;
  /** At least 0 and below 1. */
  random?(): number;
}

/** What the process knows of an endpoint that has work, or that fails. */
interface Lane {
  readonly target: string;
  readonly tenant: Tenant;
  /** Attempts that run, and jobs that are being stored or claimed. */
  inFlight: number;
  /** How many attempts it may have: one before the first success, and twice as many after each. */
  cap: number;
  /** Failures in a row. */
  failures: number;
  /** The circuit is open until then, on the monotonic clock: nothing is claimed. */
  openUntil: number;
  /** Whether it may have due jobs. */
  hasMore: boolean;
  /** Running attempts that send nothing, since it is disabled or removed. */
  skipped: number;
}

interface Tenant {
  readonly name: string;
  inFlight: number;
  /** Its lanes that may have due jobs and a further attempt, in turns. */
  readonly ready: Set<Lane>;
  /** Its lanes that are known. */
  lanes: number;
}

/** So many failures in a row open the circuit of an endpoint. */
const OPENS = 5;
/** How long a circuit stays open at first and at most, in milliseconds; it doubles with each further failure. */
const OPEN = { first: 1_000, last: 60_000 } as const;
/** Endpoints that one round claims from. */
const ROUND = 64;
/** Lanes without work that are remembered because they failed. */
const MAX_IDLE = 20_000;

/**
 * The endpoints that have work. Claims take turns among tenants, then among the endpoints of a tenant, so that the events
 * of one tenant delay those of no other by more than the attempts that run. An endpoint gets more attempts at a time the
 * longer it answers. One that fails gets one at a time, and none while its circuit is open: its jobs wait without a claim.
 */
export class EndpointLanes implements TargetGroup {
  readonly prefix = ENDPOINT_PREFIX;
  readonly #limits: LaneLimits;
  readonly #rateOf: (target: string) => ClaimRateLimit | undefined;
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #lanes = new Map<string, Lane>();
  readonly #tenants = new Map<string, Tenant>();
  /** The tenants with ready lanes, in turns. */
  readonly #turns = new Set<Tenant>();
  /** Attempts at failing endpoints. */
  #failing = 0;
  /** Idle lanes that are kept, oldest first. */
  readonly #idle = new Set<Lane>();
  /** The jobs that the claims of the round in progress may take. */
  #claiming: ReadonlyMap<string, number> = new Map();
  #wake = () => {};

  constructor({
    rateOf = () => undefined,
    now = () => performance.now(),
    random = Math.random,
    ...limits
  }: LanesOptions) {
    this.#limits = limits;
    this.#rateOf = rateOf;
    this.#now = now;
    this.#random = random;
  }

  onReady(wake: () => void): void {
    this.#wake = wake;
  }

  note(target: string): void {
    const lane = this.#laneOf(target);
    if (lane.openUntil <= this.#now()) {
      lane.hasMore = true;
      this.#place(lane);
    }
    this.#settleIdle(lane);
  }

  get isReady(): boolean {
    for (const tenant of this.#turns) if (tenant.inFlight < this.#limits.perTenant) return true;
    return false;
  }

  next(limit: number) {
    const claims = new Map<string, number>();
    let left = limit;
    const perClaim = Math.max(1, Math.ceil(limit / ROUND));
    let full = 0;
    // Visits the tenants again that were put behind the others.
    for (const tenant of this.#turns) {
      if (left <= 0 || claims.size >= ROUND || full > this.#turns.size) break;
      this.#turns.delete(tenant);
      this.#turns.add(tenant);
      const room = this.#limits.perTenant - tenant.inFlight;
      full = room > 0 ? 0 : full + 1;
      const [lane] = tenant.ready;
      if (room <= 0 || lane === undefined) continue;
      const count = Math.min(left, perClaim, room, this.#free(lane));
      this.#unready(lane);
      if (count <= 0) {
        // Ready no more, since an attempt began or failed meanwhile.
        this.#place(lane);
        this.#settleIdle(lane);
        continue;
      }
      // It has a turn again once it is known that it has more.
      lane.hasMore = false;
      this.#begin(lane, count);
      left -= count;
      claims.set(lane.target, count);
    }
    this.#claiming = claims;
    return Array.from(claims, ([target, count]) => ({ target, limit: count }));
  }

  claimed(target: string, jobs: number, mayHaveMore: boolean): void {
    const lane = this.#laneOf(target);
    const unused = (this.#claiming.get(target) ?? 0) - jobs;
    this.#end(lane, unused);
    if (unused > 0) this.#rateOf(target)?.take(-unused);
    // It may have been noted meanwhile.
    lane.hasMore ||= mayHaveMore && jobs > 0;
    this.#place(lane);
    this.#settleIdle(lane);
  }

  reserve(target: string): boolean {
    const lane = this.#laneOf(target);
    const isFree = !lane.hasMore && this.#free(lane) > 0 && lane.tenant.inFlight < this.#limits.perTenant;
    if (isFree) this.#begin(lane, 1);
    this.#settleIdle(lane);
    return isFree;
  }

  mayFollow(target: string): boolean {
    const openUntil = this.#lanes.get(target)?.openUntil ?? 0;
    return openUntil <= this.#now() && this.#rateOf(target)?.free !== 0;
  }

  took(target: string): void {
    const lane = this.#laneOf(target);
    this.#begin(lane, 1);
    this.#settleIdle(lane);
  }

  /** Notes that a running attempt sends nothing: its end says nothing against the endpoint. */
  skip(target: string): void {
    this.#laneOf(target).skipped++;
  }

  ended(target: string, outcome?: Outcome['kind']): void {
    const lane = this.#laneOf(target);
    this.#end(lane, 1);
    const isSkipped = outcome === 'dead' && lane.skipped > 0;
    if (isSkipped) lane.skipped--;
    if (lane.inFlight === 0) lane.skipped = 0;
    if (outcome === 'done' || isSkipped) this.#succeeded(lane);
    else if (outcome === 'retry' || outcome === 'dead') this.#failed(lane);
    this.#place(lane);
    this.#settleIdle(lane);
  }

  /** The number of open circuits. */
  get open(): number {
    const now = this.#now();
    let count = 0;
    for (const lane of this.#lanes.values()) if (lane.openUntil > now) count++;
    return count;
  }

  #succeeded(lane: Lane): void {
    if (lane.failures > 0) this.#failing -= lane.inFlight;
    lane.failures = 0;
    lane.openUntil = 0;
    lane.cap = Math.min(this.#limits.perEndpoint, lane.cap * 2);
  }

  #failed(lane: Lane): void {
    if (lane.failures === 0) this.#failing += lane.inFlight;
    lane.failures++;
    lane.cap = 1;
    if (lane.failures < OPENS) return;
    const time = Math.min(OPEN.last, OPEN.first * 2 ** Math.min(20, lane.failures - OPENS));
    lane.openUntil = this.#now() + time * (0.5 + this.#random() / 2);
    // The scan for due jobs finds it again afterwards.
    lane.hasMore = false;
    this.#unready(lane);
  }

  /** Gives a lane with more jobs its turn if it may have a further attempt; else it is placed when one ends. */
  #place(lane: Lane): void {
    if (!lane.hasMore || lane.inFlight >= lane.cap) return;
    if (this.#free(lane) > 0) {
      lane.tenant.ready.add(lane);
      this.#turns.add(lane.tenant);
      return;
    }
    lane.hasMore = false;
    this.#rateOf(lane.target)?.onFree(() => {
      this.note(lane.target);
      this.#wake();
    });
  }

  #unready(lane: Lane): void {
    lane.tenant.ready.delete(lane);
    if (lane.tenant.ready.size === 0) this.#turns.delete(lane.tenant);
  }

  /** How many further attempts an endpoint may have. */
  #free(lane: Lane): number {
    if (lane.openUntil > this.#now()) return 0;
    if (lane.failures > 0 && this.#failing >= this.#limits.failing) return 0;
    const free = lane.cap - lane.inFlight;
    return Math.max(0, Math.min(free, this.#rateOf(lane.target)?.free ?? free));
  }

  #begin(lane: Lane, count: number): void {
    lane.inFlight += count;
    lane.tenant.inFlight += count;
    if (lane.failures > 0) this.#failing += count;
    if (count > 0) this.#rateOf(lane.target)?.take(count);
  }

  #end(lane: Lane, count: number): void {
    lane.inFlight -= count;
    lane.tenant.inFlight -= count;
    if (lane.failures > 0) this.#failing -= count;
  }

  #laneOf(target: string): Lane {
    const known = this.#lanes.get(target);
    if (known !== undefined) return known;
    const { tenant: name } = endpointOfTarget(target);
    const tenant = this.#tenants.get(name) ?? { name, inFlight: 0, ready: new Set<Lane>(), lanes: 0 };
    this.#tenants.set(name, tenant);
    tenant.lanes++;
    const lane = {
      target,
      tenant,
      inFlight: 0,
      cap: 1,
      failures: 0,
      openUntil: 0,
      hasMore: false,
      skipped: 0,
    };
    this.#lanes.set(target, lane);
    return lane;
  }

  /** Remembers a lane without work for its failures, or for its cap, within a bound. */
  #settleIdle(lane: Lane): void {
    this.#idle.delete(lane);
    if (lane.hasMore || lane.inFlight > 0) return;
    if (lane.failures === 0 && lane.cap === 1) {
      this.#drop(lane);
      return;
    }
    this.#idle.add(lane);
    if (this.#idle.size <= MAX_IDLE) return;
    const [oldest] = this.#idle;
    if (oldest === undefined) return;
    this.#idle.delete(oldest);
    this.#drop(oldest);
  }

  #drop(lane: Lane): void {
    this.#lanes.delete(lane.target);
    if (--lane.tenant.lanes === 0) this.#tenants.delete(lane.tenant.name);
  }
}
