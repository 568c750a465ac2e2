import { createRequire } from 'node:module';
import type { FastifyServerOptions } from 'fastify';

type Compilers = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>;
type Factory = (...args: readonly unknown[]) => never;

/**
 * Fastify's own compilers of route schemas, loaded when a route has one. Our doors have none, and to load them
 * costs a tenth of the start and several megabytes.
 */
export function lazyCompilers(): Required<Compilers> {
  const lazy = (name: string): Factory => {
    let factory: Factory | undefined;
    return (...args) => {
      // They are dependencies of Fastify, so they are resolved from its folder.
      factory ??= (createRequire(import.meta.resolve('fastify'))(name) as () => Factory)();
      return factory(...args);
    };
  };
  return {
    buildValidator: lazy('@fastify/ajv-compiler'),
    buildSerializer: lazy('@fastify/fast-json-stringify-compiler'),
  };
}
