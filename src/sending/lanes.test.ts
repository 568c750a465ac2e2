import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ClaimRateLimit } from '../inbox/dispatch/claim-rate.ts';
import { EndpointLanes, endpointOfTarget, endpointTargetName } from './lanes.ts';

const LIMITS = { perEndpoint: 4, perTenant: 6, failing: 3 };
const OPENS = 5;

/** A claim of a round, with the tenant. */
interface Turn {
  readonly tenant: string;
  readonly target: string;
  readonly limit: number;
}

/** A store with due jobs and a worker that runs them, as the lanes see the two. Checks the limits after each step. */
class Simulation {
  now = 0;
  readonly targets: readonly string[];
  readonly lanes: EndpointLanes;
  readonly #limits: typeof LIMITS;
  /** Due jobs that nothing has claimed. */
  readonly due = new Map<string, number>();
  /** The targets of the attempts that run, each attempt once. */
  readonly running: string[] = [];
  /** The targets of the jobs that the round in progress may take. */
  #claiming: readonly string[] = [];
  readonly #failures = new Map<string, number>();
  readonly #caps = new Map<string, number>();
  readonly #openUntil = new Map<string, number>();

  /** `shape` has the number of endpoints of each tenant. */
  constructor(shape: readonly number[], limits = LIMITS) {
    this.targets = shape.flatMap((count, tenant) =>
      Array.from({ length: count }, (_, i) => endpointTargetName(`t${tenant}`, `e${i}`)),
    );
    this.#limits = limits;
    this.lanes = new EndpointLanes({ ...limits, now: () => this.now, random: () => 0 });
  }

  runs(target: string): number {
    return this.#counted.filter((each) => each === target).length;
  }

  runsOf(tenant: string): number {
    return this.#counted.filter((each) => endpointOfTarget(each).tenant === tenant).length;
  }

  get #counted(): readonly string[] {
    return [...this.running, ...this.#claiming];
  }

  cap(target: string): number {
    return this.#caps.get(target) ?? 1;
  }

  failures(target: string): number {
    return this.#failures.get(target) ?? 0;
  }

  isOpen(target: string): boolean {
    return (this.#openUntil.get(target) ?? 0) > this.now;
  }

  get failing(): number {
    return this.#counted.filter((target) => this.failures(target) > 0).length;
  }

  /** A job is stored: it starts without a claim if it may, otherwise it is due and noted. */
  publish(target: string): void {
    if (this.lanes.reserve(target)) this.#begin(target);
    else this.#add(target, 1);
  }

  #add(target: string, count: number): void {
    this.due.set(target, (this.due.get(target) ?? 0) + count);
    this.lanes.note(target);
  }

  /** Claims from the next targets; `during` happens before the answer of the store. */
  round(limit: number, during: () => void = () => {}): readonly Turn[] {
    const claims = this.lanes.next(limit);
    assert.ok(claims.reduce((sum, each) => sum + each.limit, 0) <= limit);
    assert.equal(new Set(claims.map(({ target }) => target)).size, claims.length);
    for (const { target, limit: count } of claims) {
      assert.ok(count > 0);
      assert.ok(!this.isOpen(target), `${target} is claimed from although its circuit is open`);
      const isFailing = this.failures(target) > 0;
      if (isFailing) assert.ok(this.failing < this.#limits.failing, 'failing endpoints have all of theirs');
      this.#claiming = [...this.#claiming, ...Array.from({ length: count }, () => target)];
      this.#check(target);
    }
    const found = claims.map(({ target, limit: count }) => {
      const jobs = Math.min(count, this.due.get(target) ?? 0);
      this.due.set(target, (this.due.get(target) ?? 0) - jobs);
      return { target, jobs, count };
    });
    during();
    for (const { target, jobs, count } of found) {
      this.#claiming = this.#claiming.filter((each) => each !== target);
      for (let i = 0; i < jobs; i++) this.running.push(target);
      this.lanes.claimed(target, jobs, jobs === count);
    }
    return claims.map((each) => ({ ...each, tenant: endpointOfTarget(each.target).tenant }));
  }

  /** An attempt ends; one that failed is due again. */
  end(index: number, outcome: 'done' | 'retry' | 'dead' | 'released'): void {
    const target = this.running[index % Math.max(1, this.running.length)];
    if (target === undefined) return;
    this.#remove(target);
    const failures = this.failures(target) + 1;
    if (outcome === 'done') {
      this.#failures.set(target, 0);
      this.#openUntil.set(target, 0);
      this.#caps.set(target, Math.min(this.#limits.perEndpoint, this.cap(target) * 2));
    } else if (outcome !== 'released') {
      this.#failures.set(target, failures);
      this.#caps.set(target, 1);
      const time = Math.min(60_000, 1_000 * 2 ** (failures - OPENS));
      if (failures >= OPENS) this.#openUntil.set(target, this.now + time / 2);
    }
    this.lanes.ended(target, outcome);
    if (outcome !== 'done' && outcome !== 'dead') this.#add(target, 1);
  }

  /** The next job of an order key starts when the one before it has ended. */
  goOn(index: number, during: () => void = () => {}): void {
    const target = this.running[index % Math.max(1, this.running.length)];
    if (target === undefined || (this.due.get(target) ?? 0) === 0) return;
    this.due.set(target, (this.due.get(target) ?? 0) - 1);
    this.lanes.took(target);
    // The ended attempt still counts.
    during();
    this.running.push(target);
    this.end(index, 'done');
  }

  wait(time: number): void {
    this.now += time;
  }

  /** The poll notes the targets with due jobs. */
  scan(): void {
    for (const target of this.targets) if ((this.due.get(target) ?? 0) > 0) this.lanes.note(target);
  }

  #begin(target: string): void {
    this.running.push(target);
    this.#check(target);
  }

