import type { FastifyPluginAsync } from 'fastify';
import { createEvents } from '../inbox/events.ts';
import type { ReplayPlan } from '../inbox/operations.ts';
import { createReplayPlan, createWork } from '../inbox/work.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { readOptions, readWork, type WebhookOptions } from './options.ts';
import { RECEIVER_PATH, receiver } from './receiver.ts';

/**
 * The webhook door (CONTRACT.md#webhook-receipt) as a Fastify plugin. It starts handlers when the application
 * is ready, and finishes or releases running attempts when the application closes. Close the inbox after
 * that. Fails with ConfigError for invalid options.
 */
export const webhook: FastifyPluginAsync<WebhookOptions> = async (app, given) => {
  const { inbox, metrics } = given;
  const { stopTimeout, sources, secrets, headers, ...options } = readOptions(given);
  using building = new DisposableStack();
  // Without a registry, the events count in a private one.
  const meters = metrics ?? building.use(new Metrics());
  const events = building.use(createEvents(app.log, meters));
  const work = createWork({ ...options, inbox, metrics, log: app.log, events });

  const resources = building.move();
  app.addHook('onReady', async () => work.start());
  app.addHook('onClose', async () => {
    using _ = resources;
    await work.stop(AbortSignal.timeout(stopTimeout));
  });
  const { maxBodyBytes, maxBytesInFlight } = options.numbers;
  const limits = { maxBodyBytes, maxBytesInFlight };
  const refused = events.refused;
  app.register(receiver, {
    prefix: RECEIVER_PATH,
    inbox,
    work,
    secrets,
    sources,
    headers,
    ...limits,
    refused,
  });
};

/**
 * The plan by which portico/management's `deliveries` replays a delivery under these options. Throws
 * ConfigError.
 */
export function replayPlan(options: Pick<WebhookOptions, 'handlers' | 'sources' | 'forward'>): ReplayPlan {
  return createReplayPlan(readWork(options));
}
