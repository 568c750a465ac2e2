import type { ByteBudget } from '../../http/body/byte-budget.ts';
import { parseJsonBody } from '../../http/body/json-body.ts';
import type { DirectHandler } from '../../http/fast-path/fast-path.ts';
import { ACKNOWLEDGED, TEXT_TYPE } from '../webhook-errors.ts';
import { type AcceptOptions, newDelivery } from './accept-delivery.ts';
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
    const { headers, body } = exchange;
    if (body.length > maxBodyBytes || !isAllowed(headers) || !budget.hasRoomFor(body.length)) return false;
    const parsed = parsedOrUndefined(body);
    if (parsed === undefined) return false;
    budget.take(body.length, exchange);
    const received = readReceived(headers, headers['content-type'] ?? null, body, parsed);
    const delivery = newDelivery(options, received);
    exchange.answer(options.inbox.append(delivery), (appended) => {
      options.onAppended(delivery, appended);
      exchange.send(200, TEXT_TYPE, ACKNOWLEDGED);
    });
    return true;
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