  #check(target: string): void {
    const { tenant } = endpointOfTarget(target);
    assert.ok(this.runs(target) <= this.cap(target), `${target} has too many attempts`);
    assert.ok(this.runsOf(tenant) <= this.#limits.perTenant, `${tenant} has too many attempts`);
  }

  #remove(target: string): void {
    this.running.splice(this.running.indexOf(target), 1);
  }

  /** Ends all attempts well and claims, without a poll, until nothing is left to claim. */
  drain(): void {
    while (this.lanes.isReady || this.running.length > 0) {
      this.round(8);
      while (this.running.length > 0) this.end(0, 'done');
    }
  }
}

const shape = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 });
const which = fc.nat({ max: 1_000 });

type Step = (simulation: Simulation) => void;

const publish = which.map((i): Step => {
  return (simulation) => simulation.publish(simulation.targets[i % simulation.targets.length] ?? '');
});
const ends = (outcome: fc.Arbitrary<'done' | 'retry' | 'dead' | 'released'>) =>
  fc.tuple(which, outcome).map(
    ([i, how]): Step =>
      (simulation) =>
        simulation.end(i, how),
  );
const well = ends(fc.constantFrom('done', 'done', 'done', 'released'));
const badly = ends(fc.constantFrom('done', 'retry', 'retry', 'retry', 'dead'));
const during = fc.oneof(
  publish,
  well,
  fc.constant<Step>(() => {}),
);
const round = fc.tuple(fc.integer({ min: 1, max: 40 }), during).map(
  ([limit, step]): Step =>
    (simulation) =>
      void simulation.round(limit, () => step(simulation)),
);
const goOn = fc.tuple(which, fc.boolean()).map(
  ([i, claims]): Step =>
    (simulation) =>
      simulation.goOn(i, () => void (claims && simulation.round(4))),
);

const steps = (...kinds: readonly fc.Arbitrary<Step>[]) =>
  fc.array(fc.oneof({ weight: 3, arbitrary: publish }, ...kinds), { maxLength: 60, size: 'max' });

test('an endpoint that was noted gets its turn without a poll, and no limit is exceeded', () => {
  const sometimesBadly = badly.map(
    (end): Step =>
      (simulation) => {
        // Below what opens a circuit.
        if (simulation.targets.every((target) => simulation.failures(target) < OPENS - 1)) end(simulation);
      },
  );
  fc.assert(
    fc.property(shape, steps(round, well, goOn, sometimesBadly), (tenants, all) => {
      const simulation = new Simulation(tenants, { ...LIMITS, failing: 1_000 });
      for (const step of all) step(simulation);
      simulation.drain();
      assert.deepEqual(
        [...simulation.due].filter(([, count]) => count > 0),
        [],
      );
    }),
    { numRuns: 500 },
  );
});

