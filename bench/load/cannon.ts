import { join } from 'node:path';
import { onCores } from '../machine/cores.ts';
import type { Load, LoadResult } from './load.ts';
import { runProcess } from './run-process.ts';

/** Generates load with autocannon in a separate process. */
export async function runCannon(load: Load): Promise<LoadResult> {
  const script = join(import.meta.dirname, '../peers/cannon.ts');
  const output = await runProcess([...onCores(load.cores), process.execPath, script], {
    input: JSON.stringify(load),
  });
  return JSON.parse(output) as LoadResult;
}
