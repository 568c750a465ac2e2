import { compare, MANY_ROUNDS, type Measured } from '../measure/compare.ts';
import { cpuFinding, rateTable, ratioTable } from '../measure/comparison.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { disturbance, ratePlot } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { graphqlPost } from '../servers/graphql.ts';
import { ALL_DOORS, startPortico } from '../servers/portico.ts';
import { startPorticoUsers, userRequests } from '../servers/rest.ts';
import type { Workbench } from '../workbench.ts';

const USERS = 100;
const QUERY = 'query ($id: ID!) { user(id: $id) { id name email } }';
const graphql = [graphqlPost(QUERY, { id: '1' }), graphqlPost(QUERY, { id: '2' })];
const rest = userRequests(USERS);

const PLAIN = { doors: ALL_DOORS };
const RECORDING = { doors: ALL_DOORS, env: { MANAGEMENT_INCLUDE: '*' } };

export const recording: Row = {
  name: 'recording',
  title: 'All management endpoints exposed',
  about:
    `GraphQL's \`user(id)\` and REST's \`/users/<id>\` of a service with \`MANAGEMENT_INCLUDE=*\`, where \`httpexchanges\` records each exchange, and of the same service ` +
    `without, interleaved: 64 connections, ${MANY_ROUNDS.rounds} rounds of ${MANY_ROUNDS.seconds} s. ` +
    'All doors are open in both.',
  async run(bench) {
    const measured = await measureAll(bench);
    const find = (label: string) => measured.find((one) => one.label === label) ?? missing(label);
    const pairs = ['GraphQL', 'REST'].map((door) => [find(`${door}, all exposed`), find(door)] as const);
    return {
      tables: [rateTable(measured), ...pairs.map(([all, plain]) => ratioTable(all, [plain]))],
      findings: pairs.map(([all, plain]) => cpuFinding(all, plain, { atMost: 1.05 })),
      plots: [ratePlot(measured, this.name, this.title)],
      notes: disturbance(measured),
    };
  },
};

async function measureAll(bench: Workbench): Promise<readonly Measured[]> {
  const byDoor = [
    {
      door: 'GraphQL',
      requests: graphql,
      plain: await startPortico(bench, 'graphql', PLAIN),
      all: await startPortico(bench, 'graphql', RECORDING),
    },
    {
      door: 'REST',
      requests: rest,
      plain: await startPorticoUsers(bench, USERS, PLAIN),
      all: await startPorticoUsers(bench, USERS, RECORDING),
    },
  ];
  for (const { plain, all, requests } of byDoor) await checkSameAnswers({ plain, all }, requests);
  const contenders = byDoor.flatMap(({ door, requests, plain, all }) => [
    { label: door, server: plain, requests },
    { label: `${door}, all exposed`, server: all, requests },
  ]);
  return compare(bench, contenders, { connections: 64, ...(bench.pace.quick ? {} : MANY_ROUNDS) });
}

function missing(label: string): never {
  throw new Error(`${label} was not measured`);
}
