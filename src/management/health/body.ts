import type { HealthResult } from '../../observability/health/health.ts';
import type { MediaType } from '../media-type.ts';

type Mask = (text: string) => string;

export interface HealthBodyOptions {
  readonly type: MediaType;
  /** Whether components and details are shown, or the status alone. */
  readonly shown: boolean;
  /** Masks the secrets in a text. */
  readonly mask: Mask;
  /** The names of the groups, sorted; only for the whole. */
  readonly groups?: readonly string[];
}

/** contract 2.4: a status, and its components. Version 2 of the media type calls them `details`. */
export function healthBody(
  result: HealthResult,
  { type, shown, mask, groups = [] }: HealthBodyOptions,
): string {
  const key = type === 'application/vnd.spring-boot.actuator.v2+json' ? 'details' : 'components';
  const members = shown ? membersOf(result, key, mask) : statusOf(result);
  if (groups.length > 0) members.push(`"groups":${JSON.stringify(groups)}`);
  return `{${members.join(',')}}`;
}

function statusOf({ status }: HealthResult): string[] {
  return [`"status":"${status}"`];
}

function membersOf(result: HealthResult, key: string, mask: Mask): string[] {
  const { details, components = {} } = result;
  const members = statusOf(result);
  const parts = Object.entries(components).map(
    ([name, part]) => `${JSON.stringify(name)}:{${membersOf(part, key, mask).join(',')}}`,
  );
  const text = details === undefined ? undefined : detailsText(details, mask);
  // In version 2 components and details would have one name; the components win.
  if (text !== undefined && text !== '{}' && (parts.length === 0 || key !== 'details')) {
    members.push(`"details":${text}`);
  }
  if (parts.length > 0) members.push(`"${key}":{${parts.join(',')}}`);
  return members;
}

/** Details come from users' checks too: one that JSON cannot hold must not fail the other components. */
function detailsText(details: unknown, mask: Mask): string | undefined {
  try {
    return JSON.stringify(details, (_key, value: unknown) =>
      typeof value === 'string' ? mask(value) : value,
    );
  } catch {
    return '{"error":"the details cannot be written as JSON"}';
  }
}
