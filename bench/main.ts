import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { divideCores } from './machine/cores.ts';
import { describeMachine } from './machine/machine.ts';
import { hasTool, toolVersion } from './machine/tools.ts';
import { describeVersions } from './machine/versions.ts';
import { createProgress } from './progress.ts';
import { findingLine, tableLines } from './report/markdown.ts';
import { writePage } from './report/page.ts';
import type { Row } from './row.ts';
import { rows } from './rows.ts';
import { type RowOutcome, runRow } from './run-row.ts';
import { type SqliteDriver, sqliteDriver } from './servers/sqlite-driver.ts';
import { FULL, QUICK } from './workbench.ts';

const USAGE = `npm run bench -- [--quick] [--only <row>,...] [--node <path>] [--write]

  --quick  short rounds and fewer of them, for developing; the figures are rough
  --only   only these rows: ${rows.map(({ name }) => name).join(', ')}
  --node   the path of another Node.js that the servers run on; default the one of this process
  --write  writes the report of a whole run to docs/performance, and its summary into docs/PERFORMANCE.md
`;

/** Exit codes: 0 all rows ran, 1 a row failed, 2 wrong call. */
async function main(): Promise<number> {
  const values = readFlags();
  if (typeof values === 'string') return say(`${values}\n\n${USAGE}`, 2);
  if (values.help) return say(USAGE, 0);
  const chosen = choose(values.only);
  if (typeof chosen === 'string') return say(`${chosen}\n\n${USAGE}`, 2);
  if (values.write && (values.only !== undefined || values.quick || values.node !== undefined)) {
    return say('--write takes a whole run: neither --only nor --quick nor --node\n', 2);
  }
  const node = values.node === undefined ? process.execPath : resolve(values.node);
  const nodeVersion = toolVersion(node, '--version');
  if (nodeVersion === undefined) return say(`--node: ${node} cannot be run\n`, 2);
  if (!existsSync(join(import.meta.dirname, 'node_modules'))) {
    return say('The peers are not installed. Run: npm ci --prefix bench\n', 2);
  }

  const cores = divideCores();
  const tool = hasTool('wrk', '-v') ? 'wrk' : 'autocannon';
  const pace = values.quick ? QUICK : FULL;
  const machine = describeMachine();
  const sqlite = sqliteDriver(node);
  const outcomes: RowOutcome[] = [];
  process.stdout.write(
    `Servers: Node.js ${nodeVersion}. SQLite in the peers: ${nameOf(sqlite)}. Load: ${tool}.\n`,
  );
  for (const [index, row] of chosen.entries()) {
    const progress = createProgress(`[${index + 1}/${chosen.length}] ${row.name}`);
    const outcome = await runRow(row, { cores, tool, pace, node, say: progress.say });
    progress.end();
    outcomes.push(outcome);
    if ('seconds' in outcome) process.stderr.write(`${row.name}: ${outcome.seconds.toFixed(0)} s\n`);
    process.stdout.write(`${textOf(outcome)}\n`);
  }
  if (values.write) {
    const { seconds, rounds, warmUp } = pace;
    writePage(outcomes, {
      machine,
      tool,
      versions: describeVersions(nodeVersion),
      sqlite: nameOf(sqlite),
      pace: `${rounds} rounds of ${seconds} s for each server, after ${warmUp} s to warm up.`,
      date: new Date().toISOString().slice(0, 10),
    });
    process.stdout.write('docs/PERFORMANCE.md and docs/performance are written\n');
  }
  const failed = outcomes.filter((outcome) => 'error' in outcome);
  for (const { row } of failed) process.stdout.write(`FAILED: ${row.name}\n`);
  return failed.length > 0 ? 1 : 0;
}

/** The flags, or the error in them. */
function readFlags() {
  try {
    const { values } = parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        only: { type: 'string' },
        node: { type: 'string' },
        write: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    return values;
  } catch (error) {
    return (error as Error).message;
  }
}

function nameOf({ name, reason }: SqliteDriver): string {
  return reason === undefined ? name : `${name}, because better-sqlite3 fails: ${reason}`;
}

function textOf(outcome: RowOutcome): string {
  const title = `\n${outcome.row.title} (${outcome.row.name})\n`;
  if ('error' in outcome) return `${title}FAILED: ${outcome.error}`;
  const { tables, findings, notes } = outcome.result;
  return [
    title,
    ...tables.flatMap((table) => [...tableLines(table), '']),
    ...findings.map(findingLine),
    ...notes,
  ].join('\n');
}

/** The rows with these names, or the error in them. */
function choose(names: string | undefined): readonly Row[] | string {
  if (names === undefined) return rows;
  const found = names.split(',').map((name) => rows.find((row) => row.name === name.trim()) ?? name);
  const unknown = found.filter((row) => typeof row === 'string');
  return unknown.length > 0
    ? `There is no row ${unknown.join(', ')}`
    : found.filter((row) => typeof row !== 'string');
}

function say(text: string, code: number): number {
  (code === 0 ? process.stdout : process.stderr).write(text);
  return code;
}

// Exiting kills all processes that were started, whatever the reason.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));
process.exitCode = await main();
