import { join } from 'node:path';
import { runProcess } from '../load/run-process.ts';
import { onCores } from '../machine/cores.ts';
import { grouped, range } from '../measure/figures.ts';
import { median, ratio } from '../measure/statistics.ts';
import type { Row } from '../row.ts';
import { startDatabaseServer } from '../servers/database-server.ts';

/** Operations per second of each round, by driver. */
type Rates = Readonly<Record<string, readonly number[]>>;

export const drivers: Row = {
  name: 'drivers',
  title: 'PostgreSQL drivers',
  about:
    'Portico uses pg. This row compares it with postgres (postgres.js), both with 10 connections and named statements, ' +
    'in one process, without HTTP: 64 concurrent point reads, and 4 concurrent inserts of 100 rows over ' +
    '`unnest`. `pg, pipelined` sends the next statement before the previous one is answered, as postgres.js does.',
  async run(bench) {
    const server = await startDatabaseServer(bench);
    bench.say('all rounds of both drivers');
    const job = {
      url: await server.createDatabase(),
      seconds: bench.pace.seconds / 2,
      rounds: bench.pace.rounds,
    };
    const script = join(import.meta.dirname, '../peers/drivers.ts');
    const output = await runProcess([...onCores(bench.cores.server), bench.node, script], {
      input: JSON.stringify(job),
    });
    const { reads, inserts } = JSON.parse(output) as { readonly reads: Rates; readonly inserts: Rates };
    const lines = (rates: Rates, kind: string) =>
      Object.entries(rates).map(([driver, rounds]) => [
        `${kind}: ${driver}`,
        grouped(median(rounds)),
        range(rounds),
      ]);
    return {
      tables: [
        {
          head: ['', 'per second', 'lowest-highest'],
          lines: [...lines(reads, 'point reads'), ...lines(inserts, 'rows inserted')],
        },
      ],
      findings: [
        { what: 'point reads: pg, pipelined / postgres', rates: reads },
        { what: 'rows inserted: pg, pipelined / postgres', rates: inserts },
      ].map(({ what, rates }) => ({
        what,
        unit: 'x',
        ...ratio(rates['pg, pipelined'] ?? [], rates.postgres ?? []),
      })),
      plots: [],
      notes: [],
    };
  },
};
