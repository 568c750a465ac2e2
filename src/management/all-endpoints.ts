import { valueShower } from './access/masking.ts';
import type { ApiDocuments } from './api/api-documents.ts';
import { auditEventsEndpoint } from './audit/audit-events.ts';
import { configPropsEndpoint } from './endpoints/configprops.ts';
import { cpuProfileEndpoint } from './endpoints/cpuprofile.ts';
import { customEndpoint } from './endpoints/custom.ts';
import { deliveriesEndpoint } from './endpoints/deliveries.ts';
import { docsEndpoint } from './endpoints/docs.ts';
import { envEndpoint } from './endpoints/env.ts';
import { eventLoopEndpoint } from './endpoints/eventloop.ts';
import { healthEndpoint } from './endpoints/health.ts';
import { heapDumpEndpoint } from './endpoints/heapdump.ts';
import { httpExchangesEndpoint } from './endpoints/httpexchanges.ts';
import { infoEndpoint } from './endpoints/info.ts';
import { loggersEndpoint } from './endpoints/loggers.ts';
import { mappingsEndpoint } from './endpoints/mappings.ts';
import { metricsEndpoint } from './endpoints/metrics.ts';
import { openApiEndpoint } from './endpoints/openapi.ts';
import { prometheusEndpoint } from './endpoints/prometheus.ts';
import { historyEndpoint } from './endpoints/recent/history.ts';
import { logTailEndpoint } from './endpoints/recent/logtail.ts';
import { requestsEndpoint } from './endpoints/recent/requests.ts';
import { shutdownEndpoint } from './endpoints/shutdown.ts';
import { threadDumpEndpoint } from './endpoints/threaddump.ts';
import type { HealthView } from './health/view.ts';
import type { ManagementEndpoint } from './management-endpoint.ts';
import type { DoorOptions } from './options.ts';

/** Every endpoint whose data the options give, exposed or not. */
export function allEndpoints(
  options: DoorOptions,
  health: HealthView,
  documents: ApiDocuments,
): readonly ManagementEndpoint[] {
  const { build, configuration, loggers, exchanges, auditEvents, deliveries, mappings, shutDown, secrets } =
    options;
  const { history, logTail, requests } = options;
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
    auditEvents && auditEventsEndpoint(auditEvents, options),
    deliveries && deliveriesEndpoint(deliveries, options),
    history && historyEndpoint(history),
    logTail && logTailEndpoint(logTail),
    requests && requestsEndpoint(requests),
    eventLoopEndpoint(),
    threadDumpEndpoint(),
    heapDumpEndpoint(),
    cpuProfileEndpoint(),
    openApiEndpoint(documents),
    docsEndpoint(documents),
    shutDown && shutdownEndpoint(shutDown),
    ...options.endpoints.map((endpoint) => customEndpoint(endpoint)),
  ].filter((endpoint) => endpoint !== undefined);
}
