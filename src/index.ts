import type { Service, ServiceOptions } from './app/service.ts';
import type { Config, ConfigSource } from './config/load.ts';

export type { Service, ServiceOptions } from './app/service.ts';
export { defineConfig, type PorticoConfig } from './config/define-config.ts';
export type { Config, ConfigSource } from './config/load.ts';
export type { DoorSetup } from './config/schema/code.ts';
export type {
  ContextDetails,
  FieldResolver,
  GraphqlContext,
  Resolver,
  Resolvers,
  TypeResolvers,
  Users,
} from './config/schema/graphql.ts';
export type {
  Delivery,
  DeliveryHandler,
  DeliveryKey,
  DeliveryPredicate,
  DeliveryPriority,
  DeliveryTime,
  DeliveryTransform,
  ForwardedDelivery,
  HandlerContext,
  ReceivedDelivery,
  TransformedDelivery,
} from './inbox/delivery.ts';

// Loaded on call: a configuration module imports this file only for `defineConfig`.

/** See `createService` of app/service.ts. Fails with DatabaseOpenError and ConfigError. */
export async function createService(config: Config, options?: ServiceOptions): Promise<Service> {
  const service = await import('./app/service.ts');
  return service.createService(config, options);
}

/** See `loadConfig` of config/load.ts. Rejects with ConfigError, which lists all problems. */
export async function loadConfig(source: ConfigSource): Promise<Config> {
  const load = await import('./config/load.ts');
  return load.loadConfig(source);
}
