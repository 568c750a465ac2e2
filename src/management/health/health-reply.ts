import type { Reply } from '../../http/endpoint.ts';
import type { HealthResult, HealthStatus } from '../../observability/health/health.ts';
import { mediaTypeFor } from '../media-type.ts';
import { COMMON_HEADERS } from '../replies.ts';
import { type HealthBodyOptions, healthBody } from './body.ts';

type HealthReplyOptions = Omit<HealthBodyOptions, 'type'>;

/** The HTTP status of a health status, as Actuator maps them. */
function statusCode(status: HealthStatus): 200 | 503 {
  return status === 'DOWN' || status === 'OUT_OF_SERVICE' ? 503 : 200;
}

/** The reply about a result, for an Accept header. */
export function healthReply(
  result: HealthResult,
  accept: string | undefined,
  options: HealthReplyOptions,
): Reply {
  const type = mediaTypeFor(accept);
  const body = healthBody(result, { ...options, type });
  return { status: statusCode(result.status), type, body, headers: COMMON_HEADERS };
}

/** The same, which keeps its last reply for as long as result, Accept header and known secrets are identical. */
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
