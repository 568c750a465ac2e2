import { join } from 'node:path';
import { runProcess } from '../load/run-process.ts';
import { onCores } from '../machine/cores.ts';
import { grouped, range } from '../measure/figures.ts';
import { median, ratio } from '../measure/statistics.ts';
import type { Finding, Row } from '../row.ts';
import { startDatabaseServer } from '../servers/database-server.ts';

const QUEUES = { Portico: 'portico', 'pg-boss': 'pg-boss', 'graphile-worker': 'graphile-worker' } as const;
type Label = keyof typeof QUEUES;
const LABELS = Object.keys(QUEUES) as readonly Label[];
/** The number of keys that the jobs share. */
const KINDS = { 'in no order': 0, 'in order, 1,000 keys': 1_000, 'in order, one key': 1 } as const;
type Kind = keyof typeof KINDS;

export const handling: Row = {
  name: 'handling',
  title: 'PostgreSQL: jobs handled from a backlog',
  about:
    'Each queue handles a backlog of its own with a handler that does nothing, 16 at a time, in one process, on the same ' +
    'PostgreSQL with `fsync=on`: jobs in no order, on 1,000 keys, and all on one key. Portico runs with its defaults; pg-boss ' +
    'fetches 16 at a time in 16 loops (`burstWhenBatchFull`, policy `key_strict_fifo` for the order); graphile-worker has its local queue of 128 and ' +
    'completes jobs together (a named queue for each key). pg-boss stores and completes jobs in batches; Portico and graphile-worker record each outcome.',
  async run(bench) {
    const server = await startDatabaseServer(bench);
    const { rounds, quick } = bench.pace;
    const rates = new Map<string, number[]>();
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? LABELS : LABELS.toReversed();
      for (const kind of Object.keys(KINDS) as Kind[]) {
        for (const label of order) {
          bench.say(`round ${round + 1} of ${rounds}, ${kind}: ${label}`);
          const input = JSON.stringify({
            url: await server.createDatabase(),
            keys: KINDS[kind],
            jobs: quick ? 20_000 : 100_000,
            seconds: 2 * bench.pace.seconds,
          });
          const script = join(import.meta.dirname, '../peers/handling', `${QUEUES[label]}.ts`);
          const output = await runProcess([...onCores(bench.cores.server), bench.node, script], { input });
          const { perSecond } = JSON.parse(output) as { readonly perSecond: number };
          rates.set(`${kind}: ${label}`, [...(rates.get(`${kind}: ${label}`) ?? []), perSecond]);
        }
      }
    }
    const of = (kind: Kind, label: Label) => rates.get(`${kind}: ${label}`) ?? [];
    const findings = (Object.keys(KINDS) as Kind[]).flatMap((kind) =>
      LABELS.slice(1).map((peer): Finding => {
        const against = ratio(of(kind, 'Portico'), of(kind, peer));
        return { what: `${kind}: Portico / ${peer}`, unit: 'x', ...against };
      }),
    );
    return {
      tables: [
        {
          head: ['', 'jobs per second', 'lowest-highest'],
          lines: [...rates].map(([what, all]) => [what, grouped(median(all)), range(all)]),
        },
      ],
      findings,
      plots: (Object.keys(KINDS) as Kind[]).map((kind) => ({
        kind: 'bars',
        file: `handling-${KINDS[kind]}`,
        title: `Jobs handled per second, ${kind}`,
        unit: 'jobs/s',
        bars: LABELS.map((label) => ({ label, values: of(kind, label) })),
      })),
      notes: [],
    };
  },
};
