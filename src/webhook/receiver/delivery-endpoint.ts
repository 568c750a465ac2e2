import type { IncomingHttpHeaders } from 'node:http';
import { parseJsonBody } from '../../http/body/json-body.ts';
import { refuseCrossSiteForm } from '../../http/cross-site.ts';
import type { Endpoint } from '../../http/endpoint.ts';
import { keptHeaders } from '../../inbox/delivery-headers.ts';
import { acceptDelivery, type ReceiverParts } from './accept-delivery.ts';
import type { TokenGuard } from './token-guard.ts';

/** The endpoint of /webhook itself (contract 4.4); `names` are the headers that its deliveries keep. */
export function deliveryEndpoint(
  guard: TokenGuard,
  parts: ReceiverParts,
  names: readonly string[] = [],
): Endpoint {
  return {
    bodyLimit: parts.bodyLimit,
    admit(exchange) {
      // A form cannot send the token.
      if (!guard(exchange.headers)) refuseCrossSiteForm(exchange);
    },
    handle(exchange) {
      const { headers, contentType, body } = exchange;
      const parsed = parseJsonBody(body);
      const event = eventOf(parsed);
      const dedupKey = dedupKeyOf(headers);
      const kept = keptHeaders(names, headers);
      const received = {
        source: '',
        event,
        dataPointer: '/data',
        dedupKey,
        contentType,
        headers: kept,
        body,
      };
      return acceptDelivery(parts, exchange, received, parsed);
    },
  };
}

/** The `event` of a body (contract 2.5); null when the body is any other JSON value. */
function eventOf(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const { event } = body as { readonly event?: unknown };
  return typeof event === 'string' ? event : null;
}

/**
 * A sender that repeats a delivery may say so (Standard Webhooks, draft-ietf-httpapi-idempotency-key-header). The database
 * stores a long key as its digest.
 */
function dedupKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers['webhook-id'] ?? headers['idempotency-key'];
  return typeof key === 'string' && key !== '' ? key : null;
}
