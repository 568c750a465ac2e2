import type { ByteBudget } from '../../http/body/byte-budget.ts';
import { parseJsonBody } from '../../http/body/json-body.ts';
import type { Endpoint } from '../../http/endpoint.ts';
import { type AcceptOptions, acceptDelivery } from './accept-delivery.ts';
import { readReceived } from './received.ts';
import type { TokenGuard } from './token-guard.ts';

/** What the endpoint of /webhook works with. */
export interface DeliveryEndpointOptions extends AcceptOptions {
  readonly guard: TokenGuard;
  readonly budget: ByteBudget;
  /** Largest body in bytes. */
  readonly bodyLimit: number;
}

/** The endpoint of /webhook itself (contract 4.4). */
export function deliveryEndpoint(options: DeliveryEndpointOptions): Endpoint {
  const { guard, budget, bodyLimit } = options;
  return {
    bodyLimit,
    admit(exchange, bodyLength) {
      guard(exchange.headers);
      budget.take(bodyLength, exchange);
    },
    handle: ({ headers, contentType, body }) =>
      acceptDelivery(options, readReceived(headers, contentType, body, parseJsonBody(body))),
  };
}
