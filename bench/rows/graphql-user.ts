import { compare, contendersOf } from '../measure/compare.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { BARE } from '../servers/bare.ts';
import { graphqlPost, startGraphqlServers, USERS } from '../servers/graphql.ts';

const QUERY = 'query ($id: ID!) { user(id: $id) { id name email } }';
const requests = Array.from({ length: USERS }, (_, i) => graphqlPost(QUERY, { id: String(i + 1) }));

export const graphqlUser: Row = {
  name: 'graphql-user',
  title: 'GraphQL: one user by id',
  about: `POST \`${QUERY}\` with the ids of ${USERS} users in turn as variables, users in memory, 64 connections.`,
  async run(bench) {
    const servers = await startGraphqlServers(bench, requests);
    const contenders = contendersOf(servers, requests);
    const measured = await compare(bench, contenders, { connections: 64 });
    const rate = { 'Mercurius + JIT': 1.6, 'Apollo (Fastify)': 4, 'Apollo (standalone)': 4, [BARE]: 0.6 };
    const targets = { rate, p99: 1 };
    return summarise({ measured, targets, name: this.name, title: this.title });
  },
};
