import { compare, contendersOf } from '../measure/compare.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { BARE } from '../servers/bare.ts';
import { graphqlPost, startGraphqlServers, USERS } from '../servers/graphql.ts';

const QUERY = '{ users { id name email } }';
const requests = [graphqlPost(QUERY)];

export const graphqlUsers: Row = {
  name: 'graphql-users',
  title: `GraphQL: ${USERS} users`,
  about: `POST \`${QUERY}\`, ${USERS} users in memory, 64 connections.`,
  async run(bench) {
    const servers = await startGraphqlServers(bench, requests);
    const contenders = contendersOf(servers, requests);
    const measured = await compare(bench, contenders, { connections: 64 });
    const [, ...others] = Object.keys(servers);
    const peers = others.filter((label) => label !== BARE);
    const targets = { rate: Object.fromEntries(peers.map((label) => [label, 1])), p99: 1 };
    return summarise({ measured, targets, name: this.name, title: this.title });
  },
};
