import { formatPointer } from '../../core/json-pointer.ts';
import type { Endpoint, Exchange } from '../../http/endpoint.ts';
import { HttpProblem } from '../../http/problem.ts';
import { parseDeliveryBody } from '../../inbox/delivery-body.ts';
import { keptHeaders } from '../../inbox/delivery-headers.ts';
import type { BodyCheck, Refusal } from '../schemes/scheme.ts';
import { readDelivery } from '../sources/read-delivery.ts';
import type { SourceSettings } from '../sources/source.ts';
import { TEXT_TYPE } from '../webhook-errors.ts';
import { acceptDelivery, type ReceiverParts } from './accept-delivery.ts';

/**
 * The endpoint of a signed source: it refuses what the headers alone give away before the body is read, checks the
 * signature on the body as it came, and only then parses the body.
 * Throws UnusableSecretError.
 */
export function sourceEndpoint(source: SourceSettings, parts: ReceiverParts): Endpoint {
  const { name } = source;
  const verifier = source.signature.verifier(source.secrets);
  const usualPointer = formatPointer(source.data);
  const refused = (reason: Refusal): HttpProblem => {
    parts.onRefused(name, reason);
    return new HttpProblem(401, 'REFUSED', 'Unauthorized', {
      headers: { connection: 'close' },
      // For the log: a sender learns no reason.
      cause: new Error(`source ${name}: ${reason}`),
    });
  };

  /** What checks the body of a request whose headers are in order. */
  const checks = new WeakMap<Exchange, BodyCheck>();

  return {
    bodyLimit: parts.bodyLimit,
    admit(exchange) {
      const step = verifier(exchange.headers, Date.now());
      if (typeof step !== 'function') throw refused(step);
      checks.set(exchange, step);
    },
    handle(exchange) {
      const { headers, contentType, body } = exchange;
      const check = checks.get(exchange);
      const refusal = check === undefined ? 'no-signature' : check(body);
      if (refusal !== undefined) throw refused(refusal);
      const parsed = parseDeliveryBody({ source: name, contentType, body });
      const read = readDelivery(source, headers, parsed);
      if (read.kind === 'challenge') return { status: 200, type: TEXT_TYPE, body: read.answer };
      const { event, senderEvent, dedupKey } = read;
      const dataPointer = read.pointer === source.data ? usualPointer : formatPointer(read.pointer);
      const kept = keptHeaders(source.headers, headers);
      const names = { source: name, event, senderEvent };
      const received = { ...names, dataPointer, dedupKey, contentType, headers: kept, body };
      return acceptDelivery(parts, exchange, received, parsed);
    },
  };
}