test('through failures and open circuits nothing is lost, and every count returns to 0', () => {
  const wait = fc.nat({ max: 90_000 }).map(
    (time): Step =>
      (simulation) =>
        simulation.wait(time),
  );
  const scan = fc.constant<Step>((simulation) => simulation.scan());
  fc.assert(
    fc.property(shape, steps(round, well, badly, badly, wait, scan), (tenants, all) => {
      const simulation = new Simulation(tenants);
      for (const step of all) step(simulation);
      for (let polls = 0; [...simulation.due.values()].some((count) => count > 0); polls++) {
        assert.ok(polls < 20, 'a poll finds what waits');
        simulation.drain();
        simulation.now += 60_000;
        simulation.scan();
      }
      simulation.drain();
      // Each tenant may have as many attempts as at first, and its endpoints what they have earned.
      assert.equal(simulation.lanes.open, 0);
      for (const tenant of new Set(simulation.targets.map((target) => endpointOfTarget(target).tenant))) {
        const own = simulation.targets.filter((target) => endpointOfTarget(target).tenant === tenant);
        const caps = own.map((target) => simulation.cap(target));
        for (const target of own) while (simulation.lanes.reserve(target)) simulation.running.push(target);
        const earned = caps.reduce((sum, cap) => sum + cap, 0);
        assert.equal(simulation.runsOf(tenant), Math.min(LIMITS.perTenant, earned));
      }
    }),
    { numRuns: 500 },
  );
});

test('between two claims of a tenant, each other one that is ready gets one', () => {
  const tenants = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 30 });
  const limits = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(tenants, limits, (sizes, rounds) => {
      const simulation = new Simulation(sizes, { perEndpoint: 4, perTenant: 1_000, failing: 1 });
      const names = sizes.map((_, tenant) => `t${tenant}`);
      for (const target of simulation.targets) simulation.due.set(target, 1_000_000);
      simulation.scan();
      /** The tenants that had a turn or were not ready since the last turn of each. */
      const served = new Map<string, Set<string>>();
      for (const limit of rounds) {
        const left = new Map(names.map((name, tenant) => [name, sizes[tenant] ?? 0]));
        for (const { tenant } of simulation.round(limit)) {
          const others = served.get(tenant);
          for (const name of names) {
            if (name === tenant || others === undefined || left.get(name) === 0) continue;
            assert.ok(others.has(name), `${tenant} has two turns and ${name} none`);
          }
          const rest = (left.get(tenant) ?? 0) - 1;
          left.set(tenant, rest);
          for (const [name, set] of served) if (name !== tenant) set.add(tenant);
          // Without an endpoint that is ready it comes behind those that have one.
          const idle = names.filter((name) => left.get(name) === 0);
          served.set(tenant, new Set(idle));
          if (rest === 0) for (const set of served.values()) set.add(tenant);
        }
        while (simulation.running.length > 0) simulation.end(0, 'done');
      }
    }),
    { numRuns: 300 },
  );
});

test('a round claims from many endpoints even of one tenant', () => {
  const simulation = new Simulation([40]);
  for (const target of simulation.targets) simulation.due.set(target, 1);
  simulation.scan();
  assert.equal(simulation.round(64).length, LIMITS.perTenant);
});

