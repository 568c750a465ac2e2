import type { FastifyInstance } from 'fastify';
import { ApiGate } from '../../http/access/api-gate.ts';
import { createSecretResolver } from '../sources/secret-resolver.ts';
import { type ApiOptions, openGate } from './open-gate.ts';

/** The gate of a plugin: one that is open already and that its opener disposes of, or one of its own. Rejects with ConfigError. */
export async function pluginGate(
  app: FastifyInstance,
  api: ApiGate | ApiOptions | undefined,
): Promise<ApiGate | undefined> {
  if (api === undefined || api instanceof ApiGate) return api;
  const resolve = createSecretResolver(process.env, process.cwd());
  const gate = await openGate(api, { resolve, name: 'options', log: app.log });
  if (gate === undefined) return undefined;
  app.addHook('onClose', async () => gate[Symbol.asyncDispose]());
  return gate;
}
