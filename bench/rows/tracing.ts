import { compare, MANY_ROUNDS, type Measured } from '../measure/compare.ts';
import { rateFinding, rateTable, ratioTable } from '../measure/comparison.ts';
import { disturbance, ratePlot } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { startPorticoUsers, userRequests } from '../servers/rest.ts';
import { startTracedUsers } from '../servers/traced-users.ts';
import type { Workbench } from '../workbench.ts';

const USERS = 100;
const requests = userRequests(USERS);

const PLAIN = 'no SDK';
/** The ways to record one request in a hundred. */
const CASES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'TRACING_ONE_IN=100': { TRACING_ONE_IN: '100' },
  'a sampler of 1 %': { OTEL_TRACES_SAMPLER_ARG: '0.01' },
};

export const tracing: Row = {
  name: 'tracing',
  title: 'One request in a hundred is traced',
  about:
    "REST's `/users/<id>` of a service with an SDK of OpenTelemetry that exports spans and meters, and of one without, " +
    `interleaved: 64 connections, ${MANY_ROUNDS.rounds} rounds of ${MANY_ROUNDS.seconds} s.`,
  async run(bench) {
    const [plain, ...others] = await measureAll(bench);
    const [chosen] = others;
    if (plain === undefined || chosen === undefined) throw new Error('nothing was measured');
    return {
      tables: [rateTable([plain, ...others]), ...others.map((one) => ratioTable(one, [plain]))],
      findings: [rateFinding(chosen, plain, { atLeast: 0.85 })],
      plots: [ratePlot([plain, ...others], this.name, this.title)],
      notes: disturbance([plain, ...others]),
    };
  },
};

async function measureAll(bench: Workbench): Promise<readonly Measured[]> {
  const contenders = [{ label: PLAIN, server: await startPorticoUsers(bench, USERS), requests }];
  for (const [label, env] of Object.entries(CASES)) {
    contenders.push({ label, server: await startTracedUsers(bench, USERS, env), requests });
  }
  return compare(bench, contenders, { connections: 64, ...(bench.pace.quick ? {} : MANY_ROUNDS) });
}
