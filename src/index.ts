import type { Config, ConfigSource } from './app/load-config.ts';
import type { Service, ServiceOptions } from './app/service.ts';

export type { Config, ConfigSource, DoorSetup } from './app/load-config.ts';
export type { Service, ServiceOptions } from './app/service.ts';
export {
  add,
  bigint,
  boolean,
  bytes,
  type ColumnData,
  caller,
  coalesce,
  concat,
  date,
  decimal,
  type ExpressionData,
  integer,
  type Json,
  json,
  length,
  lower,
  multiply,
  type NewRow,
  number,
  oneOf,
  type PartData,
  type Patch,
  type RelationData,
  type RelationsData,
  type Row,
  type RuleData,
  reference,
  scope,
  serial,
  subtract,
  text,
  timestamp,
  upper,
  uuid,
  where,
} from './config/schema/declaration.ts';
export { defineConfig, type PorticoConfig, type RelationsConfig } from './define-config.ts';
export type {
  ContextDetails,
  FieldResolver,
  GraphqlContext,
  Resolver,
  Resolvers,
  TypeResolvers,
  Users,
} from './graphql/config.ts';
export type { RelationStore, RelationStores, RowQuery, RowsPage } from './graphql/relation-stores.ts';
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
export {
  type BeforeHooks,
  type CreateEvent,
  type DeleteEvent,
  refuse,
  type UpdateEvent,
} from './relations/hooks/hooks.ts';

// Loaded on call: a configuration module imports this file only for `defineConfig`.

/** See `createService` of app/service.ts. Fails with DatabaseOpenError and ConfigError. */
export async function createService(config: Config, options?: ServiceOptions): Promise<Service> {
  const service = await import('./app/service.ts');
  return service.createService(config, options);
}

/** See `loadConfig` of app/load-config.ts. Rejects with ConfigError, which lists all problems. */
export async function loadConfig(source: ConfigSource): Promise<Config> {
  const load = await import('./app/load-config.ts');
  return load.loadConfig(source);
}
