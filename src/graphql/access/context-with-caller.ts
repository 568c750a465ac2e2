import { isRecord } from '../../core/record.ts';
import type { ApiGate } from '../../http/access/api-gate.ts';
import type { Exchange } from '../../http/endpoint.ts';

/** Makes the context of a request from the one that all share: behind a gate it has the `caller`. */
export function contextWithCaller(
  shared: unknown,
  gate: ApiGate | undefined,
): (exchange: Exchange) => unknown {
  if (gate === undefined || (shared !== undefined && !isRecord(shared))) return () => shared;
  return ({ caller }) => ({ ...shared, caller });
}
