import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compare, MANY_ROUNDS, type Measured } from '../measure/compare.ts';
import { cpuFinding, rateTable, ratioTable } from '../measure/comparison.ts';
import { disturbance, ratePlot } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { startPorticoUsers, userRequests } from '../servers/rest.ts';
import type { Workbench } from '../workbench.ts';

const USERS = 100;
const TOKEN = 'benchmark-token-0123456789';
const ORIGIN = 'https://app.example.com';

/** The enabled feature, and the headers that clients send for it. */
const CASES: Readonly<
  Record<
    string,
    { readonly env: Readonly<Record<string, string>>; readonly headers: Readonly<Record<string, string>> }
  >
> = {
  'a token': { env: { API_REQUIRED: 'all' }, headers: { authorization: `Bearer ${TOKEN}` } },
  'a rate': { env: { API_RATE: '9000000/s' }, headers: {} },
  CORS: { env: { REST_CORS_ORIGINS: ORIGIN }, headers: { origin: ORIGIN } },
};

const PLAIN = 'nothing';

export const access: Row = {
  name: 'access',
  title: 'Tokens, rates and pages of other origins',
  about:
    "REST's `/users/<id>` of services that ask for a token, count the requests of each client, or let pages of another origin in, and of one with nothing of it, " +
    `interleaved: 64 connections, ${MANY_ROUNDS.rounds} rounds of ${MANY_ROUNDS.seconds} s.`,
  async run(bench) {
    const measured = await measureAll(bench);
    const plain = find(measured, PLAIN);
    const others = Object.keys(CASES).map((name) => find(measured, name));
    return {
      tables: [rateTable(measured), ...others.map((one) => ratioTable(one, [plain]))],
      findings: others.map((one) => cpuFinding(one, plain, { atMost: 1.25 })),
      plots: [ratePlot(measured, this.name, this.title)],
      notes: disturbance(measured),
    };
  },
};

async function measureAll(bench: Workbench): Promise<readonly Measured[]> {
  const folder = bench.folder();
  const config = join(folder, 'access.json');
  const tokens = { bench: { secret: TOKEN, scopes: ['users:read'] } };
  writeFileSync(config, JSON.stringify({ api: { tokens } }));
  const contenders = [];
  for (const [label, { env, headers }] of Object.entries({
    [PLAIN]: { env: {}, headers: {} },
    ...CASES,
  })) {
    const server = await startPorticoUsers(bench, USERS, { env: { CONFIG: config, ...env } });
    contenders.push({ label, server, requests: userRequests(USERS, headers) });
  }
  return compare(bench, contenders, { connections: 64, ...(bench.pace.quick ? {} : MANY_ROUNDS) });
}

function find(measured: readonly Measured[], label: string): Measured {
  const found = measured.find((one) => one.label === label);
  if (found === undefined) throw new Error(`${label} was not measured`);
  return found;
}
