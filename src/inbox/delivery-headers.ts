import type { IncomingHttpHeaders } from 'node:http';
import type { StoredDelivery } from './delivery.ts';

/** Headers by name in lower case. */
export type DeliveryHeaders = Readonly<Record<string, string>>;

/** Maximum size of the kept headers of a delivery, names and values together, in bytes. */
export const MAX_HEADER_BYTES = 4_096;

/**
 * Those headers of a request that are kept, in the order of `names`, as JSON text; null without any. What does not fit
 * `MAX_HEADER_BYTES` any more is left out whole: half a value would be a wrong one.
 */
export function keptHeaders(names: readonly string[], headers: Readonly<IncomingHttpHeaders>): string | null {
  const kept: [string, string][] = [];
  let left = MAX_HEADER_BYTES;
  for (const name of names) {
    const value = headers[name];
    if (typeof value !== 'string') continue;
    // Node reads header bytes as Latin-1: one character each.
    const size = name.length + value.length;
    if (size > left) continue;
    left -= size;
    kept.push([name, value]);
  }
  return kept.length === 0 ? null : JSON.stringify(Object.fromEntries(kept));
}

/** The headers of a stored delivery. */
export function headersOf({ headers = null }: Pick<StoredDelivery, 'headers'>): DeliveryHeaders {
  return headers === null ? {} : (JSON.parse(headers) as DeliveryHeaders);
}
