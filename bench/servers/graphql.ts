import assert from 'node:assert/strict';
import type { HttpRequest } from '../load/load.ts';
import { ask, checkSameAnswers } from '../measure/same-answers.ts';
import type { Workbench } from '../workbench.ts';
import { BARE, startBare } from './bare.ts';
import { startPeer } from './peer.ts';
import { startPortico } from './portico.ts';
import type { Server } from './server.ts';

export const USERS = 100;

export function graphqlPost(query: string, variables?: Readonly<Record<string, unknown>>): HttpRequest {
  return {
    method: 'POST',
    path: '/graphql',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ query, variables }),
  };
}

/**
 * Starts Portico and its GraphQL peers with the same users in memory, and checks that their answers are
 * equal.
 */
export async function startGraphqlServers(
  bench: Workbench,
  requests: readonly HttpRequest[],
): Promise<Readonly<Record<string, Server>>> {
  const env = { USERS: String(USERS) };
  const servers: Record<string, Server> = {
    Portico: await startPortico(bench, 'graphql'),
    'Mercurius + JIT': await startPeer(bench, 'mercurius', { env }),
    'Yoga + JIT': await startPeer(bench, 'yoga', { env: { ...env, JIT: 'yes' } }),
    'Apollo (Fastify)': await startPeer(bench, 'apollo-fastify', { env }),
  };
  if (!bench.pace.quick) {
    servers.Yoga = await startPeer(bench, 'yoga', { env });
    servers['Apollo (standalone)'] = await startPeer(bench, 'apollo-standalone', { env });
  }
  const { Portico: portico } = servers;
  if (portico !== undefined) await createUsers(portico);

  const answer = await checkSameAnswers(servers, requests);
  return { ...servers, [BARE]: await startBare(bench, answer) };
}

async function createUsers(portico: Server): Promise<void> {
  const mutation =
    'mutation ($name: String!, $email: String!) { createUser(name: $name, email: $email) { id } }';
  for (let id = 3; id <= USERS; id++) {
    const variables = { name: `User ${id}`, email: `user${id}@example.com` };
    const { text } = await ask(portico, graphqlPost(mutation, variables));
    assert.equal(text, `{"data":{"createUser":{"id":"${id}"}}}`);
  }
}
