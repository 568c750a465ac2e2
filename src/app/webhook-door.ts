import { BodyBudget, unroutedHandler } from '@portico/transport';
import { liveSecrets } from '../config/live-secret.ts';
import { type Config, ConfigError } from '../config/load.ts';
import type { HandlerSpec } from '../config/schema/code.ts';
import { addFrontPage } from '../http/pages.ts';
import { planOfReplay, withContractHandlers } from '../inbox/event-names.ts';
import { addBacklogMetrics, addClockMetrics } from '../inbox/health.ts';
import { isolationProblems, withIsolation } from '../inbox/isolate/isolated.ts';
import { createJobPlan } from '../inbox/job-plan.ts';
import type { ReplayPlan } from '../inbox/operations.ts';
import { readNumbers, readWebhookSettings, type WebhookSettings, webhookErrors } from '../webhook/options.ts';
import { createWebhookDoor, type WebhookDoor } from '../webhook/webhook.ts';
import type { AppContext } from './context.ts';

/** Wires the webhook door; its jobs start once all doors listen. Throws ConfigError. */
export function openWebhookDoor({
  config,
  secrets,
  loggers,
  metrics,
  events,
  database,
  listener,
  onStop,
  apis,
  tracing,
}: AppContext): WebhookDoor & { secrets(): readonly string[] } {
  const log = loggers.child('inbox');
  const { inbox, userFeed } = database();
  const settings = webhookSettings(config);
  const { sources, forwards, deadAlert } = settings;
  const addresses = deadAlert.address === undefined ? forwards : [...forwards, deadAlert.address];
  secrets.add([...sources, ...addresses].flatMap((each) => each.secrets));
  addBacklogMetrics(metrics, inbox);
  addClockMetrics(metrics, inbox);

  const secret = onStop(
    liveSecrets(config, (problem) => {
      // Redacts the new secret before anything is logged.
      if (problem === undefined) secrets.add(secret.current);
      if (problem === undefined) log.info('webhook secrets reloaded');
      else log.error({ problem }, 'changed webhook secrets unusable, old ones kept');
    }),
  );
  const door = createWebhookDoor({
    inbox,
    userFeed,
    handlers: handlersOf(config, settings),
    ...settings,
    isolation:
      config.file === undefined
        ? undefined
        : { file: config.file, memory: config.settings['webhook.isolateMemory'] },
    numbers: readNumbers((name) => config.settings[`webhook.${name}`]),
    headers: config.settings['webhook.headers'].map((name) => name.toLowerCase()),
    log,
    events,
    secrets: () => secret.current,
    traceTarget: tracing?.traceTarget,
    traceOf: tracing?.traceOf,
  });
  const description =
    'Share of the processor time that handling may use; below 1 while acknowledging needs it';
  metrics.gauge('webhook.handling.share', { description }, () => door.share());
  const { 'webhook.maxBytesInFlight': max, 'webhook.maxBodyBytes': usual } = config.settings;
  const app = listener('webhook', webhookErrors, new BodyBudget({ max, usual }));
  app.setNotFoundHandler(unroutedHandler(app, webhookErrors));
  door.addRoutes(app);
  addFrontPage(app, {
    title: 'Portico: webhooks',
    about: 'The webhook door. Senders POST their deliveries to these paths.',
    linked: false,
    paths: {
      '/webhook': 'Deliveries with an event and its data as JSON.',
      ...Object.fromEntries(
        sources.map(({ name }) => [`/webhook/${name}`, `Signed deliveries of the source ${name}.`]),
      ),
    },
  });
  apis.doors.set('webhook', async () => {
    const { webhookApi } = await import('../webhook/webhook-api.ts');
    return webhookApi({ secured: secret.current.length > 0, sources });
  });
  return { ...door, secrets: () => secret.current };
}

/** The jobs that a stored delivery would get now. */
export function replayPlanOf(config: Config): ReplayPlan {
  const settings = webhookSettings(config);
  return planOfReplay(createJobPlan(handlersOf(config, settings), settings.forwards), settings.sources);
}

/** Throws ConfigError. */
export function webhookSettings({ code, file, resolveSecret }: Config): WebhookSettings {
  const problems: string[] = [];
  const read = readWebhookSettings(code, file ?? 'configuration', resolveSecret, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return read;
}

/** The contract's handlers, except for events that the configuration module handles. Throws ConfigError. */
function handlersOf(
  { code, file, settings }: Config,
  { sources }: Pick<WebhookSettings, 'sources'>,
): ReadonlyMap<string, HandlerSpec> {
  const defaults = { isolate: settings['webhook.isolate'], concurrency: settings['webhook.concurrency'] };
  const own = withIsolation(code.handlers, defaults);
  const problems = file === undefined ? isolationProblems(own, 'configuration: webhook.handlers') : [];
  if (problems.length > 0) throw new ConfigError(problems);
  return withContractHandlers(own, sources);
}
