import { compare } from '../measure/compare.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { graphqlPost, startGraphqlServers, USERS } from '../servers/graphql.ts';

const QUERY = '{ users { id name email } }';
const requests = [graphqlPost(QUERY)];

export const graphqlUsers: Row = {
  name: 'graphql-users',
  title: `GraphQL: ${USERS} users`,
  about: `POST \`${QUERY}\`, ${USERS} users in memory, 64 connections.`,
  async run(bench) {
    const servers = await startGraphqlServers(bench, requests);
    const contenders = Object.entries(servers).map(([label, server]) => ({ label, server, requests }));
    const measured = await compare(bench, contenders, { connections: 64 });
    const peers = Object.keys(servers).filter((label) => !/Portico|bare/.test(label));
    const targets = Object.fromEntries(peers.map((label) => [label, 1]));
    return summarise({ measured, targets, name: this.name, title: this.title });
  },
};
