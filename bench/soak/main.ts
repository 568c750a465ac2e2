import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { pendingMigrations } from '../../src/sql/open.ts';
import { describeMachine } from '../machine/machine.ts';
import { grouped } from '../measure/figures.ts';
import { writeReport } from './report.ts';
import { soak } from './run.ts';

const USAGE = `npm run soak -- [--minutes <n>] [--postgres | --url <url>] [--rate <n>] [--seed <n>] [--out <folder>]

  --minutes   how long the load lasts; default 5
  --postgres  on a PostgreSQL server of its own; default SQLite
  --url       on an empty PostgreSQL database of this machine, whose server is left alone
  --rate      requests per second, at most; default 200
  --seed      of the chances, to do a run again
  --out       where the report is written; default build/soak

Exit codes: 0 nothing was lost, 1 something was, 2 called wrongly.
`;
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
const DEFAULTS = { minutes: '5', rate: '200', out: 'build/soak' };

async function main(): Promise<number> {
  const values = readFlags();
  if (typeof values === 'string') return say(`${values}\n\n${USAGE}`, 2);
  if (values.help) return say(USAGE, 0);
  const [minutes, rate] = [Number(values.minutes), Number(values.rate)];
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));
  if (!(minutes > 0 && rate > 0 && Number.isFinite(seed)))
    return say(`the numbers must be above 0\n\n${USAGE}`, 2);
  if (values.url !== undefined) {
    if (!LOOPBACK.test(new URL(values.url).hostname))
      return say('--url: only a database of this machine\n', 2);
    const [first] = await pendingMigrations(values.url);
    if (first !== '001-schema.sql') return say('--url: the database is not empty\n', 2);
  }
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  const words = process.argv.slice(2).filter((word, i, all) => word !== '--seed' && all[i - 1] !== '--seed');
  const engine = values.postgres || values.url !== undefined ? 'postgres' : 'sqlite';
  const machine = describeMachine();
  const found = await soak({
    engine,
    url: values.url,
    minutes,
    rate,
    seed,
    signal: stop.signal,
    say: (line) => process.stderr.write(`${line}\n`),
  });
  const files = writeReport({
    ...found,
    command: ['npm run soak --', ...words, `--seed ${seed}`].join(' '),
    machine: `${machine.cpu}, ${machine.cores} cores, ${grouped(machine.memory)} GB of memory, ${machine.system}, Node.js ${process.version}.`,
    date: new Date().toISOString().slice(0, 10),
  });
  const out = resolve(values.out);
  mkdirSync(out, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(out, name), text);
  process.stdout.write(`${join(out, `${engine}.md`)}\n`);
  for (const problem of found.audit.problems) process.stderr.write(`LOST: ${problem}\n`);
  return found.audit.problems.length === 0 ? 0 : 1;
}

function readFlags() {
  try {
    const { values } = parseArgs({
      options: {
        minutes: { type: 'string' },
        postgres: { type: 'boolean' },
        url: { type: 'string' },
        rate: { type: 'string' },
        seed: { type: 'string' },
        out: { type: 'string' },
        help: { type: 'boolean' },
      },
    });
    return { ...DEFAULTS, ...values };
  } catch (error) {
    return (error as Error).message;
  }
}

function say(text: string, code: number): number {
  process[code === 0 ? 'stdout' : 'stderr'].write(text);
  return code;
}

process.exitCode = await main();
