import { processStates, type ShowDetails } from '../../config/options/health-names.ts';
import type { HealthGroupOptions } from '../../config/schema/health-code.ts';
import { ManagementOptionsError } from '../options-error.ts';

/** A valid group: each of its members is a check that exists. */
export interface HealthGroup {
  readonly members: readonly string[];
  readonly showDetails: ShowDetails;
}

/** The states of the process; in groups only, since contract 2.4 has no other whole than UP and DOWN. */
export const [LIVENESS_STATE, READINESS_STATE] = processStates;

/**
 * All groups by name, sorted: those that are configured, `liveness` and `readiness`; `checks` are those of /health.
 * Throws ManagementOptionsError for a member that is no check, and for a group with the name of a check.
 */
export function healthGroups(
  checks: readonly string[],
  configured: ReadonlyMap<string, HealthGroupOptions>,
  showDetails: ShowDetails,
): ReadonlyMap<string, HealthGroup> {
  const groups = [...new Map([...builtInGroups(checks), ...configured])];
  const known = [...checks, LIVENESS_STATE, READINESS_STATE];
  return new Map(
    groups
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, options]) => {
        if (known.includes(name)) {
          throw new ManagementOptionsError(
            `The health group ${JSON.stringify(name)} has the name of a health check. Rename one of them.`,
          );
        }
        const shown = options.showDetails ?? showDetails;
        return [name, { members: members(name, options, checks, known), showDetails: shown }];
      }),
  );
}

/** Liveness checks nothing outside the process, or an outage of the database would restart every replica. */
function builtInGroups(checks: readonly string[]): ReadonlyMap<string, HealthGroupOptions> {
  const database = checks.filter((name) => name === 'db');
  return new Map([
    ['liveness', { include: [LIVENESS_STATE] }],
    ['readiness', { include: [READINESS_STATE, ...database] }],
  ]);
}

function members(
  group: string,
  { include, exclude = [] }: HealthGroupOptions,
  checks: readonly string[],
  known: readonly string[],
): readonly string[] {
  for (const name of [...include, ...exclude]) {
    if (name === '*' || known.includes(name)) continue;
    throw new ManagementOptionsError(
      `The health group ${JSON.stringify(group)} names ${JSON.stringify(name)}, which is no health check here. ` +
        `There are ${known.join(', ')}; * stands for those of /health.`,
    );
  }
  const has = (names: readonly string[], name: string) =>
    names.includes(name) || (names.includes('*') && checks.includes(name));
  const found = known.filter((name) => has(include, name) && !has(exclude, name));
  if (found.length > 0) return found;
  throw new ManagementOptionsError(
    `The health group ${JSON.stringify(group)} has no checks. Include one, or leave the group out.`,
  );
}
