import type { ApiGate } from '../../http/access/api-gate.ts';
import { HttpProblem, toProblem } from '../../http/problem.ts';
import { requestFields } from '../../observability/trace/request-fields.ts';
import type { GraphqlSocket } from './graphql-socket.ts';

/** A service that cannot tell now may be able to soon (RFC 6455 7.4.1, "Try Again Later"). */
const TRY_AGAIN = 1013;

/**
 * Judges the credentials of a WebSocket: those of the payload of `connection_init`, or else of the request that opened it.
 * Resolves to false for one that is to be refused.
 */
export async function admitSocket(
  gate: ApiGate,
  socket: Pick<GraphqlSocket, 'exchange' | 'close'>,
  params: Readonly<Record<string, unknown>> | undefined,
): Promise<boolean> {
  const { exchange } = socket;
  try {
    await gate.admitLate(exchange, authorizationOf(params));
    return true;
  } catch (error) {
    gate.noteRefusal(exchange, error);
    const { status, code } = toProblem(error);
    exchange.log.debug({ ...requestFields(exchange), status, code }, 'WebSocket refused');
    if (status >= 500) socket.close(TRY_AGAIN, 'Try again later');
    return false;
  }
}

/**
 * The entry `Authorization` of the payload, in any case; browsers can send no header with a WebSocket. Throws HttpProblem
 * for two, as for two header fields.
 */
function authorizationOf(params: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const entries = Object.entries(params ?? {}).filter(([name]) => name.toLowerCase() === 'authorization');
  if (entries.length > 1) {
    throw new HttpProblem(400, 'DUPLICATE_FIELD', 'connection_init has more than one Authorization');
  }
  const [[, value] = []] = entries;
  return typeof value === 'string' ? value : undefined;
}
