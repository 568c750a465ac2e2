import { ConfigError } from '../config/config-error.ts';
import { liveSecret } from '../config/live-secret.ts';
import type { Config } from '../config/load.ts';
import type { Settings } from '../config/options/options.ts';
import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import { sendProblem } from '../http/error-format.ts';
import { HttpProblem, reasonPhrase } from '../http/problem.ts';
import { addBacklogMetrics } from '../inbox/backlog-metrics.ts';
import { contractHandlers } from '../webhook/contract-handlers.ts';
import type { TargetDefaults } from '../webhook/handler-target.ts';
import { createJobPlan, type JobPlan } from '../webhook/job-plan.ts';
import { RECEIVER_PATH, receiver } from '../webhook/receiver/receiver.ts';
import { readWebhookSettings, type WebhookSettings } from '../webhook/settings.ts';
import { createSource } from '../webhook/sources/source.ts';
import { webhookErrors } from '../webhook/webhook-errors.ts';
import { createWork, type WebhookWork } from '../webhook/work.ts';
import type { Parts } from './parts.ts';

/** Wires the webhook door; what works behind it starts once all doors listen. Throws ConfigError. */
export function openWebhookDoor({
  config,
  secrets,
  loggers,
  metrics,
  events,
  database,
  listener,
  onStop,
}: Parts): Pick<WebhookWork, 'start' | 'stop'> {
  const { settings } = config;
  const log = loggers.child('inbox');
  const { inbox } = database();
  const { sources, forwards } = webhookSettings(config);
  secrets.add([...sources, ...forwards].flatMap((each) => each.secrets));
  const handlers = handlersOf(config);
  addBacklogMetrics(metrics, inbox);

  const work = createWork({
    inbox,
    handlers,
    forwards,
    defaults: targetDefaults(settings),
    lease: settings['webhook.lease'],
    handlerGrace: settings['webhook.handlerGrace'],
    retention: settings['webhook.retention'] * 86_400_000,
    retentionBytes: settings['webhook.retentionBytes'],
    log,
    events,
  });

  const secret = onStop(
    liveSecret(config, 'webhook.secret', (problem) => {
      // Before anything is logged: the new ones are to be in no line.
      if (problem === undefined) secrets.add(secret.current ?? []);
      if (problem === undefined) log.info('webhook secrets read again');
      else log.error({ problem }, 'webhook secrets changed but cannot be used; the old ones stay');
    }),
  );
  const none: readonly string[] = [];
  const app = listener('webhook', webhookErrors);
  app.setNotFoundHandler((request, reply) =>
    sendProblem(webhookErrors, new HttpProblem(404, 'NO_ROUTE', reasonPhrase(404)), request, reply),
  );
  app.register(receiver, {
    prefix: RECEIVER_PATH,
    inbox,
    secrets: () => secret.current ?? none,
    sources: sources.map(createSource),
    plan: work.plan,
    maxBodyBytes: settings['webhook.maxBodyBytes'],
    maxBytesInFlight: settings['webhook.maxBytesInFlight'],
    onAppended(delivery, appended) {
      events.appended(delivery, appended);
      work.wake(delivery);
    },
    onRefused: events.refused,
  });
  return work;
}

/** Which jobs a delivery would get now. */
export function jobPlanOf(config: Config): JobPlan {
  return createJobPlan(handlersOf(config), webhookSettings(config).forwards);
}

/** Throws ConfigError. */
export function webhookSettings({ code, file, resolveSecret }: Config): WebhookSettings {
  const problems: string[] = [];
  const read = readWebhookSettings(code, file ?? 'configuration', resolveSecret, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return read;
}

/** The contract's own handlers, unless the configuration module has others for their events. */
function handlersOf({ code }: Config): ReadonlyMap<string, HandlerSpec> {
  return new Map<string, HandlerSpec>([
    ...Object.entries(contractHandlers).map(([event, handler]) => [event, { handler }] as const),
    ...code.handlers,
  ]);
}

function targetDefaults(settings: Settings): TargetDefaults {
  return {
    concurrency: settings['webhook.concurrency'],
    timeout: settings['webhook.timeout'],
    maxAttempts: settings['webhook.attempts'],
    backoff: { base: settings['webhook.backoff'], cap: settings['webhook.maxBackoff'] },
  };
}
