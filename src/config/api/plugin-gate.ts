import type { FastifyInstance } from 'fastify';
import { ApiGate } from '../../http/access/api-gate.ts';
import { createSecretResolver } from '../sources/secret-resolver.ts';
import { type ApiOptions, openGate } from './open-gate.ts';

/** The gate of a plugin: one that is open already and that its opener disposes of, or one of its own. Throws ConfigError. */
export function pluginGate(app: FastifyInstance, api: ApiGate | ApiOptions | undefined): ApiGate | undefined {
  if (api === undefined || api instanceof ApiGate) return api;
  const resolve = createSecretResolver(process.env, process.cwd());
  const gate = openGate(api, { resolve, name: 'options', log: app.log });
  if (gate === undefined) return undefined;
  app.addHook('onClose', (_app, done) => {
    gate[Symbol.dispose]();
    done();
  });
  return gate;
}