test('a circuit opens after five failures and lets one attempt through afterwards', () => {
  const simulation = new Simulation([1]);
  const [target = ''] = simulation.targets;
  const { lanes } = simulation;
  for (let i = 0; i < 20; i++) simulation.publish(target);
  for (let i = 1; i <= OPENS; i++) {
    assert.equal(lanes.open, 0);
    if (i > 1) assert.equal(simulation.round(10).length, 1);
    simulation.end(0, 'retry');
  }
  // It opens for longer after each further failure, and one attempt tells.
  for (const time of [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    assert.equal(lanes.open, 1);
    simulation.now += time - 1;
    simulation.scan();
    assert.ok(!lanes.isReady);
    simulation.now += 1;
    simulation.scan();
    assert.equal(lanes.open, 0);
    assert.deepEqual(simulation.round(10), [{ tenant: 't0', target, limit: 1 }]);
    simulation.scan();
    assert.equal(simulation.round(10).length, 0);
    simulation.end(0, 'retry');
  }
  simulation.now += 30_000;
  simulation.scan();
  simulation.round(10);
  simulation.end(0, 'done');
  assert.deepEqual(simulation.round(10), [{ tenant: 't0', target, limit: 1 }]);
  simulation.end(0, 'done');
  assert.equal(simulation.round(1_000)[0]?.limit, LIMITS.perEndpoint);
});

test('endpoints that fail leave the other attempts to those that do not', () => {
  const simulation = new Simulation([2, 2, 2, 2, 2]);
  for (const target of simulation.targets) {
    simulation.publish(target);
    simulation.end(0, 'retry');
  }
  simulation.scan();
  assert.equal(simulation.round(100).length, LIMITS.failing);
  const healthy = endpointTargetName('other', 'e');
  simulation.publish(healthy);
  assert.equal(simulation.runs(healthy), 1);
  // One that has ended leaves its place to another one that fails.
  simulation.end(0, 'retry');
  simulation.scan();
  assert.equal(simulation.round(100).length, 1);
});

test('attempts that outlast the failures of their endpoint do not count as failing', () => {
  const simulation = new Simulation([1, 2, 2, 2]);
  const [recovered = '', ...others] = simulation.targets;
  for (let i = 0; i < 2; i++) {
    simulation.publish(recovered);
    simulation.end(0, 'done');
  }
  for (let i = 0; i < 4; i++) simulation.publish(recovered);
  for (const outcome of ['dead', 'done', 'done', 'done'] as const) simulation.end(0, outcome);
  for (const target of others) {
    simulation.publish(target);
    simulation.end(0, 'retry');
  }
  simulation.scan();
  assert.equal(simulation.round(100).length, LIMITS.failing);
});

test('the jobs of an endpoint that is disabled or removed end without opening its circuit', () => {
  const simulation = new Simulation([1]);
  const [target = ''] = simulation.targets;
  for (let i = 0; i < 40; i++) simulation.publish(target);
  while (simulation.running.length > 0) {
    simulation.lanes.skip(target);
    // The simulation counts no failure either.
    simulation.running.pop();
    simulation.lanes.ended(target, 'dead');
    assert.equal(simulation.lanes.open, 0);
    for (const { limit } of simulation.lanes.next(LIMITS.perEndpoint)) {
      const jobs = Math.min(limit, simulation.due.get(target) ?? 0);
      simulation.due.set(target, (simulation.due.get(target) ?? 0) - jobs);
      for (let i = 0; i < jobs; i++) simulation.running.push(target);
      simulation.lanes.claimed(target, jobs, jobs === limit);
    }
  }
  assert.equal(simulation.due.get(target), 0);
  // What fails later counts again.
  for (let i = 1; i <= OPENS; i++) {
    assert.equal(simulation.lanes.open, 0);
    assert.ok(simulation.lanes.mayFollow(target));
    assert.ok(simulation.lanes.reserve(target));
    simulation.lanes.ended(target, 'dead');
  }
  assert.equal(simulation.lanes.open, 1);
  assert.ok(!simulation.lanes.mayFollow(target));
});

test('an endpoint with a rate waits for it without a claim, and is woken', async () => {
  let now = 0;
  const rate = new ClaimRateLimit({ perMs: 1 / 50, burst: 2 }, () => now);
  const lanes = new EndpointLanes({ ...LIMITS, rateOf: () => rate, now: () => now });
  const target = endpointTargetName('t', 'e');
  const { promise, resolve } = Promise.withResolvers<void>();
  lanes.onReady(resolve);
  for (let i = 0; i < 3; i++) {
    if (lanes.reserve(target)) lanes.ended(target, 'done');
  }
  assert.equal(rate.free, 0);
  assert.ok(!lanes.mayFollow(target));
  lanes.note(target);
  assert.ok(!lanes.isReady);
  now = 1_000;
  await promise;
  assert.deepEqual(lanes.next(10), [{ target, limit: 1 }]);
  // What a claim did not find is not counted.
  lanes.claimed(target, 0, false);
  assert.equal(rate.free, 2);
  assert.ok(lanes.mayFollow(target));
});

test('the lanes that are remembered without work are bounded, and those without a past are forgotten', () => {
  const lanes = new EndpointLanes({ ...LIMITS, failing: 1_000, now: () => 0, random: () => 0 });
  const all = 20_000;
  for (let i = 0; i < all + 500; i++) {
    const target = endpointTargetName(`t${i % 7}`, `e${i}`);
    for (let failures = 0; failures < OPENS; failures++) {
      assert.ok(lanes.reserve(target));
      lanes.ended(target, 'retry');
    }
  }
  assert.equal(lanes.open, all);
  // The oldest were forgotten with their failures; the others are refused.
  assert.ok(lanes.reserve(endpointTargetName('t0', 'e0')));
  assert.ok(!lanes.reserve(endpointTargetName(`t${(all + 499) % 7}`, `e${all + 499}`)));
});
