import { KnownSecrets } from '../config/known-secrets.ts';
import { configPropsEndpoint } from './configprops.ts';
import { cpuProfileEndpoint } from './cpuprofile.ts';
import { customEndpoint } from './custom-endpoint.ts';
import { deliveriesEndpoint } from './deliveries.ts';
import type { Endpoint } from './endpoint.ts';
import { envEndpoint } from './env.ts';
import { eventLoopEndpoint } from './eventloop.ts';
import { healthEndpoint } from './health.ts';
import type { HealthView } from './health-view.ts';
import { heapDumpEndpoint } from './heapdump.ts';
import { httpExchangesEndpoint } from './httpexchanges.ts';
import { infoEndpoint } from './info.ts';
import { loggersEndpoint } from './loggers.ts';
import { mappingsEndpoint } from './mappings.ts';
import { valueShower } from './masking.ts';
import { metricsEndpoint } from './metrics.ts';
import type { DoorOptions } from './options.ts';
import { prometheusEndpoint } from './prometheus.ts';
import { shutdownEndpoint } from './shutdown.ts';
import { threadDumpEndpoint } from './threaddump.ts';

/** Every endpoint for which the options have what it shows, exposed or not. */
export function allEndpoints(options: DoorOptions, health: HealthView): readonly Endpoint[] {
  const {
    build,
    configuration,
    loggers,
    exchanges,
    deliveries,
    mappings,
    shutDown,
    secrets = new KnownSecrets(options.users.map(({ password }) => password)),
  } = options;
  const { mask, whole } = health;
  const show = valueShower(options.showValues, secrets);
  return [
    healthEndpoint(health),
    infoEndpoint(options),
    metricsEndpoint(options.metrics),
    prometheusEndpoint(options.metrics),
    envEndpoint(options.environment, show),
    configuration && configPropsEndpoint(build.artifact, configuration, show),
    mappings && mappingsEndpoint(build.artifact, mappings),
    loggers && loggersEndpoint(loggers),
    exchanges && httpExchangesEndpoint(exchanges, secrets),
    deliveries && deliveriesEndpoint(deliveries, { showDetails: whole.showDetails, mask }),
    eventLoopEndpoint(),
    threadDumpEndpoint(),
    heapDumpEndpoint(),
    cpuProfileEndpoint(),
    shutDown && shutdownEndpoint(shutDown),
    ...options.endpoints.map((endpoint) => customEndpoint(endpoint)),
  ].filter((endpoint) => endpoint !== undefined);
}
