export { createService, type Service, type ServiceOptions } from './app/service.ts';
export { defineConfig, type PorticoConfig } from './config/define-config.ts';
export { type Config, type ConfigSource, loadConfig } from './config/load.ts';
export type { Delivery } from './inbox/delivery.ts';
export type { DeliveryHandler, HandlerContext } from './inbox/handler.ts';
