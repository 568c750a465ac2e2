import type { SecretTexts } from '../../core/redaction.ts';
import type { HealthIndicator, HealthResult } from '../../observability/health/health.ts';
import type { Readiness } from '../../observability/health/readiness.ts';
import type { HealthRegistry } from '../../observability/health/registry.ts';
import type { DoorOptions } from '../options.ts';
import { type HealthGroup, healthGroups, LIVENESS_STATE, READINESS_STATE } from './groups.ts';

export type HealthViewOptions = Pick<
  DoorOptions,
  'health' | 'readiness' | 'healthGroups' | 'showDetails' | 'secrets'
>;

/** Where a path below /health leads: to some checks, and to one place in their results. */
export interface HealthTarget extends HealthGroup {
  /** The names that lead from there to one component; none for the whole. */
  readonly path: readonly string[];
}

/** Health as clients read it: all checks, the groups, and the components of both. */
export interface HealthView {
  /** The checks, and the states of the process. */
  readonly registry: HealthRegistry;
  readonly readiness: Readiness;
  /** The checks of /health itself. */
  readonly whole: HealthGroup;
  readonly groups: ReadonlyMap<string, HealthGroup>;
  /** Secrets to mask in details: messages of drivers quote the URL that they could not connect to. */
  readonly secrets: SecretTexts;
  /** Resolves the names behind /health/; undefined when there is no such group or check. */
  resolve(path: readonly string[]): HealthTarget | undefined;
}

/** Throws ManagementOptionsError for invalid groups, HealthCheckNameError for a check with the name of a state. */
export function healthView(options: HealthViewOptions): HealthView {
  const { health, readiness, showDetails = 'when-authorized', secrets } = options;
  const whole: HealthGroup = { members: health.names, showDetails };
  const groups = healthGroups(health.names, options.healthGroups ?? new Map(), showDetails);
  return {
    registry: health.with(states(readiness)),
    readiness,
    whole,
    groups,
    secrets,
    resolve([first = '', ...rest]) {
      const group = groups.get(first);
      const { members, showDetails } = group ?? whole;
      const path = group === undefined ? [first, ...rest] : rest;
      const [component] = path;
      if (component === undefined) return { members, path, showDetails };
      return members.includes(component) ? { members: [component], path, showDetails } : undefined;
    },
  };
}

const UP: HealthResult = { status: 'UP' };
const OUT_OF_SERVICE: HealthResult = { status: 'OUT_OF_SERVICE' };

function states(readiness: Readiness): readonly HealthIndicator[] {
  return [
    { name: LIVENESS_STATE, check: () => UP },
    { name: READINESS_STATE, check: () => (readiness.accepting ? UP : OUT_OF_SERVICE) },
  ];
}
