import { comparableEndpointId } from '../config/endpoint-id.ts';

/** Tells whether an endpoint is exposed: named by `include`, or `*` there, and not by `exclude` (contract 4.3). */
export function exposure(include: readonly string[], exclude: readonly string[]): (id: string) => boolean {
  const included = matcher(include);
  const excluded = matcher(exclude);
  return (id) => included(id) && !excluded(id);
}

function matcher(names: readonly string[]): (id: string) => boolean {
  if (names.includes('*')) return () => true;
  const comparable = new Set(names.map(comparableEndpointId));
  return (id) => comparable.has(comparableEndpointId(id));
}
