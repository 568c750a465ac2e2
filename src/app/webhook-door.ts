import { BodyBudget, HttpProblem, unroutedHandler } from '@portico/transport';
import { ConfigError } from '../config/load.ts';
import { settingsOf } from '../config/options/options.ts';
import { liveSecrets } from '../config/secrets.ts';
import { addFrontPage } from '../http/pages.ts';
import type { HandlerSpec } from '../inbox/config.ts';
import { withContractHandlers } from '../inbox/event-names.ts';
import { isolationProblems, withIsolation } from '../inbox/isolate/isolated.ts';
import type { ReplayPlan } from '../inbox/operations.ts';
import { createReplayPlan, createWork, type Work } from '../inbox/work.ts';
import { linkTimeOf, PortalLinks } from '../portal/links.ts';
import { portal, portalErrors } from '../portal/portal.ts';
import { SendingApi } from '../sending/api.ts';
import { Sending } from '../sending/sending.ts';
import type { Database } from '../sql/database.ts';
import { RECEIVER_PATH, receiver, webhookErrors } from '../webhook/receiver.ts';
import { readWebhookSettings } from '../webhook/webhook.ts';
import type { AppContext, OpenSending } from './context.ts';
import type { Config } from './load-config.ts';

type WebhookSettings = ReturnType<typeof readWebhookSettings>;

/** Wires the webhook door; its work starts once all doors listen. Throws ConfigError. */
export function openWebhookDoor({
  config,
  secrets,
  loggers,
  metrics,
  events,
  database,
  relationFeed,
  relations,
  listener,
  onStop,
  apis,
  tracing,
  sending,
}: AppContext): Work & { secrets(): readonly string[] } {
  const log = loggers.child('inbox');
  const { inbox, userFeed } = database();
  const settings = webhookSettings(config);
  const { sources, forwards, deadAlert } = settings;
  const addresses = deadAlert.address === undefined ? forwards : [...forwards, deadAlert.address];
  secrets.add([...sources, ...addresses].flatMap((each) => each.secrets));

  const secret = onStop(
    liveSecrets(config, (problem) => {
      // Redacts the new secret before anything is logged.
      if (problem === undefined) secrets.add(secret.current);
      if (problem === undefined) log.info('webhook secrets reloaded');
      else log.error({ problem }, 'changed webhook secrets unusable, old ones kept');
    }),
  );
  const numbers = settingsOf(config.settings, 'webhook');
  const work = createWork({
    ...settings,
    inbox,
    userFeed,
    changes: relationFeed && { feed: relationFeed, relations: config.relations },
    handlers: handlersOf(config, settings),
    isolation: config.file === undefined ? undefined : { file: config.file, memory: numbers.isolateMemory },
    numbers,
    log,
    events,
    metrics,
    traceTarget: tracing?.traceTarget,
    publish: sending && ((event) => sending.sending.publishUnchecked(event)),
    publishChanges: sending?.sending.publishChanges({
      relations: new Map(config.relations.map((relation) => [relation.name, relation])),
      stores: relations,
    }),
    further: sending && ((tools) => sending.sending.targets(tools)),
  });
  sending?.sending.attach(work);
  const description =
    'Share of the processor time that handling may use; below 1 while acknowledging needs it';
  metrics.gauge('webhook.handling.share', { description }, () => work.share());
  const { maxBodyBytes, maxBytesInFlight } = numbers;
  const budget = new BodyBudget({ max: maxBytesInFlight, usual: maxBodyBytes });
  const app = listener('webhook', webhookErrors, budget);
  app.setNotFoundHandler(unroutedHandler(app, webhookErrors));
  app.register(receiver, {
    prefix: RECEIVER_PATH,
    inbox,
    work,
    secrets: () => secret.current,
    sources,
    headers: config.settings['webhook.headers'].map((name) => name.toLowerCase()),
    maxBodyBytes,
    maxBytesInFlight,
    refused: events.refused,
    traceOf: tracing?.traceOf,
  });
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
    return [webhookApi({ secured: secret.current.length > 0, sources })];
  });
  return { ...work, secrets: () => secret.current };
}

interface SendingParts extends Pick<AppContext, 'metrics' | 'loggers'> {
  /** The address of the portal on this machine; undefined before it listens. */
  portalUrl(): string | undefined;
}

/** Sends events to the endpoints of customers; undefined if the configuration does not. */
export function openSending(
  { code }: Config,
  database: Database | undefined,
  { metrics, loggers, portalUrl }: SendingParts,
): OpenSending | undefined {
  const { sending: settings } = code;
  if (settings === undefined || database === undefined) return undefined;
  const log = loggers.child('sending');
  const { sending: store, sendingLog, inbox, users } = database;
  const sending = new Sending({
    store,
    log: sendingLog,
    inbox,
    settings,
    metrics,
    onError: (error) => log.error({ err: error }, 'endpoint not updated'),
    onDisabled: ({ tenant, id }, reason) => log.warn({ tenant, endpoint: id, reason }, 'endpoint disabled'),
  });
  const links = new PortalLinks(() => users.lists.cursorKey());
  const linkOf = async (tenant: string, body: unknown) => {
    const time = linkTimeOf(body);
    if (typeof time === 'string') throw new HttpProblem(400, 'INVALID_ENDPOINT', time);
    const expiresAt = Date.now() + time;
    const token = await links.create({ tenant, expiresAt });
    const base = (settings.portal?.url ?? portalUrl() ?? '').replace(/\/$/, '');
    // Browsers send no fragment, so no log of a server has the token.
    return { url: `${base}/#${token}`, token, expiresAt: new Date(expiresAt).toISOString() };
  };
  const link = settings.portal && linkOf;
  return { sending, links, linkOf: link, api: new SendingApi(sending, link) };
}

/** Opens the page for customers on its port. */
export function openPortal({ listener, config }: AppContext, { sending, api, links }: OpenSending): void {
  const { title = 'Webhooks', origins = [] } = config.code.sending?.portal ?? {};
  const transforms = [...sending.settings.transforms.keys()];
  listener('portal', portalErrors).register(portal, { api, links, title, transforms, origins });
}

/** The jobs that a stored delivery would get now. */
export function replayPlanOf(config: Config): ReplayPlan {
  const settings = webhookSettings(config);
  return createReplayPlan({ ...settings, handlers: handlersOf(config, settings) });
}

/** Throws ConfigError. */
export function webhookSettings({ code, file, resolveSecret, relations }: Config): WebhookSettings {
  const problems: string[] = [];
  const read = readWebhookSettings(code, file ?? 'configuration', resolveSecret, problems, { relations });
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
