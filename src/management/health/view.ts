import type { ShowDetails } from '../../config/options/health-names.ts';
import type { HealthGroupOptions } from '../../config/schema/health-code.ts';
import { hideSecrets, type SecretTexts } from '../../core/redaction.ts';
import type { HealthIndicator, HealthResult } from '../../observability/health/health.ts';
import type { Readiness } from '../../observability/health/readiness.ts';
import type { HealthRegistry } from '../../observability/health/registry.ts';
import { maskSecrets } from '../access/masking.ts';
import { type HealthGroup, healthGroups, LIVENESS_STATE, READINESS_STATE } from './groups.ts';

export interface HealthViewOptions {
  readonly health: HealthRegistry;
  readonly readiness: Readiness;
  readonly healthGroups?: ReadonlyMap<string, HealthGroupOptions> | undefined;
  readonly showDetails?: ShowDetails | undefined;
  /** Texts that are shown nowhere, whatever they stand in. */
  readonly secrets?: SecretTexts | undefined;
}

/** Where a path below /health leads: to some checks, and in what they find to one place. */
export interface HealthTarget {
  readonly members: readonly string[];
  /** The names that lead from there to one component; none for the whole. */
  readonly path: readonly string[];
  readonly showDetails: ShowDetails;
}

/** Health as it is asked for: all checks, the groups, and the components of both. */
export interface HealthView {
  /** The checks, and the states of the process. */
  readonly registry: HealthRegistry;
  /** What /health itself is about. */
  readonly whole: HealthGroup;
  readonly groups: ReadonlyMap<string, HealthGroup>;
  /** Takes out of a detail what nobody may see: messages of drivers like to quote the URL they could not connect to. */
  mask(text: string): string;
  /** Where the names behind /health/ lead; undefined when there is no such group or check. */
  resolve(path: readonly string[]): HealthTarget | undefined;
}

/** Throws ManagementOptionsError for groups that cannot be made, HealthCheckNameError for a check that is named like a state. */
export function healthView(options: HealthViewOptions): HealthView {
  const { health, readiness, showDetails = 'when-authorized', secrets } = options;
  const whole: HealthGroup = { members: health.names, showDetails };
  const groups = healthGroups({
    checks: health.names,
    groups: options.healthGroups ?? new Map(),
    showDetails,
  });
  return {
    registry: health.with(states(readiness)),
    whole,
    groups,
    mask: (text) => maskSecrets(hideSecrets(text, secrets?.texts ?? [])),
    resolve([first = '', ...rest]) {
      const group = groups.get(first);
      const { members, showDetails } = group ?? whole;
      const path = group === undefined ? [first, ...rest] : rest;
      const [component] = path;
      if (component === undefined) return { members, path, showDetails };
      // Nobody waits for checks that were not asked for.
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
