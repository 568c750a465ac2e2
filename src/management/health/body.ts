import type { SecretTexts } from '../../core/redaction.ts';
import type { HealthResult } from '../../observability/health/health.ts';
import { maskText } from '../access/masking.ts';
import type { MediaType } from '../media-type.ts';

export interface HealthBodyOptions {
  readonly type: MediaType;
  /** Whether components and details are shown, or the status alone. */
  readonly shown: boolean;
  /** Secrets to mask in details. */
  readonly secrets: SecretTexts;
  /** The names of the groups, sorted; only for the whole. */
  readonly groups?: readonly string[];
}

/** contract 2.4: a status, and its components. Version 2 of the media type calls them `details`. */
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
  // In version 2 components and details would have one name; the components win.
  if (text !== undefined && text !== '{}' && (parts.length === 0 || key !== 'details')) {
    members.push(`"details":${text}`);
  }
  if (parts.length > 0) members.push(`"${key}":{${parts.join(',')}}`);
  return members;
}

/** Details come from users' checks too: one that JSON cannot hold must not fail the other components. */
function detailsText(details: unknown, secrets: SecretTexts): string | undefined {
  try {
    return JSON.stringify(details, (_key, value: unknown) =>
      typeof value === 'string' ? maskText(value, secrets) : value,
    );
  } catch {
    return '{"error":"the details cannot be written as JSON"}';
  }
}
