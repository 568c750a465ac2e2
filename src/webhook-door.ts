import { ConfigError } from './config/config-error.ts';
import { liveSecret } from './config/live-secret.ts';
import type { Config } from './config/load.ts';
import type { Settings } from './config/options.ts';
import { Dispatcher } from './inbox/dispatcher.ts';
import type { HandlerSpec } from './inbox/handler.ts';
import { Retention } from './inbox/retention.ts';
import { addBacklogMetrics } from './observability/backlog-metrics.ts';
import type { Parts } from './parts.ts';
import { contractHandlers } from './webhook/contract-handlers.ts';
import { webhookErrors } from './webhook/error-format.ts';
import { forwardTarget } from './webhook/forward/forward-target.ts';
import { createPoster } from './webhook/forward/post.ts';
import { handlerTarget, type TargetDefaults } from './webhook/handler-target.ts';
import { createJobPlan, type JobPlan } from './webhook/job-plan.ts';
import { createSigner } from './webhook/schemes/schemes.ts';
import { readWebhookSettings, type WebhookSettings } from './webhook/settings.ts';
import { createSource } from './webhook/sources/source.ts';
import { webhook } from './webhook/webhook.ts';

/** What works behind the webhook door, from the moment all doors listen. */
export interface WebhookWork {
  start(): void;
  /** `deadline` cuts the attempts under way and gives their jobs back. */
  stop(deadline: AbortSignal): Promise<void>;
}

/** Wires the webhook door. Throws ConfigError. */
export function openWebhookDoor({
  config,
  secrets,
  loggers,
  metrics,
  events,
  database,
  listener,
  onStop,
}: Parts): WebhookWork {
  const { settings } = config;
  const log = loggers.child('inbox');
  const { inbox } = database();
  const { sources, forwards } = webhookSettings(config);
  secrets.add([...sources, ...forwards].flatMap((each) => each.secrets));
  const handlers = handlersOf(config);
  addBacklogMetrics(metrics, inbox);

  const defaults = targetDefaults(settings);
  const dispatcher = new Dispatcher({
    inbox,
    targets: [
      ...[...handlers].map(([event, spec]) =>
        handlerTarget(event, spec, defaults, ({ delivery: { id }, attempt }) =>
          log.child({ delivery: id, event, attempt }),
        ),
      ),
      ...forwards.map((forward) => {
        const { secrets, allowPrivate } = forward;
        const scheme = { scheme: 'standard', params: { headerPrefix: 'webhook', tolerance: 0 } } as const;
        const sign = secrets.length === 0 ? undefined : createSigner(scheme, secrets);
        return forwardTarget(forward, defaults, sign, onStop(createPoster({ allowPrivate })));
      }),
    ],
    lease: settings['webhook.lease'],
    events,
  });
  const retention = new Retention({
    inbox,
    maxAge: settings['webhook.retention'] * 86_400_000,
    maxBytes: settings['webhook.retentionBytes'],
    onPruned: (removed) => log.info({ removed }, 'old deliveries removed'),
    onError: events.storeFailed,
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
  listener('webhook', webhookErrors).register(webhook, {
    inbox,
    secrets: () => secret.current ?? none,
    sources: sources.map(createSource),
    plan: createJobPlan(handlers, forwards),
    maxBodyBytes: settings['webhook.maxBodyBytes'],
    maxBytesInFlight: settings['webhook.maxBytesInFlight'],
    onAppended(delivery, appended) {
      events.appended(delivery, appended);
      for (const { target } of delivery.jobs) dispatcher.wake(target);
    },
    onRefused: events.refused,
  });
  return {
    start() {
      dispatcher.start();
      retention.start();
    },
    async stop(deadline) {
      await Promise.all([dispatcher.stop(deadline), retention.stop()]);
    },
  };
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
