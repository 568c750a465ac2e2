import type { FastifyPluginAsync } from 'fastify';
import { addEndpoint } from '../../http/add-endpoint.ts';
import { ByteBudget } from '../../http/body/byte-budget.ts';
import { readRawBodies } from '../../http/body/read-bodies.ts';
import { refuseUnrouted } from '../../http/unrouted.ts';
import { DeliveryIds } from '../../inbox/delivery-ids.ts';
import type { SourceSettings } from '../sources/source.ts';
import { webhookErrors } from '../webhook-errors.ts';
import type { ReceiverParts } from './accept-delivery.ts';
import { deliveryEndpoint } from './delivery-endpoint.ts';
import { sourceEndpoint } from './source-endpoint.ts';
import { tokenGuard } from './token-guard.ts';

/** What the receiver works with. */
export interface ReceiverOptions extends Pick<ReceiverParts, 'inbox' | 'plan' | 'onAppended' | 'onRefused'> {
  /** The shared secrets that are accepted in x-webhook-token; none: not secured. Asked at each request. */
  secrets(): readonly string[];
  /** Signed sources, each at /webhook/<name>. */
  readonly sources: readonly SourceSettings[];
  /** Largest body in bytes. A larger one is a 413. */
  readonly maxBodyBytes: number;
  /** Bytes of all bodies under way at the same time. What does not fit is a 503. */
  readonly maxBytesInFlight: number;
}

/** Where deliveries come in. */
export const RECEIVER_PATH = '/webhook';

/** Receives deliveries and stores them (contract 4.4); registered with RECEIVER_PATH as its prefix. */
export const receiver: FastifyPluginAsync<ReceiverOptions> = async (app, given) => {
  const { secrets, sources, maxBodyBytes, maxBytesInFlight } = given;
  const budget = new ByteBudget(maxBytesInFlight);
  const parts: ReceiverParts = { ...given, ids: new DeliveryIds(), budget, bodyLimit: maxBodyBytes };
  readRawBodies(app);
  addEndpoint(app, 'POST', '', deliveryEndpoint(tokenGuard(secrets), parts));
  for (const source of sources) addEndpoint(app, 'POST', `/${source.name}`, sourceEndpoint(source, parts));
  // All other paths are the application's own.
  const paths = ['', ...sources.map(({ name }) => `/${name}`)];
  refuseUnrouted(app, webhookErrors, Object.fromEntries(paths.map((path) => [path, 'POST'])));
};
