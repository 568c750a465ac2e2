import type { FastifyPluginAsync } from 'fastify';
import { addEndpoint } from '../../http/add-endpoint.ts';
import { bodyBudgetOf, LARGE_SHARE } from '../../http/body/body-budget.ts';
import { readRawBodies } from '../../http/body/request-body.ts';
import { refuseUnrouted } from '../../http/unrouted.ts';
import { DeliveryIds } from '../../inbox/delivery-ids.ts';
import { traceOfHeaders } from '../../observability/trace/trace-fields.ts';
import { largestBody } from '../sources/defaults.ts';
import type { SourceSettings } from '../sources/source.ts';
import { webhookErrors } from '../webhook-errors.ts';
import type { ReceiverParts } from './accept-delivery.ts';
import { deliveryEndpoint } from './delivery-endpoint.ts';
import { sourceEndpoint } from './source-endpoint.ts';
import { tokenGuard } from './token-guard.ts';

/** What the receiver works with. */
export interface ReceiverOptions extends Pick<ReceiverParts, 'inbox' | 'plan' | 'onAppended' | 'onRefused'> {
  /** Where a request stands in a trace; default as its headers say. */
  readonly traceOf?: ReceiverParts['traceOf'] | undefined;
  /** The shared secrets that are accepted in x-webhook-token; none: not secured. Asked at each request. */
  secrets(): readonly string[];
  /** The headers that deliveries at /webhook itself keep, in lower case; default none. */
  readonly headers?: readonly string[];
  /** Signed sources, each at /webhook/<name>. */
  readonly sources: readonly SourceSettings[];
  /** Largest body in bytes, where a source has no limit of its own. A larger one is a 413. */
  readonly maxBodyBytes: number;
  /** Bytes that all bodies hold at the same time, unless the listener has a budget for them. */
  readonly maxBytesInFlight: number;
}

/** Where deliveries come in. */
export const RECEIVER_PATH = '/webhook';

/** The body limit of a source: its own or the door's, and no more than can ever be under way. */
function bodyLimitOf(source: SourceSettings, { maxBodyBytes, maxBytesInFlight }: ReceiverOptions): number {
  const limit = source.maxBodyBytes ?? Math.max(maxBodyBytes, largestBody(source.scheme));
  return Math.min(limit, Math.max(maxBodyBytes, Math.floor(maxBytesInFlight * LARGE_SHARE)));
}

/** Receives deliveries and stores them (contract 4.4); registered with RECEIVER_PATH as its prefix. */
export const receiver: FastifyPluginAsync<ReceiverOptions> = async (app, given) => {
  const { secrets, headers, sources, maxBodyBytes, maxBytesInFlight } = given;
  const parts: ReceiverParts = {
    ...given,
    traceOf: given.traceOf ?? traceOfHeaders,
    ids: new DeliveryIds(),
    bodyLimit: maxBodyBytes,
  };
  readRawBodies(app, bodyBudgetOf(app, { max: maxBytesInFlight, usual: maxBodyBytes }));
  addEndpoint(app, 'POST', '', deliveryEndpoint(tokenGuard(secrets), parts, headers));
  for (const source of sources) {
    const bodyLimit = bodyLimitOf(source, given);
    addEndpoint(app, 'POST', `/${source.name}`, sourceEndpoint(source, { ...parts, bodyLimit }));
  }
  // All other paths are the application's own.
  const paths = ['', ...sources.map(({ name }) => `/${name}`)];
  refuseUnrouted(app, webhookErrors, Object.fromEntries(paths.map((path) => [path, 'POST'])));
};
