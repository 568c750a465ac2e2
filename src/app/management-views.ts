import { effectiveOptions } from '../config/effective-options.ts';
import type { Door } from '../config/options/door.ts';
import { ExchangeLog } from '../http/exchange-log.ts';
import { type ExposureRules, isExposed } from '../management/access/exposure.ts';
import type { ApiSources } from '../management/api/api-sources.ts';
import type { DeliveriesView } from '../management/endpoints/deliveries.ts';
import { openHistory } from './console/console-parts.ts';
import { replayPlanOf } from './doors/webhook-door.ts';
import { accessOf } from './exposure-rules.ts';
import type { Parts } from './parts.ts';

/** What the management door shows of the service, and the rules of exposure. */
export function managementViews(parts: Parts, lists: Pick<ExposureRules, 'include' | 'exclude'>) {
  const { config, secrets, loggers, logTail, requestTail, doors } = parts;
  const { settings } = config;
  const rules = { ...lists, access: accessOf(settings) };
  const hasConsole = isExposed('console', rules);
  return {
    ...rules,
    secrets,
    configuration: effectiveOptions(settings, config.sources),
    loggers,
    exchanges: isExposed('httpexchanges', rules) ? recordExchanges(parts) : undefined,
    auditEvents: parts.audit && parts.openedDatabase()?.audit,
    audit: parts.audit,
    deliveries: hasConsole || isExposed('deliveries', rules) ? viewDeliveries(parts) : undefined,
    history: hasConsole || isExposed('history', rules) ? openHistory(parts) : undefined,
    logTail,
    requests: requestTail,
    mappings: new Map(Array.from(doors, ([door, { routes }]) => [door, routes])),
    apis: apisOf(parts),
    shutDown: () => parts.requestStop(),
  };
}

function apisOf({ apis, doors }: Parts): ApiSources {
  const portOf = (door: Door) => {
    const address = doors.get(door)?.app.server.address();
    return typeof address === 'object' && address !== null ? address.port : undefined;
  };
  return {
    doors: new Map(Array.from(apis.doors, ([door, api]) => [door, { api, port: () => portOf(door) }])),
    sdl: () => apis.sdl?.(),
  };
}

/** Only when exposed: it costs something at every request. */
function recordExchanges({ doors }: Parts): ExchangeLog {
  const log = new ExchangeLog();
  for (const door of doors.values()) door.recordExchanges(log);
  return log;
}

/** Undefined when no door has opened the database. */
function viewDeliveries({ config, openedDatabase }: Parts): DeliveriesView | undefined {
  const database = openedDatabase();
  return database && { log: database.deliveries, plan: replayPlanOf(config) };
}
