import type { Reply, RequestContext } from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import { processStates, type ShowDetails } from '../../config/options/endpoint-id.ts';
import type { SecretTexts } from '../../core/redaction.ts';
import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import {
  HEALTH_COMMAND,
  type HealthIndicator,
  type HealthRegistry,
  type HealthResult,
  type HealthStatus,
  type Readiness,
} from '../../telemetry/health.ts';
import type { HealthGroupOptions } from '../config.ts';
import { COMMON_HEADERS, ManagementOptionsError, mediaTypeFor, NOT_FOUND } from '../management-errors.ts';
import { maskText } from '../masking.ts';
import { addOperations, type ManagementEndpoint } from '../operations.ts';
import type { DoorOptions } from '../options.ts';

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

type HealthViewOptions = Pick<
  DoorOptions,
  'health' | 'readiness' | 'healthGroups' | 'showDetails' | 'secrets'
>;

interface HealthTarget extends HealthGroup {
  /** The names that lead to one component; empty for all of them. */
  readonly path: readonly string[];
}

/** Health as clients see it: all checks, the groups, and the components of both. */
interface HealthView {
  /** The checks, and the states of the process. */
  readonly registry: HealthRegistry;
  readonly readiness: Readiness;
  readonly whole: HealthGroup;
  readonly groups: ReadonlyMap<string, HealthGroup>;
  /** Secrets to mask in details: drivers' messages quote the URL that they could not connect to. */
  readonly secrets: SecretTexts;
  /** Resolves the names after /health/; undefined if there is no such group or check. */
  resolve(path: readonly string[]): HealthTarget | undefined;
}

/** Throws ManagementOptionsError for invalid groups, HealthCheckNameError for a check named like a state. */
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

/** Adds an orchestrator's probes, unguarded: they show more than the status only if everyone may see it. */
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

interface HealthBodyOptions {
  readonly type: ReturnType<typeof mediaTypeFor>;
  readonly shown: boolean;
  readonly secrets: SecretTexts;
  /** The names of the groups, sorted; only for /health itself. */
  readonly groups?: readonly string[];
}

/** A status and its components (CONTRACT.md#management-bodies), `details` in version 2. */
export function healthBody(
  result: HealthResult,
  { type, shown, secrets, groups = [] }: HealthBodyOptions,
): string {
  const key = type === 'application/vnd.spring-boot.actuator.v2+json' ? 'details' : 'components';
  const members = shown ? membersOf(result, key, secrets) : statusOf(result);
  if (groups.length > 0) members.push(`"groups":${JSON.stringify(groups)}`);
  return `{${members.join(',')}}`;
}

function statusOf({ status }: HealthResult): string[] {
  return [`"status":"${status}"`];
}

function membersOf(result: HealthResult, key: string, secrets: SecretTexts): string[] {
  const { details, components = {} } = result;
  const members = statusOf(result);
  const parts = Object.entries(components).map(
    ([name, part]) => `${JSON.stringify(name)}:{${membersOf(part, key, secrets).join(',')}}`,
  );
  const text = details === undefined ? undefined : detailsText(details, secrets);
  // Version 2 has one name for components and details; components win.
  if (text !== undefined && text !== '{}' && (parts.length === 0 || key !== 'details')) {
    members.push(`"details":${text}`);
  }
  if (parts.length > 0) members.push(`"${key}":{${parts.join(',')}}`);
  return members;
}

/** Details may come from users' checks: if JSON cannot represent them, the rest must still be shown. */
function detailsText(details: unknown, secrets: SecretTexts): string | undefined {
  try {
    return JSON.stringify(details, (_key, value: unknown) =>
      typeof value === 'string' ? maskText(value, secrets) : value,
    );
  } catch {
    return '{"error":"the details cannot be written as JSON"}';
  }
}

interface HealthGroup {
  readonly members: readonly string[];
  readonly showDetails: ShowDetails;
}

/** The states of the process, only in groups (CONTRACT.md#management-bodies: the whole is UP or DOWN). */
const [LIVENESS_STATE, READINESS_STATE] = processStates;

/**
 * All groups by name, sorted: the configured ones, `liveness` and `readiness`; `checks` are those of /health.
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

/** Liveness checks nothing outside the process: an outage of the database must not restart every replica. */
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

type HealthReplyOptions = Omit<HealthBodyOptions, 'type'>;

function statusCode(status: HealthStatus): 200 | 503 {
  return status === 'DOWN' || status === 'OUT_OF_SERVICE' ? 503 : 200;
}

function healthReply(result: HealthResult, accept: string | undefined, options: HealthReplyOptions): Reply {
  const type = mediaTypeFor(accept);
  const body = healthBody(result, { ...options, type });
  return { status: statusCode(result.status), type, body, headers: COMMON_HEADERS };
}

/** Like `healthReply`, but repeats its last reply while result, Accept header and secrets are the same. */
export function cachedHealthReply(
  options: HealthReplyOptions,
): (result: HealthResult, accept: string | undefined) => Reply {
  const { secrets } = options;
  let last: Reply | undefined;
  let lastResult: HealthResult | undefined;
  let lastAccept: string | undefined;
  let lastTexts: readonly string[] | undefined;
  return (result, accept) => {
    const { texts } = secrets;
    const same = result === lastResult && accept === lastAccept && texts === lastTexts;
    if (last !== undefined && same) return last;
    last = healthReply(result, accept, options);
    lastResult = result;
    lastAccept = accept;
    lastTexts = texts;
    return last;
  };
}
