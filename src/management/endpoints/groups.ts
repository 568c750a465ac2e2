import type { Reply } from '@portico/transport';
import { processStates, type ShowDetails } from '../../config/options/endpoint-id.ts';
import type { HealthGroupOptions } from '../../config/schema/endpoints.ts';
import type { SecretTexts } from '../../core/redaction.ts';
import type { HealthResult, HealthStatus } from '../../telemetry/health.ts';
import { ManagementOptionsError } from '../environment.ts';
import { COMMON_HEADERS, type MediaType, mediaTypeFor } from '../management-errors.ts';
import { maskText } from '../masking.ts';

interface HealthBodyOptions {
  readonly type: MediaType;
  /** Whether to show components and details, or only the status. */
  readonly shown: boolean;
  /** Secrets to mask in details. */
  readonly secrets: SecretTexts;
  /** The names of the groups, sorted; only for /health itself. */
  readonly groups?: readonly string[];
}

/**
 * CONTRACT.md#management-bodies: a status and its components. Version 2 of the media type calls the
 * components `details`.
 */
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

/**
 * Details come from users' checks too. If JSON cannot represent them, the other components must still be
 * shown.
 */
function detailsText(details: unknown, secrets: SecretTexts): string | undefined {
  try {
    return JSON.stringify(details, (_key, value: unknown) =>
      typeof value === 'string' ? maskText(value, secrets) : value,
    );
  } catch {
    return '{"error":"the details cannot be written as JSON"}';
  }
}

/** A valid group: each member is an existing check. */
export interface HealthGroup {
  readonly members: readonly string[];
  readonly showDetails: ShowDetails;
}

/**
 * The states of the process; only in groups, since CONTRACT.md#management-bodies allows only UP and DOWN for
 * the whole.
 */
export const [LIVENESS_STATE, READINESS_STATE] = processStates;

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

/**
 * Liveness checks nothing outside the process; otherwise an outage of the database would restart every
 * replica.
 */
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

/** Actuator's HTTP status for a health status. */
function statusCode(status: HealthStatus): 200 | 503 {
  return status === 'DOWN' || status === 'OUT_OF_SERVICE' ? 503 : 200;
}

/** The reply with a result, for an Accept header. */
export function healthReply(
  result: HealthResult,
  accept: string | undefined,
  options: HealthReplyOptions,
): Reply {
  const type = mediaTypeFor(accept);
  const body = healthBody(result, { ...options, type });
  return { status: statusCode(result.status), type, body, headers: COMMON_HEADERS };
}

/**
 * Like `healthReply`; returns its last reply again while result, Accept header and known secrets are
 * identical.
 */
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
