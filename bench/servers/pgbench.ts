import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProcess } from '../load/run-process.ts';
import { onCores } from '../machine/cores.ts';
import { hasTool } from '../machine/tools.ts';
import type { Workbench } from '../workbench.ts';

/** Transactions per second of a script with 64 clients; undefined if pgbench is not installed. */
export async function pgbench(bench: Workbench, url: string, script: string): Promise<number | undefined> {
  if (!hasTool('pgbench', '--version')) return undefined;
  const file = join(bench.folder(), 'script.sql');
  writeFileSync(file, script);
  bench.say('pgbench');
  const output = await runProcess([
    ...onCores(bench.cores.load),
    ...[
      'pgbench',
      '-n',
      '-c',
      '64',
      '-j',
      '1',
      '-M',
      'prepared',
      '-T',
      String(bench.pace.seconds),
      '-f',
      file,
      url,
    ],
  ]);
  return Number(/tps = ([\d.]+)/.exec(output)?.[1]);
}
