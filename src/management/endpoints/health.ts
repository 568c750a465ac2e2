import type { Reply, RequestContext } from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import type { SecretTexts } from '../../core/redaction.ts';
import {
  HEALTH_COMMAND,
  type HealthIndicator,
  type HealthRegistry,
  type HealthResult,
  type Readiness,
} from '../../telemetry/health.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { NOT_FOUND } from '../management-errors.ts';
import { addOperations } from '../operations.ts';
import type { DoorOptions } from '../options.ts';
import {
  cachedHealthReply,
  type HealthGroup,
  healthGroups,
  healthReply,
  LIVENESS_STATE,
  READINESS_STATE,
} from './groups.ts';

/** Only authorised requests pass the guard; without users every request is authorised. */
function detailsShown({ showDetails }: Pick<HealthTarget, 'showDetails'>): boolean {
  return showDetails !== 'never';
}

/** The health endpoint: the overall status, the groups, and the components of both. */
export function healthEndpoint(view: HealthView): ManagementEndpoint {
  const { registry, secrets, whole } = view;
  const checkWhole = registry.group(whole.members);
  const replyWhole = cachedHealthReply({
    shown: detailsShown(whole),
    groups: [...view.groups.keys()],
    secrets,
  });

  /** The target of a path below /health; undefined if it is unknown or hidden. */
  function targetOf(path: string): HealthTarget | undefined {
    const target = view.resolve(path.split('/'));
    if (target === undefined || target.path.length === 0) return target;
    return detailsShown(target) ? target : undefined;
  }

  function part({ param, headers }: RequestContext): MaybePromise<Reply> {
    const target = targetOf(param);
    if (target === undefined) throw NOT_FOUND;
    const { members, path } = target;
    return whenReady(registry.check(members), (report) => {
      const found = componentAt(report, path);
      if (found === undefined) throw NOT_FOUND;
      return healthReply(found, headers.accept, { shown: detailsShown(target), secrets });
    });
  }

  return {
    id: 'health',
    about: 'The health of this service and its dependencies.',
    routes: () => ({
      '/health': {
        get: ({ headers }) => whenReady(checkWhole(), (report) => replyWhole(report, headers.accept)),
      },
      '/health/{*path}': { get: part, exists: (path) => targetOf(path) !== undefined },
    }),
  };
}

function componentAt(whole: HealthResult, path: readonly string[]): HealthResult | undefined {
  const part = (at: HealthResult | undefined, name: string) =>
    new Map(Object.entries(at?.components ?? {})).get(name);
  return path.reduce(part, whole);
}

export type HealthViewOptions = Pick<
  DoorOptions,
  'health' | 'readiness' | 'healthGroups' | 'showDetails' | 'secrets'
>;

/** The target of a path below /health: some checks, and one place in their results. */
interface HealthTarget extends HealthGroup {
  /** The names that lead to one component; empty for all of them. */
  readonly path: readonly string[];
}

/** Health as clients see it: all checks, the groups, and the components of both. */
export interface HealthView {
  /** The checks, and the states of the process. */
  readonly registry: HealthRegistry;
  readonly readiness: Readiness;
  /** The checks of /health itself. */
  readonly whole: HealthGroup;
  readonly groups: ReadonlyMap<string, HealthGroup>;
  /** Secrets to mask in details: drivers' messages quote the URL that they could not connect to. */
  readonly secrets: SecretTexts;
  /** Resolves the names after /health/; undefined if there is no such group or check. */
  resolve(path: readonly string[]): HealthTarget | undefined;
}

/**
 * Throws ManagementOptionsError for invalid groups, and HealthCheckNameError for a check with the name of a
 * state.
 */
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

/** The paths of the probes, and the health groups they report. */
const PROBES = { '/livez': 'liveness', '/readyz': 'readiness' } as const;

/** The paths of the probes, outside the base path. */
export const PROBE_PATHS: readonly string[] = Object.keys(PROBES);

/**
 * Adds an orchestrator's probes, unguarded and outside the base path. Their clients never authenticate, so
 * they see more than the status only if everyone may.
 */
export function addProbes(
  scope: FastifyInstance,
  { registry, readiness, groups, secrets }: HealthView,
): void {
  for (const [path, name] of Object.entries(PROBES)) {
    const group = groups.get(name);
    if (group === undefined) continue;
    const check = registry.group(group.members);
    const reply = cachedHealthReply({ shown: group.showDetails === 'always', secrets });
    addOperations(scope, path, {
      get({ headers }) {
        const balances = path === '/readyz' && headers['user-agent'] !== HEALTH_COMMAND;
        if (balances) readiness.probed(performance.now());
        return whenReady(check(), (report) => reply(report, headers.accept));
      },
    });
  }
}
