import { join } from 'node:path';
import { compare, contendersOf } from '../measure/compare.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { graphqlPost } from '../servers/graphql.ts';
import { startPeer } from '../servers/peer.ts';
import { startPortico } from '../servers/portico.ts';

const QUERY = '{ articles { id title tags author { id name } comments } }';
const CONFIG = join(import.meta.dirname, '../servers/articles/portico.config.ts');
const requests = [graphqlPost(QUERY)];

export const graphqlPromises: Row = {
  name: 'graphql-promises',
  title: "GraphQL: a schema of one's own, with promises",
  about:
    `POST \`${QUERY}\` on a schema of one's own, 20 articles, 64 connections. Every resolver is an \`async\` function, ` +
    'as of a program that asks a database; each reply awaits 41 promises.',
  async run(bench) {
    const env = { SCHEMA: 'articles' };
    const servers = {
      Portico: await startPortico(bench, 'graphql', { env: { CONFIG } }),
      'Mercurius + JIT': await startPeer(bench, 'mercurius', { env }),
      'Yoga + JIT': await startPeer(bench, 'yoga', { env: { ...env, JIT: 'yes' } }),
      Yoga: await startPeer(bench, 'yoga', { env }),
    };
    await checkSameAnswers(servers, requests);
    const measured = await compare(bench, contendersOf(servers, requests), { connections: 64 });
    const targets = { rate: { 'Mercurius + JIT': 1, 'Yoga + JIT': 1, Yoga: 1 }, p99: 1 };
    return summarise({ measured, targets, name: this.name, title: this.title });
  },
};
