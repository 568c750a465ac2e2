// The exports of `portico/management`.

export { listRoutes } from '../http/routes.ts';
export {
  type CheckAnswer,
  diskSpaceCheck,
  eventLoopCheck,
  HealthRegistry,
  Readiness,
} from '../telemetry/health.ts';
export { History, type Series } from '../telemetry/history.ts';
export { Loggers, LogTail } from '../telemetry/loggers.ts';
export { Metrics } from '../telemetry/metrics.ts';
export { ExchangeLog } from '../telemetry/request-stats.ts';
export { EventLoopWindows } from '../telemetry/runtime.ts';
export type { CustomEndpoint, EndpointRequest, EndpointWrite } from './config.ts';
export type { ConsoleView } from './console/console-view.ts';
export { management } from './management.ts';
export type { ManagementOptions } from './options.ts';
export type { SpringBootAdminOptions } from './spring-boot-admin.ts';
