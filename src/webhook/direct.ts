import type { ByteBudget } from '../http/byte-budget.ts';
import type { DirectHandler } from '../http/direct-lane.ts';
import { parseJsonBody } from '../http/json-body.ts';
import { type AcceptOptions, storeDelivery } from './accept-delivery.ts';
import { ACKNOWLEDGED, TEXT_TYPE } from './error-format.ts';
import { readReceived } from './received.ts';
import type { TokenCheck } from './token-guard.ts';

/** The part of /webhook itself in the direct lane: deliveries that are in order; what is refused goes to the framework. */
export function directReceiver(
  options: AcceptOptions,
  isAllowed: TokenCheck,
  budget: ByteBudget,
  maxBodyBytes: number,
): DirectHandler {
  return (exchange) => {
    const { headers } = exchange.request;
    const bytes = Number(headers['content-length']);
    if (!isAllowed(headers) || !budget.hasRoomFor(bytes)) return false;
    let giveBack: (() => void) | undefined;
    const reading = exchange.readBody(maxBodyBytes, (body) => {
      const parsed = parsedOrUndefined(body);
      if (parsed === undefined) {
        // The framework takes it from the budget again.
        giveBack?.();
        return exchange.handOver(body);
      }
      const received = readReceived(headers, headers['content-type'] ?? null, body, parsed);
      exchange.answer(storeDelivery(options, received), () => exchange.send(200, TEXT_TYPE, ACKNOWLEDGED));
    });
    if (reading) giveBack = budget.take(bytes, exchange);
    return reading;
  };
}

/** Undefined for what is no JSON. */
function parsedOrUndefined(body: Buffer): unknown {
  try {
    return parseJsonBody(body);
  } catch {
    return undefined;
  }
}
